"""Compiled code, kept for later processes; and every private name of Numba that the package uses.

Numba's own ``cache=True`` looks only at the file that holds a function, so a cached caller goes on
running the old code of a callee edited in another file. Here the key is a hash of all that is
compiled (`_jit_key`), and the files are checked before they are used (`_jit_files`). Each compiled
signature is one file, written under a temporary name and renamed, so that processes that compile
the same kernel at once cannot hand each other the wrong code; and they need not, as a lock
(`_jit_locks`) has the others wait for the first.

Where a version of Numba has none of these names, kernels are compiled in each process.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import itertools
import pickle
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types

from unbounded.jit.files import cache_directory, nowhere, read, say, write
from unbounded.jit.key import Fingerprint, Kernel, UncertainError
from unbounded.jit.locks import give_back, take

try:
    from numba.core.compiler import CompileResult
    from numba.core.extending import _Intrinsic
    from numba.core.serialize import dumps
    from numba.core.typing.templates import Signature, builtin_registry

    import unbounded.jit.backend as link

    MISSING = not hasattr(CompileResult, "_reduce") or not hasattr(CompileResult, "_rebuild")
except ImportError:
    MISSING = True

_WAY = 2  # in which `_jit_link` and `_jit_counts` compile; another one needs another number
_VERSIONS = sys.version, numba.__version__, llvmlite.__version__, np.__version__, _WAY
_SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")


class NotKeptError(Exception):
    """Compiled code was asked for that is not kept, by somebody who does not want to wait."""


_here = threading.local()
_by_name: dict[str, tuple[bytes | None, Any]] = {}
"""Functions that others call by their names in machine code: what they are, and for which
arguments they are compiled."""


@contextmanager
def only_kept() -> Iterator[None]:
    """In this thread, a kernel that would have to be compiled is a `NotKeptError`."""
    _here.only_kept = True
    try:
        yield
    finally:
        _here.only_kept = False


def can_keep() -> bool:
    """Whether what is compiled by one process can be used by others."""
    return not MISSING and cache_directory() is not None


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Numba's dispatcher of a function, for Python and for kernels, with its compiled code kept."""
    if MISSING:
        _say_missing()
        return numba.njit(**options)(function)
    ours = Ours(function, options)
    made = numba.njit(**options)(ours.function)
    made._compiler = link.ForPython(ours.seen, nogil=options.get("nogil", False))
    InTurn(ours, "python").serve(made, made._compiler)
    made.get_call_template = ours.seen.get_call_template
    made.get_overload = ours.seen.get_overload
    made._compiling_counter = ours.seen._compiling_counter  # by which Numba knows a recursion
    return made


