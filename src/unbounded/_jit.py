"""``@kernel``: every Numba option of the package, in one place.

Numba's own ``cache=True`` looks only at the file that holds a function, so a cached caller
goes on running the old code of a callee edited in another file. Here the cache is keyed by a
hash of the module's source *and of every module of the package that it imports*, however
indirectly. Each compiled signature is one file, written under a temporary name and renamed, so
that processes that compile the same kernel at once cannot hand each other the wrong code.

``fastmath`` stays off: with it, results depended on memory addresses.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import tempfile
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.core import caching
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).resolve().parent
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": False,
    "forceinline": True,
}


def kernel(function: F, *, nogil: bool = True) -> F:
    """Compile ``function`` on first call and keep the machine code for later processes.

    Kernels that call it take it in: at ten arms a call would cost more than what it does.
    """
    return _compiled(function, _OPTIONS | {"nogil": nogil})


def subroutine(function: F) -> F:
    """As `kernel`, but callers call it: for long code beside the hottest loops."""
    return _compiled(function, _OPTIONS | {"forceinline": False})


def _compiled(function: F, options: dict[str, Any]) -> F:
    dispatcher = numba.njit(**options)(function)
    if _is_ours(function) and hasattr(dispatcher, "_cache"):  # not so under NUMBA_DISABLE_JIT
        dispatcher._cache = _Cache(function)
    compiled: F = dispatcher
    return compiled


def pointer(function: Callable[..., Any], signature: Any) -> Any:
    """Compile ``function`` for this ``signature`` into a value that kernels take as an argument.

    A kernel that takes such a pointer is compiled once, whatever function it points to.
    """
    if numba.config.DISABLE_JIT:
        return function
    compiled: Any = CFunc(
        function, numba.core.sigutils.normalize_signature(signature), {}, _OPTIONS
    )
    if _is_ours(function):
        compiled._cache = _Cache(function)
    compiled.compile()
    return compiled


class Compiled(types.WrapperAddressProtocol):
    """A kernel compiled for one signature, as a value that other kernels take as an argument.

    Its machine code is then called and not copied: a caller of a long kernel compiles quickly.
    """

    def __init__(self, dispatcher: Any, signature: Any) -> None:
        self._signature = signature
        dispatcher.compile(signature)
        result = dispatcher.overloads[signature.args]
        self._alive = dispatcher, result.library  # the code, and Python objects that it refers to
        name = result.fndesc.llvm_cfunc_wrapper_name
        self._address = int(result.library.get_pointer_to_function(name))

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        """What the kernel takes and returns."""
        return self._signature


@intrinsic
def borrowed(typing_context: Any, arrays: Any) -> Any:
    """In a kernel: the same array, or tuple of arrays, without reference counts.

    Passing arrays about costs an atomic increment and decrement each time, which at ten arms is
    most of a round. The caller must keep the arrays alive for as long as the kernel runs.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_counts(context, builder, signature.args[0], arguments[0])

    return arrays(arrays), generate


def _without_counts(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind):
            one = _without_counts(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, one, i)
    return value


def _unchanged(arrays: Any) -> Any:
    return arrays


if numba.config.DISABLE_JIT:  # for debugging: kernels are Python functions
    borrowed = _unchanged


def _is_ours(function: Callable[..., Any]) -> bool:
    """Only code inside the package is covered by `source_hash`, so only that is cached.

    A function that is made for a user's learner or adversary is written in the package but runs
    the user's steps; its module is theirs.
    """
    written_here = Path(function.__code__.co_filename).is_relative_to(_PACKAGE)
    made_for_us = str(function.__module__).partition(".")[0] == "unbounded"
    return written_here and made_for_us and cache_directory() is not None


@cache
def source_hash(*modules: str) -> str:
    """Hash of modules of the package and of all that they import from the package."""
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {np.__version__}".encode())
    for name in sorted(set().union(*map(_imported_modules, modules))):
        digest.update(name.encode())
        digest.update(_source(name).read_bytes())
    return digest.hexdigest()[:16]


def _imported_modules(module: str) -> set[str]:
    found: set[str] = set()
    waiting = {module}
    while waiting:
        name = waiting.pop()
        if name not in found and _source(name).is_file():
            found.add(name)
            waiting |= _named_in(name)
    return found


_IMPORT = re.compile(r"^\s*(?:from|import) +(unbounded[\w.]*)(?: +import +(\([^)]*\)|.*))?", re.M)


@cache
def _named_in(module: str) -> set[str]:
    """The modules that a module's import statements may mean."""
    names: set[str] = set()
    for name, parts in _IMPORT.findall(_source(module).read_text(encoding="utf-8")):
        names |= {name, *(f"{name}.{part}" for part in re.findall(r"\w+", parts))}
    return names


@cache
def _source(module: str) -> Path:
    path = _PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def cache_directory() -> Path | None:
    """Where compiled code is kept: ``UNBOUNDED_CACHE_DIR``, else the package's ``__pycache__``,
    else the user's cache directory; ``None`` where nothing can be written."""
    if "UNBOUNDED_CACHE_DIR" in os.environ:
        candidates = [Path(os.environ["UNBOUNDED_CACHE_DIR"])]
    else:
        user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        install = hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:8]
        candidates = [_PACKAGE / "__pycache__" / "kernels", user / "unbounded" / install]
    for path in candidates:
        try:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
        except OSError:
            continue
        return path
    return None


class _Locator(caching._CacheLocator):
    """Numba's question where to cache; `_Files` gives the full answer."""

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls()


class _Results(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Files:
    """One file for each compiled signature of one function: NAME.SOURCES.SIGNATURE.nbc."""

    def __init__(self, directory: Path, name: str, modules: tuple[str, ...]) -> None:
        self._directory = directory
        self._name = name
        self._modules = modules

    @property
    def _sources(self) -> str:
        return source_hash(*self._modules)  # not before it is needed: importing stays quick

    def _path(self, key: Any) -> Path:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
        return self._directory / f"{self._name}.{self._sources}.{digest}.nbc"

    def load(self, key: Any) -> Any:
        try:
            stored_key, data = pickle.loads(self._path(key).read_bytes())
        except Exception:  # missing, or damaged in any way: compile again
            return None
        return data if stored_key == key else None

    def save(self, key: Any, data: Any) -> None:
        path = self._path(key)
        temporary = path.with_suffix(f".{uuid.uuid4().hex[:12]}")
        try:
            temporary.write_bytes(caching.dumps((key, data)))
            os.replace(temporary, path)
            for old in self._directory.glob(f"{self._name}.*.nbc"):
                if not old.name.startswith(f"{self._name}.{self._sources}."):
                    old.unlink(missing_ok=True)
        except OSError:  # a full disk or a deleted directory must not stop the play
            temporary.unlink(missing_ok=True)


class _Cache(caching.FunctionCache):
    _impl_class = _Results

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        module = function.__module__
        name = f"{module.removeprefix('unbounded.')}-{function.__qualname__}".replace("<", "")
        # A function that is made for an algorithm bears the name of the algorithm's module, and
        # depends on where it is written too.
        written_in = function.__globals__["__name__"]
        modules = tuple(sorted({module, written_in}))
        self._cache_file = _Files(Path(self._cache_path), name.replace(">", ""), modules)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # A function made inside another says in its __qualname__ what it closes over; Numba would
        # hash the pickled closure, which differs from process to process.
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        return sig, codegen.magic_tuple(), code
