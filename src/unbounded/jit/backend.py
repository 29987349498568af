"""The accelerator: kernels get at one another's code without wrappers and reference counts.

It subclasses private classes of Numba, so it is on only for versions that it was tested with, and
only after a self-test; without it the same kernels compile more slowly to the same results.

*Linking.* Left to itself, Numba optimizes every function, makes machine code of it with wrappers
for Python and for C, copies the result into each caller, and there optimizes it and makes machine
code of it again. What kernels see of a kernel is made here without wrappers, in one of two ways:

- it is inlined (`TakenIn`): callers get it as it was written. It is optimized with the whole of
  which it becomes part, and only then;
- it is called (`Called`): it is optimized once, and callers know no more of it than its name.

*Reference counts.* Numba counts references to arrays wherever one is named, passed or taken out of
a tuple. Kernels of the package do not make arrays, and what calls them holds those that they are
given: nothing can be freed while they run. Without the counts a third less code is compiled. What
is returned is counted, as every caller expects; and where a kernel without counts calls a kernel,
it releases what was returned at once, because somebody above it holds the same array.

Numba's own option ``_nrt=False`` leaves out the counts of what is returned too. Numba 0.68.1 then
rejects a kernel that returns a view ("Only accept returning of array passed into the function"); of
a pair ``x, x[1:]`` Python gets ``x`` twice; and where a kernel with counts returns what it got from
such a kernel, the array is freed too early: a segmentation fault under ``MALLOC_PERTURB_``. SCB
compiles no faster: 3.5 CPU seconds with the option and 3.6 without (means of four runs each).
"""

from __future__ import annotations

import logging
import sys
from copy import copy
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import types
from numba.core import ir
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import Environment, lookup_environment
from numba.core.errors import TypingError
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.unsafe.refcount import get_refcount
from numba.core.untyped_passes import InlineClosureLikes
from numba.extending import _Intrinsic, intrinsic

import unbounded.settings as settings
from unbounded.jit.cache import (
    FAILURES,
    Cached,
    NotCachedError,
    Source,
    dispatcher,
    is_cached_only,
)

_WAY = "accelerated 3"  # of compiling; another one needs another number

# Code with a call by name is of use only where its callees are. Numba's own cache, of a function
# that somebody else compiles around a kernel, does not know that, but keeps nothing that refers to
# such a variable.
_CALLS = "numba.dynamic.globals.calls_by_name"
_ENVIRONMENT = "_ZN08NumbaEnv"

# Machine code is never unloaded. Numba holds an environment only as long as what was compiled with
# it, and a function for C lets go of that.
_environments: set[Environment] = set()


class Seen(CPUDispatcher):
    """What other kernels see of a kernel. Python cannot call it."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return its types for a call. A constant is a number like any other, or there would be one
        compilation for each, unless the kernel cannot do without knowing which."""
        plain = tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()}
        try:
            return super().get_call_template(*plain)
        except TypingError:
            if plain == (tuple(args), kws):
                raise
            return super().get_call_template(args, kws)

    def add_overload(self, result: Any) -> None:
        """Keep what was compiled, without an entry from Python."""
        self.overloads[tuple(result.signature.args)] = result


def _plain(kind: Any) -> Any:
    constant = isinstance(kind, types.IntegerLiteral | types.BooleanLiteral)
    return types.unliteral(kind) if constant else kind


class Whole(JITCodeLibrary):
    """Code that is optimized with all that it has taken in, and becomes machine code."""

    _codegen: Any
    _dynamic_globals: list[str]
    _final_module: Any
    _shared_module: Any

    def _optimize_functions(self, ll_module: Any) -> None:
        """Take out what is never used, addresses of this process above all. The rest is optimized
        with the whole."""
        ll_module.data_layout = self._codegen._data_layout
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_dead_code_elimination_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(ll_module, self._codegen._pass_builder())

    def _optimize_final_module(self) -> None:
        """Once: Numba does it twice, to find more counts of references that are not needed."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_dynamic_globals(self) -> None:
        super()._finalize_dynamic_globals()
        self._dynamic_globals = [name for name in self._dynamic_globals if name != _CALLS]


class Called(Whole):
    """... and whose callers call it."""

    def _get_module_for_linking(self) -> Any:
        self._ensure_finalized()
        if self._shared_module is None:
            empty = self._codegen._create_empty_module(self.name)
            self._shared_module = llvm.parse_assembly(f"{empty}\n@{_CALLS} = weak global i8 0\n")
        return self._shared_module


class TakenIn(Whole):
    """Code that its callers take in."""

    def finalize(self) -> None:
        """Take in what it needs itself, and leave everything else to the callers."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def packed(self) -> tuple[str, bytes]:
        """As it is written to a file."""
        return self.name, self._get_module_for_linking().as_bitcode()

    @classmethod
    def unpacked(cls, codegen: Any, packed: tuple[str, bytes]) -> TakenIn:
        """As it is read from a file."""
        name, bitcode = packed
        library = cls(codegen, name)
        library._shared_module = library._final_module = llvm.parse_bitcode(bitcode)
        library._finalized = True
        return library


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
        if not _is_uncounted(state.func_id):
            return bool(super().run_pass(state))
        blocks = state.func_ir.blocks.values()
        if not any(_makes(state, call) for block in blocks for call in block.find_exprs("call")):
            return bool(_WithoutCounts().run_pass(state))
        if _holds_array(state.return_type):
            name = state.func_id.func_qualname
            raise TypeError(f"{name} makes an array and returns one: let its caller make it")
        return bool(super().run_pass(state))