def callback(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    """Numba's C callback of a function, with its compiled code kept."""
    if MISSING:
        _say_missing()
        return numba.cfunc(signature, **options)(function)
    ours = Ours(function, options)
    made = link.ForC(ours.seen, signature, options)
    InTurn(ours, "c").serve(made, made)
    made.compile()
    return made


def _say_missing() -> None:
    say(
        f"it is not known how Numba {numba.__version__} would; install a version that the "
        "package was tested with"
    )


class Ours(Kernel):
    """A function as the package compiles it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        # A copy, whose name in machine code can be changed.
        assert isinstance(function, FunctionType)
        copy = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        copy.__kwdefaults__ = function.__kwdefaults__
        functools.update_wrapper(copy, function)
        vars(copy).pop("__wrapped__")  # it stands for itself
        super().__init__(copy, options)
        self.qualname = function.__qualname__
        name = f"{function.__module__.removeprefix('unbounded.')}-{function.__qualname__}"
        self.file = re.sub(r"[^\w-]+", "_", name)[-150:]  # one of these may be all there is
        compiler = link.TakenInCompiler if options["forceinline"] else link.CalledCompiler
        self.seen = link.Seen(copy, {}, options | {"nopython": True}, compiler)
        """What other kernels see of it."""
        InTurn(self, "kernels").serve(self.seen, self.seen._compiler)


class Kept:
    """What Numba asks for the compiled code of one function, and gives it to.

    Parameters
    ----------
    ours : Ours
    role : str
        For whom it is compiled: Python, C, or other kernels.
    """

    def __init__(self, ours: Ours, role: str) -> None:
        self.ours = ours
        self._role = role

    @property
    def cache_path(self) -> str | None:
        directory = cache_directory()
        return None if directory is None else str(directory)

    def load_overload(self, signature: Any, target: Any) -> Any:
        found = self._found(signature, target)
        if found is None and getattr(_here, "only_kept", False):
            raise NotKeptError(self.ours.qualname)
        if found is not None:
            self._note(found)
        return found

    name: str | None

    def _found(self, signature: Any, target: Any) -> Any:
        code = self._code(signature)
        ours = self.ours
        if ours.compiled_as is None:
            ours.compiled_as = code or b""  # never equal to a hash: callers are not kept either
        # Machine code is found by names, which Numba makes of this one and a count that starts
        # again in each process: two functions of one name would meet when one comes from a file.
        unique = uuid.uuid4().hex if code is None else code.hex()[:32]
        ours.function.__qualname__ = f"_{unique}.{self._role}.{ours.qualname}"
        self._loading = code
        self.name = None  # of the file, if it is to be kept
        if code is None:
            return None
        key = self._key(code, signature, target.codegen())
        self.name = f"{ours.file}.{_version(code, key)}"
        data = read(self.name)
        if data is None:
            return None
        target.refresh()  # not before: it takes as long as importing Numba
        try:
            stored, needs, packed = pickle.loads(data)
        except Exception:  # what it refers to is gone: compile again
            return None
        if stored != key or not all(itertools.starmap(self._has, needs)):
            return None
        try:
            result = link.unpacked(target, packed)
        except Exception:
            return None
        if not set(_classes(result.signature)) <= self._met:
            return None  # a class of that name, and not the one that is meant here
        return result

    def _has(self, name: str, code: bytes, arguments: Any) -> bool:
        """Whether a function that is called by its name is there, after it has been loaded."""
        kernel = self._kernels.get(code)
        if kernel is None:
            return False
        kernel.seen.compile(arguments)
        return bool(kernel.seen.overloads[arguments].fndesc.mangled_name == name)

    def _note(self, result: Any) -> None:
        """Note that there is a function that others may call by its name."""
        if self._role == "kernels" and not self.ours.options["forceinline"]:
            arguments = tuple(result.signature.args)
            _by_name[result.fndesc.mangled_name] = self._loading, arguments

    def save_overload(self, signature: Any, result: Any) -> None:
        self._note(result)
        code = self._code(signature)
        if code is None or code != self._loading:  # a global name changed while it was compiled
            return
        if result.library.has_dynamic_globals or result.lifted:
            return  # addresses of this process
        if not all(map(_is_found_by_name, _classes(result.signature))):
            return
        names = sorted(link.declared(result) & _by_name.keys())
        key = self._key(code, signature, result.codegen)
        try:
            data = dumps((key, [(name, *_by_name[name]) for name in names], link.packed(result)))
        except Exception:  # an argument whose type cannot be pickled
            return
        write(self.ours.file, _version(code, key), data)

    def _code(self, signature: Any) -> bytes | None:
        """The hash of all that is compiled; None if that is not to be kept."""
        by_address = " at 0x" in repr(signature)  # it takes another kernel as an argument
        if by_address or nowhere():
            return None
        code = Fingerprint(_opened)
        try:
            found = code.of(self.ours)
        except UncertainError:
            return None
        self._kernels = code.kernels
        self._met = code.classes | set(_classes(signature))
        ours = all(module.partition(".")[0] == "unbounded" for module in code.modules)
        return found if ours or not _extended() else None

    def _key(self, code: bytes, signature: Any, codegen: Any) -> Any:
        settings = tuple(str(getattr(numba.config, name, None)) for name in _SETTINGS)
        return code, self._role, signature, codegen.magic_tuple(), _VERSIONS, settings

    def enable(self) -> None:
        """Numba's word; it is always on."""

    disable = flush = enable


class InTurn(Kept):
    """The same; and of processes that want to compile it at once, one does.

    Numba saves what it has compiled, or an error ends it; in between it compiles what is called.
    """

    def __init__(self, ours: Ours, role: str) -> None:
        super().__init__(ours, role)
        self._locks: list[Path | None] = []  # of compilations that are under way, the last inside

    def serve(self, made: Any, compiler: Any) -> None:
        """Keep for ``made`` what ``compiler`` compiles."""
        made._cache = self
        compiler.compile = self.giving_up(compiler.compile)

    def load_overload(self, signature: Any, target: Any) -> Any:
        found = super().load_overload(signature, target)
        if found is None:
            directory = None if self.name is None else cache_directory()
            lock = None if directory is None else directory / f"{self.name}.lock"
            if lock is not None and not take(lock):
                lock = None
            self._locks.append(lock)
            if lock is not None:  # perhaps the process that had the lock has compiled it
                found = self.giving_up(super().load_overload)(signature, target)
                if found is not None:
                    self._unlock()
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        finally:
            self._unlock()

    def giving_up(self, compile: Callable[..., Any]) -> Callable[..., Any]:
        """The same, and when it fails the lock is free: nothing will be saved."""

        @functools.wraps(compile)
        def compiled(*arguments: Any) -> Any:
            try:
                with _uncollected():
                    return compile(*arguments)
            except BaseException:
                self._unlock()
                raise

        return compiled

    def _unlock(self) -> None:
        lock = self._locks.pop() if self._locks else None
        if lock is not None:
            give_back(lock)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Python does not look for garbage: a compiler has much that is none, and going through all of
    it again and again takes a sixth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _classes(kind: Any) -> Iterator[type]:
    """The NamedTuple classes of a signature or a type."""
    if isinstance(kind, types.BaseNamedTuple):
        yield kind.instance_class
    parts: Any = ()
    if isinstance(kind, tuple):
        parts = kind
    elif isinstance(kind, types.BaseTuple):
        parts = kind.types
    elif isinstance(kind, Signature):
        parts = kind.return_type, *kind.args
    elif isinstance(kind, types.FunctionType):
        parts = (kind.signature,)
    for part in parts:
        yield from _classes(part)


def _is_found_by_name(cls: type) -> bool:
    """Whether a class is unpickled as itself; one of ``__main__`` would come as a copy."""
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is cls and cls.__module__ != "__main__"


def _version(code: bytes, key: Any) -> str:
    return f"{code.hex()[:16]}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def _opened(value: Any) -> Any:
    """What one of Numba's objects stands for."""
    kept = getattr(value, "_cache", None)
    if isinstance(kept, Kept):
        return kept.ours
    if hasattr(value, "py_func"):
        # What it was compiled as, and when, is not known.
        raise UncertainError(f"{value} is compiled by Numba, not by the package")
    return value._defn if isinstance(value, _Intrinsic) else value


def _extended() -> bool:
    """Whether somebody taught Numba functions or methods: no code of a kernel shows that."""
    for template in (*builtin_registry.functions, *builtin_registry.attributes):
        function = getattr(template, "_overload_func", None)
        if function is not None:
            # A few of Numba's own have no module.
            module = function.__module__ or function.__globals__.get("__name__", "")
            if module.partition(".")[0] not in ("numba", "unbounded"):
                return True
    return False
