"""``@kernel``: every Numba option of the package, in one place.

Numba's own ``cache=True`` looks only at the file that holds a function, so a cached caller
goes on running the old code of a callee edited in another file. Here the cache is keyed by a
hash of *all* the package's sources: any edit starts a new one. Each compiled signature is one
file, written under a temporary name and renamed, so that processes that compile the same
kernel at once cannot hand each other the wrong code.

``fastmath`` stays off: with it, results depended on memory addresses.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching
from numba.core.ccallback import CFunc
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).resolve().parent
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False, "forceinline": True}
_KEPT_GENERATIONS = 4  # caches of earlier sources that are not deleted yet


def kernel(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code for later processes."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    if _is_ours(function) and hasattr(dispatcher, "_cache"):  # not so under NUMBA_DISABLE_JIT
        dispatcher._cache = _Cache(function)
    compiled: F = dispatcher
    return compiled


def pointer(function: Callable[..., Any], signature: Any) -> Any:
    """Compile ``function`` for this ``signature`` into a value that kernels take as an argument.

    A kernel that takes such a pointer is compiled once, whatever function it points to.
    """
    compiled = CFunc(function, numba.core.sigutils.normalize_signature(signature), {}, _OPTIONS)
    if _is_ours(function):
        compiled._cache = _Cache(function)
    compiled.compile()
    return compiled


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing_context: Any, array: Any) -> Any:
    """In a kernel: the same array without its reference count.

    Passing arrays about costs an atomic increment and decrement each time, which at ten arms is
    most of a round. The caller must keep the array alive for as long as the kernel runs.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = view.meminfo.type(None)
        view.parent = view.parent.type(None)
        return view._getvalue()

    return array(array), generate


def _is_ours(function: Callable[..., Any]) -> bool:
    """Only code inside the package is covered by `source_hash`, so only that is cached."""
    ours = Path(function.__code__.co_filename).is_relative_to(_PACKAGE)
    return ours and cache_directory() is not None


@cache
def source_hash() -> str:
    """Hash of the package's sources and of the versions that compile them."""
    digest = hashlib.sha256(f"{sys.version} {numba.__version__}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_directory() -> Path | None:
    """Where compiled code is kept: ``UNBOUNDED_CACHE_DIR``, else the package's ``__pycache__``,
    else the user's cache directory; ``None`` where nothing can be written."""
    if "UNBOUNDED_CACHE_DIR" in os.environ:
        candidates = [Path(os.environ["UNBOUNDED_CACHE_DIR"])]
    else:
        user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        candidates = [_PACKAGE / "__pycache__", user / "unbounded"]
    for root in candidates:
        path = root / f"kernels-{source_hash()}"
        try:
            path.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path).close()
        except OSError:
            continue
        os.utime(path)
        _forget_old_generations(root)
        return path
    return None


def _forget_old_generations(root: Path) -> None:
    def last_used(path: Path) -> float:
        try:
            return path.stat().st_mtime
        except OSError:
            return 0.0

    generations = sorted(root.glob("kernels-*"), key=last_used, reverse=True)
    for path in generations[_KEPT_GENERATIONS:]:
        shutil.rmtree(path, ignore_errors=True)


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Tells Numba where to cache; the directory's name already says which sources it is of."""

    def __init__(self, line: int) -> None:
        self._line = line

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return source_hash()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func.__code__.co_firstlineno)


class _Results(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Files:
    """One file for each compiled signature of one function."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name

    def _path(self, key: Any) -> Path:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
        return self._directory / f"{self._name}.{digest}.nbc"

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
        except OSError:  # a full disk or a deleted directory must not stop the play
            temporary.unlink(missing_ok=True)


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Results

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        module = function.__module__.removeprefix("unbounded.")
        name = f"{module}.{self._impl.filename_base}".replace(os.sep, ".")
        self._cache_file = _Files(Path(self._cache_path), name)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # A function made inside another says in its __qualname__ what it closes over; Numba would
        # hash the pickled closure, which differs from process to process.
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        return sig, codegen.magic_tuple(), code