def _makes(state: Any, call: Any) -> bool:
    """Return whether a call makes an array."""
    function = state.typemap[call.func.name]
    ours = isinstance(getattr(function, "typing_key", None), _Intrinsic)
    given = isinstance(function, types.Function | types.BoundFunction) and not ours
    return given and _holds_array(state.calltypes[call].return_type)


def _is_uncounted(function: Any) -> bool:
    return not getattr(function.func, "counts", True)


def _holds_array(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(map(_holds_array, kind))
    return isinstance(kind, types.Array)


class CalledCompiler(Compiler):
    """Makes a `Called`."""

    library: ClassVar[type[Whole]] = Called

    def define_pipelines(self) -> list[PassManager]:
        """Numba's passes, but for the one that counts references; and for those that look for
        closures and for expressions of whole arrays, which kernels of the package do not have."""
        [passes] = super().define_pipelines()
        uncounted = _is_uncounted(self.state.func_id)
        needless = (InlineClosureLikes, NopythonRewrites) if uncounted else ()
        passes.passes = [
            (Lowering if one is NativeLowering else one, why)
            for one, why in passes.passes
            if one not in needless
        ]
        passes._finalized = False
        passes.finalize()
        return [passes]

    def compile_extra(self, function: Any) -> Any:
        """Compile a function, without wrappers."""
        state, flags = self.state, self.state.flags
        state.library = _new(self.library, state.targetctx, function.__qualname__)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        result = super().compile_extra(function)
        if not flags.no_compile:
            set_environments(result.library)
        return result


class TakenInCompiler(CalledCompiler):
    """Makes a `TakenIn`."""

    library = TakenIn

    def compile_extra(self, function: Any) -> Any:
        """Compile a function, without machine code."""
        self.state.flags.no_compile = True
        result = super().compile_extra(function)
        entry = object()  # Numba finds functions by their entry from Python
        result.target_context.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry, reload_init=list(result.library._reload_init))


class Linked(Cached):
    """The cache of what is compiled here: code may need other functions, which it calls by name.

    If the self-test fails, ``reference`` is used in its place.
    """

    def __init__(self, source: Source, role: str, reference: Cached | None = None) -> None:
        super().__init__(source, f"{_WAY} for {role}")
        self._named = role == "kernels" and not source.options["forceinline"]
        self._reference = reference

    def load_overload(self, signature: Any, target: Any) -> Any:
        if _verdict is None and self._reference is not None:
            found = self._load(signature, target)
            if found is not None:
                return found
            if not is_cached_only():
                works()  # it decides who looks for the code, and who saves it
            else:  # where the test fails in every process, only such code is cached
                return self._reference.load_overload(signature, target)
        if _verdict is False and self._reference is not None:
            return self._reference.load_overload(signature, target)
        return super().load_overload(signature, target)

    def save_overload(self, signature: Any, result: Any) -> None:
        if _verdict is False and self._reference is not None:
            self._reference.save_overload(signature, result)
        else:
            super().save_overload(signature, result)

    def _load(self, signature: Any, target: Any) -> Any:
        found = super()._load(signature, target)
        if found is not None:
            self._note(found)
        return found

    def _save(self, signature: Any, result: Any) -> None:
        self._note(result)
        super()._save(signature, result)

    def _note(self, result: Any) -> None:
        """Note that there is a function that others may call by its name."""
        if self._named:
            arguments = tuple(result.signature.args)
            _by_name[result.fndesc.mangled_name] = self._loading, arguments

    def _packed(self, result: Any) -> Any:
        names = sorted(_declared(result) & _by_name.keys())
        return [(name, *_by_name[name]) for name in names], _packed(result)

    def _unpacked(self, target: Any, packed: Any) -> Any:
        needs, code = packed
        for name, hashed, arguments in needs:
            if hashed not in self._kernels:
                return None
            seen = _seen[self._kernels[hashed]]
            seen.compile(arguments)
            if seen.overloads[arguments].fndesc.mangled_name != name:
                return None
        return _unpacked(target, code)


