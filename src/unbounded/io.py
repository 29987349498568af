"""Files: atomic writes, reads that never block, locks that end with their process; their text."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from contextlib import suppress

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

PART = ".part"
"""The suffix of a file that is being written."""


def write_atomic(
    path: str | os.PathLike[str], *content: bytes, mode: int | None = None, sync: bool = True
) -> None:
    """Write a file completely or not at all, even if the process is killed.

    Parameters
    ----------
    path : path
        The file. A symbolic link is replaced, not followed.
    *content : bytes
        The parts, written one after another.
    mode : int, optional
        Its permissions, less the umask; by default those of the file that is replaced.
    sync : bool
        Whether to flush to disk before the file gets its name, so that it survives a power failure.
    """
    directory, name = os.path.split(os.path.abspath(path))
    part = os.path.join(directory, f"{name[:40]}.{secrets.token_hex(8)}{PART}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(part, flags, 0o666 if mode is None else mode), "wb") as file:
            for some in content:
                file.write(some)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if mode is None and os.path.isfile(path):
            os.chmod(part, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file; raise an OSError for anything else, without waiting.

    For a pipe, a device or a directory the error is a ValueError as well.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)  # a named pipe without a writer is opened at once
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise io.UnsupportedOperation(errno.EINVAL, "it is not a regular file", os.fspath(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the advisory lock of an open file without waiting.

    Returns
    -------
    bool
        False if this system or this disk has no locks.

    Raises
    ------
    BlockingIOError
        If another process holds the lock.
    """
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Free the lock of an open file, for every process that has a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def printable(text: object) -> str:
    """Escape what a terminal obeys instead of showing it; for text that comes from files.

    Control characters and escape sequences can set a title, fill the clipboard or forge a line;
    bidirectional overrides and characters without width show something else than is there.

    Examples
    --------
    >>> from unbounded.io import printable
    >>> print(printable("eu" + chr(27) + "]0;title" + chr(7) + chr(0x202E) + "gnol"))
    eu\\x1b]0;title\\x07\\u202egnol
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )
