"""How kernels get at one another's code; with `_jit_cache`, every private name of Numba.

Left to itself, Numba optimises every function, makes machine code of it with wrappers for Python
and for C, copies the result into each caller, and there optimises it and makes machine code of it
again. What kernels see of a kernel is made here without wrappers, and in one of two ways:

- it is taken in (`TakenIn`): callers get it as it was written. It is optimised with the whole of
  which it becomes part, and only then;
- it is called (`Called`): it is optimised once, and callers know no more of it than its name.
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, compile_result
from numba.core.compiler_machinery import PassManager
from numba.core.environment import Environment, lookup_environment
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from unbounded.jit.counts import Lowering, is_ours

if tuple(map(int, numba.__version__.split(".")[:2])) < (0, 63):
    raise ImportError("before Numba 0.63 libraries of code do not know what must be prepared")

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
        """Its types for a call. A constant is a number like any other, or there would be one
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
    """Code that is optimised with all that it has taken in, and becomes machine code."""

    _codegen: Any
    _dynamic_globals: list[str]
    _final_module: Any
    _shared_module: Any

    def _optimize_functions(self, ll_module: Any) -> None:
        """Take out what is never used, addresses of this process above all. The rest is optimised
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


class CalledCompiler(Compiler):
    """Makes a `Called`."""

    library: ClassVar[type[Whole]] = Called

    def define_pipelines(self) -> list[PassManager]:
        """Numba's passes, but for the one that counts references; and for those that look for
        closures and for expressions of whole arrays, which kernels of the package do not have."""
        [passes] = super().define_pipelines()
        needless = (InlineClosureLikes, NopythonRewrites) if is_ours(self.state.func_id) else ()
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


class ForPython:
    """Makes what Python calls, of what other kernels see: in place of a dispatcher's compiler."""

    def __init__(self, seen: Seen, *, nogil: bool) -> None:
        self._seen = seen
        self._nogil = nogil
        self.fold_argument_types = seen.fold_argument_types

    def compile(self, args: Any, return_type: Any) -> Any:
        """Compile for these types of arguments."""
        result = _wrapped(self._seen, args)
        target, library, own = result.target_context, result.library, result.environment
        with target.push_code_library(library):
            target.create_cpython_wrapper(
                library, result.fndesc, own, None, release_gil=self._nogil
            )
        entry = target.get_executable(library, result.fndesc, own)
        set_environments(library)
        return result._replace(entry_point=entry)


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
        result = _wrapped(self._seen, self._sig)
        target, library = result.target_context, result.library
        with target.push_code_library(library):
            target.create_cfunc_wrapper(library, result.fndesc, result.environment, None)
        return result


def _wrapped(seen: Seen, signature: Any) -> Any:
    """What kernels see, in a library that is still to get its wrapper."""
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


def packed(result: Any) -> Any:
    """What was compiled, as it is written to a file."""
    if not isinstance(result.library, TakenIn):
        return False, result._reduce()
    fndesc = result.fndesc
    fndesc.typemap = fndesc.calltypes = None  # as Numba does: not needed, and hard to pickle
    environments = tuple(result._find_referenced_environments())
    own = result.fndesc, result.environment, result.signature, result.reload_init, environments
    return True, (result.library.packed(), *own)


def unpacked(target: Any, data: Any) -> Any:
    """What was compiled, as it is read from a file."""
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


def declared(result: Any) -> set[str]:
    """The names of the functions that it calls, and does not have."""
    return {f.name for f in result.library._final_module.functions if f.is_declaration}
