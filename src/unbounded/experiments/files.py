"""Files as the laboratory reads and writes them: whole or not at all, and never waiting.

Whatever lies in a directory under a name that the laboratory uses (a named pipe, a device, a
directory) is an error with a sentence, and not a file that never ends.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PART = ".part"
"""How the name of a file ends that is being written."""

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
    try:
        import fcntl

        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreError(
            f"another run is writing to {directory}: wait for it, or give another "
            "directory with --out"
        ) from None
    except (ImportError, OSError):  # not on this system, or on this disk: two runs at once
        return False  # would only do work twice
    return True


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; an OSError for what is not a regular one, without waiting for it."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)  # a named pipe without a writer is opened at once
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there in full or not at all, whenever the process is killed."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{PART}")
    with writing(path):
        try:
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