_by_name: dict[str, tuple[bytes | None, Any]] = {}
"""Functions that others call by their names in machine code: what they are, and for which
arguments they are compiled."""
_seen: WeakKeyDictionary[Source, Seen] = WeakKeyDictionary()
"""What other kernels see of kernels, by their sources."""


def link(source: Source, made: Any) -> None:
    """Let a dispatcher of the reference path compile here, once the self-test is passed."""
    seen, kind, plain = _see(source), type(made), made._compiler

    def get_call_template(args: Any, kws: Any) -> Any:
        if works():
            return seen.get_call_template(args, kws)
        return kind.get_call_template(made, args, kws)

    def get_overload(sig: Any) -> Any:
        return seen.get_overload(sig) if works() else kind.get_overload(made, sig)

    made._compiler = ForPython(seen, plain, nogil=source.options.get("nogil", False))
    made.get_call_template, made.get_overload = get_call_template, get_overload
    made._compiling_counter = seen._compiling_counter  # by which Numba knows a recursion
    Linked(source, "Python", made._cache).serve(made)


def callback(source: Source, signature: Any) -> Any:
    """Make a C callback; None if the reference path is to do it."""
    made = ForC(_see(source), signature, source.options)
    Linked(source, "C").serve(made)
    try:
        made.compile()
    except SelfTestError:
        return None
    except NotCachedError:  # that of the reference path may be, where the test fails
        if _verdict is None:
            return None
        raise
    return made


def _see(source: Source) -> Seen:
    compiler = TakenInCompiler if source.options["forceinline"] else CalledCompiler
    seen = _seen[source] = Seen(source.function, {}, source.options | {"nopython": True}, compiler)
    Linked(source, "kernels").serve(seen)
    return seen


class ForPython:
    """Makes what Python calls, of what other kernels see: in place of a dispatcher's compiler."""

    def __init__(self, seen: Seen, plain: Any, *, nogil: bool) -> None:
        self._seen, self._plain = seen, plain
        self._nogil = nogil
        self.fold_argument_types = seen.fold_argument_types

    def compile(self, args: Any, return_type: Any) -> Any:
        """Compile for these types of arguments."""
        if not works():
            return self._plain.compile(args, return_type)
        result = _wrapped(self._seen, args)
        target, library, own = result.target_context, result.library, result.environment
        with target.push_code_library(library):
            target.create_cpython_wrapper(
                library, result.fndesc, own, None, release_gil=self._nogil
            )
        entry = target.get_executable(library, result.fndesc, own)
        set_environments(library)
        return result._replace(entry_point=entry)


class SelfTestError(Exception):
    """The accelerator does not work with this Numba."""


class ForC(CFunc):
    """Makes what C calls, of what other kernels see."""

    _cache: Any
    _library: Any
    _sig: Any

    def __init__(self, seen: Seen, signature: Any, options: dict[str, Any]) -> None:
        super().__init__(seen.py_func, normalize_signature(signature), {}, options)
        self._seen = seen

    def compile(self) -> None:
        """Compile it, or take it from the cache."""
        super().compile()
        set_environments(self._library)

    def _compile_uncached(self) -> Any:
        if not works():
            raise SelfTestError
        result = _wrapped(self._seen, self._sig)
        target, library = result.target_context, result.library
        with target.push_code_library(library):
            target.create_cfunc_wrapper(library, result.fndesc, result.environment, None)
        return result


_verdict: bool | None = None


def works() -> bool:
    """Return whether the self-test is passed; runs it before anything else is compiled.

    What is loaded from the cache was compiled by the same version of everything, after this test.
    """
    global _verdict
    if _verdict is None:
        _verdict = True  # for what it compiles itself
        try:
            reason = _self_test()
        except FAILURES as error:
            reason = repr(error)
        except BaseException:  # an interrupt, or a signal handler's error: nothing is known yet
            _verdict = None
            raise
        if reason:
            _verdict = False
            reason = f"the accelerator does not work with Numba {numba.__version__}: {reason}"
            logging.getLogger("unbounded").warning(reason)
            settings.note_path("reference", reason)
    return _verdict


