"""Compiled code, cached for later processes: Numba's dispatchers with a ``_cache`` of our own.

Numba's ``cache=True`` looks only at the file that holds a function, so that a cached caller goes on
running the old code of a callee edited in another file. Here the key is a hash of all that is
compiled (`key`), files are checked before they are used, and a lock has other processes wait for
the first that compiles (`files`). Each compiled signature is one file.

This is the reference path, for any Numba since 0.63. It uses these private names: ``_cache`` with
``load_overload`` and ``save_overload``, ``CFunc``, ``_reduce``, ``_rebuild``, ``builtin_registry``
and ``_overload_func``. Where one is missing or has another meaning, kernels are compiled in each
process. `backend` compiles faster, with the versions of Numba that it was tested with.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import logging
import pickle
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature as parameters_of
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core.errors import NumbaError

import unbounded.settings as settings
from unbounded.jit.files import cache_directory, give_back, nowhere, read, say, take, write
from unbounded.jit.key import VERSIONS, Fingerprint, Kernel, UncertainError

try:
    import numba.core.ccallback as ccallback

    CFunc: Any = ccallback.CFunc
except (ImportError, AttributeError):
    CFunc = None

_SETTINGS = (
    "OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE",
    "CPU_NAME", "CPU_FEATURES",
)  # fmt: skip
_TESTED = (0, 63), (0, 68)  # versions of Numba that `backend` was tested with
FAILURES = (
    ArithmeticError, AssertionError, AttributeError, EOFError, ImportError, LookupError,
    MemoryError, NumbaError, RuntimeError, TypeError, ValueError, pickle.UnpicklingError,
)  # fmt: skip
"""What Numba raises if it is not as it is known, and `pickle` if something is gone; and no other: a
signal handler may raise its own."""


class NotCachedError(Exception):
    """Compiled code is not cached, and the caller does not want to wait for it."""


_here = threading.local()


@contextmanager
def cached_only() -> Iterator[None]:
    """In this thread, a kernel that would have to be compiled raises `NotCachedError`.

    Numba stands between who calls a kernel and who looks for its code, so that this cannot be an
    argument.
    """
    before = is_cached_only()
    _here.cached_only = True
    try:
        yield
    finally:
        _here.cached_only = before


def is_cached_only() -> bool:
    """Return whether nothing may be compiled in this thread."""
    return bool(getattr(_here, "cached_only", False))


@functools.cache
def _backend() -> Any:
    """Return the accelerator, or None for the reference path."""
    version = numba.__version__
    if settings.compiled_path() == "reference":  # it was said before
        return None
    if settings.chosen_accelerator() == "off":
        settings.note_path("reference", "the accelerator is off by choice")
        return None
    low, high = _TESTED
    if not low <= tuple(map(int, version.split(".")[:2])) <= high:
        reason = f"the accelerator was not tested with Numba {version}"
    else:
        try:
            import unbounded.jit.backend as backend
        except (ImportError, AttributeError, TypeError) as error:
            reason = f"the accelerator does not fit Numba {version}: {error}"
        else:
            return backend
    refer(reason)
    return None


def refer(reason: str) -> None:
    """Use the reference path, and say why."""
    message = f"{reason}: kernels compile more slowly, to the same results"
    logging.getLogger("unbounded").warning(message)
    settings.note_path("reference", reason)


@functools.cache
def _unfit() -> str:
    """Say how this Numba differs from what the cache needs; empty if it does not."""
    null: Any = getattr(numba.njit(_nothing), "_cache", None)
    missing = [] if CFunc is not None else ["CFunc"]
    for name in ("load_overload", "save_overload"):
        method = getattr(null, name, None)
        if method is None or len(parameters_of(method).parameters) != 2:
            missing.append(name)
    if not missing:
        return ""
    reason = f"Numba {numba.__version__} has no {' and no '.join(missing)} as it is known"
    settings.note_path("reference", reason)
    return reason


def _nothing() -> None:
    pass


def can_cache() -> bool:
    """Return whether what is compiled by one process can be used by others."""
    return not _unfit() and cache_directory() is not None


def dispatcher(function: Callable[..., Any], options: dict[str, Any], *, counts: bool) -> Any:
    """Make Numba's dispatcher of a function, with its compiled code cached."""
    if _unfit():
        say(_unfit())
        return numba.njit(**options)(function)
    source = Source(function, options, counts=counts)
    made = numba.njit(**options)(source.function)
    Cached(source, "reference").serve(made)
    if _backend() is not None:
        _backend().link(source, made)
    return made


