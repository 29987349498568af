"""One compiler at a time for each kernel: processes that start together wait for the first.

A lock is an empty file beside the compiled code, locked by ``flock``: the system frees it when its
process ends, however that happens, and nobody else can open it. Whoever has the lock deletes the
file when it is done; a process that was killed leaves its file to the next. Where there is no
``flock``, on Windows and on some network disks, processes that start together all compile.
"""

from __future__ import annotations

import os
import time
import warnings
from contextlib import suppress
from pathlib import Path

from unbounded.jit.files import CacheWarning

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

_PATIENCE = 600.0  # seconds: no kernel takes so long
_POLL = 0.05

_held: dict[Path, int] = {}  # descriptors of the locks of this process


def take(path: Path) -> bool:
    """Wait for the lock at ``path``, and take it; False where that cannot be."""
    if not HAS_LOCKS or path in _held:  # a kernel that calls itself
        return False
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            locked = _try(path)
        except OSError:  # a disk without locks, a directory that was deleted
            return False
        if locked:
            return True
        if time.monotonic() >= end:
            warnings.warn(
                f"another process has held {path} for {_PATIENCE / 60.0:.0f} minutes, and the "
                "code is compiled here too: end that process if it hangs",
                CacheWarning,
                stacklevel=2,
            )
            return False
        time.sleep(_POLL)


def _try(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it before may have deleted the file that was opened here.
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            _held[path] = descriptor
            return True
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if _held.get(path) != descriptor:
            os.close(descriptor)
    return False


def give_back(path: Path) -> None:
    """Free a lock that was taken."""
    descriptor = _held.pop(path)
    with suppress(OSError):
        path.unlink()
    fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that has a copy of it
    os.close(descriptor)


def _leave_to_parent() -> None:
    """After a fork: the lock is the parent's, and must end with it."""
    for descriptor in _held.values():
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
