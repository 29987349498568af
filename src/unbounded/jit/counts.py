"""Kernels that count no references.

Numba counts references to arrays wherever one is named, passed or taken out of a tuple. Kernels of
the package do not make arrays, and what calls them holds those that they are given: nothing can be
freed while they run. Without the counts a third less code is compiled, and with it goes the need
to optimise code once before redundant counts are removed and once after.

What is returned is counted, as every caller expects; and where a kernel without counts calls a
kernel, it lets go of what was returned at once, because somebody above it holds the same array.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import ir
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.extending import _Intrinsic

# In play/ are the loops around algorithms and adversaries, of which some are the users'.
_WITHOUT = ("unbounded.core.", "unbounded.bandits.", "unbounded.mdps.", "unbounded.adversaries.")


class Uncounted(Lower):
    """Turns a kernel that makes no array into code without counts."""

    context: Any

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._counting = self.context
        self.context = self.context.subtarget(enable_nrt=False)

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, ir.Return):
            name = inst.value.name
            self._counting.nrt.incref(self.builder, self.typeof(name), self.loadvar(name))
        super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        value = super().lower_expr(resty, expr)
        if expr.op == "call" and isinstance(
            self.typeof(expr.func.name), types.Dispatcher | types.FunctionType
        ):
            self._counting.nrt.decref(self.builder, resty, value)
        return value


class _WithoutCounts(NativeLowering):
    @property
    def lowering_class(self) -> type[Lower]:
        return Uncounted


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(NativeLowering):
    """Numba's, for kernels that make arrays and for those of users; else without counts."""

    _name = "unbounded_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function whose types are known."""
        if not is_ours(state.func_id):
            return bool(super().run_pass(state))
        blocks = state.func_ir.blocks.values()
        if not any(_makes(state, call) for block in blocks for call in block.find_exprs("call")):
            return bool(_WithoutCounts().run_pass(state))
        if _holds_array(state.return_type):
            name = state.func_id.func_qualname
            raise TypeError(f"{name} makes an array and returns one: let its caller make it")
        return bool(super().run_pass(state))


def is_ours(function: Any) -> bool:
    """Whether a function, as Numba knows it, is a kernel of the package's algorithms."""
    return bool(function.func.__module__.startswith(_WITHOUT))


def _makes(state: Any, call: Any) -> bool:
    """Whether a call makes an array."""
    function = state.typemap[call.func.name]
    ours = isinstance(getattr(function, "typing_key", None), _Intrinsic)
    given = isinstance(function, types.Function | types.BoundFunction) and not ours
    return given and _holds_array(state.calltypes[call].return_type)


def _holds_array(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(map(_holds_array, kind))
    return isinstance(kind, types.Array)
