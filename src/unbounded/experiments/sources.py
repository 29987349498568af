"""What a result was computed with: a hash of sources of the package, and of files of data."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def source_hash(*modules: str) -> str:
    """Hash of modules of the package and of all that they import from the package."""
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {np.__version__}".encode())
    for name in sorted(set().union(*map(_imported_modules, modules))):
        digest.update(name.encode())
        digest.update(_source(name).read_bytes())
    return digest.hexdigest()[:16]


def named_file(settings: Mapping[str, Any]) -> str:
    """The file that is named as ``path`` among settings; empty if there is none."""
    path = settings.get("path")
    return path if isinstance(path, str) and os.path.isfile(path) else ""


def content_hash(path: str) -> str:
    """Hash of what is in a file."""
    status = Path(path).stat()
    return _content_hash(path, status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _content_hash(path: str, *_: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


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