def callback(
    function: Callable[..., Any], signature: Any, options: dict[str, Any], *, counts: bool
) -> Any:
    """Make Numba's C callback of a function, with its compiled code cached."""
    if _unfit():
        say(_unfit())
        return numba.cfunc(signature, **options)(function)
    source = Source(function, options, counts=counts)
    made = None if _backend() is None else _backend().callback(source, signature)
    if made is None:
        made = CFunc(source.function, (signature.args, signature.return_type), {}, options)
        Cached(source, "reference for C").serve(made)
        made.compile()
    return made


class Source(Kernel):
    """A function as the package compiles it."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], *, counts: bool
    ) -> None:
        # A copy, whose name in machine code can be changed.
        assert isinstance(function, FunctionType)
        copy = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        copy.__kwdefaults__ = function.__kwdefaults__
        functools.update_wrapper(copy, function)
        vars(copy).pop("__wrapped__")  # it stands for itself
        vars(copy)["counts"] = counts
        super().__init__(copy, options, counts=counts)
        self.qualname = function.__qualname__
        name = f"{function.__module__.removeprefix('unbounded.')}-{function.__qualname__}"
        self.file = re.sub(r"[^\w-]+", "_", name)[-150:]  # one of these may be all there is


class Cached:
    """What Numba asks for the compiled code of one function, and gives it to.

    Of processes that want to compile it at once, one does. Numba saves what it has compiled, or an
    error ends it; in between it compiles what is called.

    Parameters
    ----------
    source : Source
    role : str
        For whom it is compiled, and how.
    """

    def __init__(self, source: Source, role: str) -> None:
        self.source = source
        self._role = role
        self._locks: list[Path | None] = []  # of compilations that are under way, the last inside

    def serve(self, made: Any) -> None:
        """Cache what ``made`` compiles."""
        compile = made.compile

        @functools.wraps(compile)
        def compiled(*arguments: Any) -> Any:
            outside = len(self._locks)
            try:
                with _uncollected():
                    return compile(*arguments)
            except BaseException:  # nothing will be saved
                while len(self._locks) > outside:
                    self._unlock()
                raise

        made._cache, made.compile = self, compiled

    @property
    def cache_path(self) -> str | None:
        directory = cache_directory()
        return None if directory is None else str(directory)

    def enable(self) -> None:
        """Do nothing: it is always on."""

    disable = flush = enable

    def load_overload(self, signature: Any, target: Any) -> Any:
        found = self._load(signature, target)
        if found is not None:
            return found
        if is_cached_only():
            raise NotCachedError(self.source.qualname)
        directory = None if self._name is None else cache_directory()
        lock = None if directory is None else directory / f"{self._name}.lock"
        if lock is not None and not take(lock):
            lock = None
        self._locks.append(lock)
        if lock is not None:  # perhaps the process that had the lock has compiled it
            found = self._load(signature, target)
            if found is not None:
                self._unlock()
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            self._save(signature, result)
        finally:
            self._unlock()

    def _unlock(self) -> None:
        lock = self._locks.pop() if self._locks else None
        if lock is not None:
            give_back(lock)

    def _load(self, signature: Any, target: Any) -> Any:
        code = self._hash(signature)
        source = self.source
        if source.compiled_as is None:
            source.compiled_as = code or b""  # never equal to a hash: callers are not cached either
        # Machine code is found by names, which Numba makes of this one and a count that starts
        # again in each process: two functions of one name would meet when one comes from a file.
        self._unique = uuid.uuid4().hex if code is None else code.hex()[:32]
        role = self._role.replace(" ", "_")
        source.function.__qualname__ = f"_{self._unique}.{role}.{source.qualname}"
        self._loading = code
        self._name: str | None = None  # of the file, if there is to be one
        if code is None:
            return None
        key = self._key(code, signature)
        self._name = f"{source.file}.{_version(code, key)}"
        data = read(self._name)
        if data is None:
            return None
        target.refresh()  # not before: it takes as long as importing Numba
        try:
            stored, packed = pickle.loads(data)
        except FAILURES:  # what it refers to is gone: compile again
            return None
        if stored != key:
            return None
        try:
            result = self._unpacked(target, packed)
        except NotCachedError:
            raise
        except FAILURES as error:
            say(f"Numba {numba.__version__} does not take back what it gave ({error!r})")
            return None
        if result is None or not set(_classes(result.signature)) <= self._met:
            return None  # a class of that name, and not the one that is meant here
        return result

    def _save(self, signature: Any, result: Any) -> None:
        code = self._hash(signature)
        if code is None or code != self._loading:  # a global name changed while it was compiled
            return
        if result.library.has_dynamic_globals or result.lifted:
            return  # addresses of this process
        if not all(map(_is_found_by_name, _classes(result.signature))):
            return
        if self._unique not in result.fndesc.mangled_name or not hasattr(result, "_rebuild"):
            say(f"Numba {numba.__version__} names or stores compiled code in another way")
            return
        key = self._key(code, signature)
        try:
            data = pickle.dumps((key, self._packed(result)))
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            if not hasattr(result, "_reduce"):
                say(f"Numba {numba.__version__} does not give compiled code ({error})")
            return  # an argument whose type cannot be pickled
        write(self.source.file, _version(code, key), data)

    def _packed(self, result: Any) -> Any:
        """Return what was compiled, as it is written to a file."""
        return type(result), result._reduce()

    def _unpacked(self, target: Any, packed: Any) -> Any:
        """Return what was compiled, as it was before; None if it cannot be used here."""
        kind, reduced = packed
        return kind._rebuild(target, *reduced)

    def _hash(self, signature: Any) -> bytes | None:
        """Return the hash of all that is compiled; None if that is not to be cached."""
        by_address = " at 0x" in repr(signature)  # it takes another kernel as an argument
        if by_address or nowhere():
            return None
        code = Fingerprint(_opened)
        try:
            found = code.of(self.source)
        except UncertainError:
            return None
        self._kernels = code.kernels
        self._met = code.classes | set(_classes(signature))
        ours = all(module.partition(".")[0] == "unbounded" for module in code.modules)
        return found if ours or not _extended() else None

    def _key(self, code: bytes, signature: Any) -> Any:
        chosen = tuple(str(getattr(numba.config, name, None)) for name in _SETTINGS)
        fields = tuple(kind._fields for kind in _classes(signature))  # no part of Numba's types
        return code, self._role, signature, fields, _host(), VERSIONS, chosen


@functools.cache
def _host() -> tuple[str, str, str]:
    """Return the processor that code is compiled for."""
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection: a compiler has much that is no garbage, and going through all of
    it again and again takes a sixth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _classes(kind: Any) -> Iterator[Any]:
    """Yield the NamedTuple classes of a signature or a type."""
    if isinstance(kind, types.BaseNamedTuple):
        yield kind.instance_class
    parts: Any = ()
    if isinstance(kind, tuple):
        parts = kind
    elif isinstance(kind, types.BaseTuple):
        parts = kind.types
    elif hasattr(kind, "return_type"):
        parts = kind.return_type, *kind.args
    elif isinstance(kind, types.FunctionType):
        parts = (kind.signature,)
    for part in parts:
        yield from _classes(part)


def _is_found_by_name(cls: type) -> bool:
    """Return whether a class is unpickled as itself; one of ``__main__`` would come as a copy."""
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is cls and cls.__module__ != "__main__"


def _version(code: bytes, key: Any) -> str:
    return f"{code.hex()[:16]}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def _opened(value: Any) -> Any:
    """Return what one of Numba's objects stands for."""
    cached = getattr(value, "_cache", None)
    if isinstance(cached, Cached):
        return cached.source
    if hasattr(value, "py_func"):
        # What it was compiled as, and when, is not known.
        raise UncertainError(f"{value} is compiled by Numba, not by the package")
    if type(value).__module__.partition(".")[0] == "numba" and hasattr(value, "__wrapped__"):
        return value.__wrapped__  # an intrinsic
    return value


def _extended() -> bool:
    """Return whether somebody taught Numba functions or methods: no code of a kernel shows it."""
    try:
        from numba.core.typing.templates import builtin_registry

        templates = (*builtin_registry.functions, *builtin_registry.attributes)
    except (ImportError, AttributeError):
        return True  # it cannot be known
    for template in templates:
        function = getattr(template, "_overload_func", None)
        if function is not None:
            # A few of Numba's own have no module.
            module = function.__module__ or function.__globals__.get("__name__", "")
            if module.partition(".")[0] not in ("numba", "unbounded"):
                return True
    return False