def _self_test() -> str:
    """Say what goes wrong with kernels that pass arrays on and return them.

    References too many or too few are seen first where so many are held that nothing is freed.
    """
    options = {"error_model": "numpy", "fastmath": False}

    def add(x: Any, by: float) -> Any:
        for i in range(x.size):
            x[i] += by / (i + 1.0)
        return x

    called = dispatcher(add, options | {"forceinline": False}, counts=False)

    def both(pair: Any, by: float) -> Any:
        x, y = pair
        return called(x, by), called(y[1:], 2.0 * by), x.size / 3.0

    inlined = dispatcher(both, options | {"forceinline": True}, counts=False)

    def twice(x: Any, y: Any, by: float) -> Any:
        inlined((x, y), by)
        return inlined((x, y), by)

    tested = dispatcher(twice, options | {"forceinline": True}, counts=True)

    def lost(x: Any, y: Any) -> int:
        _hold(x)
        _hold(y)
        before = get_refcount(x) + get_refcount(y)
        for _ in range(_HELD // 8):
            inlined((x, y), 0.0)
        return before - get_refcount(x) - get_refcount(y)

    if dispatcher(lost, options | {"forceinline": True}, counts=True)(np.ones(2), np.ones(3)) != 0:
        return "references are counted in another way"
    x, y = np.array([0.1, 0.2]), np.array([1e16, 1.0, -3.0])
    counts, held = [sys.getrefcount(one) for one in (x, y)], [x, y] * 64
    for _ in range(4):
        first, second, share = tested(x, y, 0.7)
    wanted_x, wanted_y = np.array([0.1, 0.2]), np.array([1e16, 1.0, -3.0])
    for _ in range(8):
        add(wanted_x, 0.7)
        add(wanted_y[1:], 1.4)
    same = [
        (a == b).all()
        for a, b in ((x, wanted_x), (first, wanted_x), (y, wanted_y), (second, wanted_y[1:]))
    ]
    if not all(same) or share != 2.0 / 3.0:
        return "another result"
    del first, second, held
    if [sys.getrefcount(one) for one in (x, y)] != counts:
        return "references are counted in another way"
    return ""


_HELD = 64  # references


@intrinsic
def _hold(typing_context: Any, array: Any) -> Any:
    """In a kernel: hold an array for ever."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for _ in range(_HELD):
            context.nrt.incref(builder, signature.args[0], arguments[0])
        return context.get_dummy_value()

    return types.void(array), generate


def _wrapped(seen: Seen, signature: Any) -> Any:
    """Return what kernels see, in a library that is still to get its wrapper."""
    seen.compile(signature)
    arguments, _ = normalize_signature(signature)
    result = seen.overloads[tuple(arguments)]
    target = seen.targetctx.subtarget(enable_nrt=True)  # an array that is returned is counted
    fndesc = copy(result.fndesc)
    fndesc.env_name += "whole"  # a wrapper may have constants of its own
    library = _new(Whole, target, fndesc.qualname)
    library.add_linking_library(result.library)
    module = library.create_ir_module("environment")
    target.declare_env_global(module, fndesc.env_name)
    library.add_ir_module(module)
    environment = Environment.from_fndesc(fndesc)
    _environments.add(environment)
    return result._replace(
        target_context=target,
        library=library,
        fndesc=fndesc,
        environment=environment,
        metadata={},
    )


def _new(kind: type[Whole], target: Any, name: str) -> Any:
    library = kind(target.codegen(), name)
    library.enable_object_caching()
    return library


def set_environments(library: Any) -> None:
    """Let the code know the environments (constants of Python) of what it has taken in."""
    for variable in library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                _environments.add(environment)
                library.codegen.set_env(variable.name, environment)


def _packed(result: Any) -> Any:
    """Return what was compiled, as it is written to a file."""
    if not isinstance(result.library, TakenIn):
        return False, result._reduce()
    fndesc = result.fndesc
    fndesc.typemap = fndesc.calltypes = None  # as Numba does: not needed, and hard to pickle
    environments = tuple(result._find_referenced_environments())
    own = result.fndesc, result.environment, result.signature, result.reload_init, environments
    return True, (result.library.packed(), *own)


def _unpacked(target: Any, data: Any) -> Any:
    """Return what was compiled, as it is read from a file."""
    taken_in, reduced = data
    if not taken_in:
        result = CompileResult._rebuild(target, *reduced)
        _environments.update((result.environment, *result.referenced_envs))
        return result
    code, fndesc, environment, signature, reload_init, environments = reduced
    _environments.update((environment, *environments))
    library = TakenIn.unpacked(target.codegen(), code)
    library._reload_init.update(reload_init)
    for prepare in reload_init:
        prepare()
    return compile_result(
        target_context=target,
        typing_context=target.typing_context,
        library=library,
        environment=environment,
        entry_point=object(),
        fndesc=fndesc,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _declared(result: Any) -> set[str]:
    """Return the names of the functions that it calls, and does not have."""
    return {f.name for f in result.library._final_module.functions if f.is_declaration}
