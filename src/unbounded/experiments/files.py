"""Errors of the file system as sentences that name a remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unbounded.io import try_lock, write_atomic

_FULL = "free some space and run it again; what was kept before is still there"
_CLOSED = "make the directory writable, or give another one"
_TAKEN = "something else has this name: move it away, or give another directory"
_REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.EROFS: _CLOSED,
    errno.EEXIST: _TAKEN,
    errno.EISDIR: _TAKEN,
    errno.ENOTDIR: _TAKEN,
    errno.ENAMETOOLONG: "give a shorter name",
}


class StoreError(RuntimeError):
    """Why a directory of results cannot be used, and what to do."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence why ``path`` could not be written."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {sentence(error)}") from error


def sentence(error: OSError) -> str:
    """What the system says, and what to do about it.

    Examples
    --------
    >>> from unbounded.experiments.files import sentence
    >>> sentence(PermissionError(13, "Permission denied"))
    'Permission denied; make the directory writable, or give another one'
    """
    remedy = _REMEDIES.get(error.errno or 0, "give another directory")
    return f"{error.strerror or error}; {remedy}"


@contextmanager
def locked(directory: Path, *, shared: bool = False) -> Iterator[bool]:
    """Keep other runs out of a directory, or with ``shared`` those that are not; says whether this
    disk has locks at all. The lock ends with the process, however that ends."""
    with writing(directory):
        # Read and write: a named pipe of this name is opened at once, too.
        descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield _lock(directory, descriptor, shared)
    finally:
        os.close(descriptor)


def _lock(directory: Path, descriptor: int, shared: bool) -> bool:
    try:  # without locks, two runs at once would only do work twice
        return try_lock(descriptor, shared=shared)
    except BlockingIOError:
        raise StoreError(
            f"another run is writing to {directory}: wait for it, or give another "
            "directory with --out"
        ) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically; raise a `StoreError` if that fails."""
    with writing(path):
        write_atomic(path, content)
