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
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).resolve().parent
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": False}
_KEPT_GENERATIONS = 4  # caches of earlier sources that are not deleted yet


def kernel(function: F) -> F:
    """Compile ``function`` on first call and keep the machine code for later processes."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    return _cached(dispatcher, function)


def pointer(signature: Any) -> Callable[[F], F]:
    """Compile a function of this ``signature`` into one that kernels can take as an argument."""

    def decorate(function: F) -> F:
        return _cached(numba.njit(signature, **_OPTIONS), function)

    return decorate


def _cached(dispatcher: Any, function: F) -> F:
    ours = Path(function.__code__.co_filename).is_relative_to(_PACKAGE)
    if ours and cache_directory() is not None and hasattr(dispatcher, "_cache"):
        dispatcher._cache = _Cache(function)
    compiled: F = dispatcher
    return compiled


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
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(caching.dumps((key, data)))
            os.replace(file.name, path)
        except OSError:  # a full disk or a deleted directory must not stop the play
            Path(file.name).unlink(missing_ok=True)


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _Results

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        module = function.__module__.removeprefix("unbounded.")
        name = f"{module}.{self._impl.filename_base}".replace(os.sep, ".")
        self._cache_file = _Files(Path(self._cache_path), name)
