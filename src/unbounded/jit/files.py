"""Files of compiled code: where they lie, whose they are, and whether they are whole.

Compiled code is run, and it is unpickled, which runs code too. So a file counts only if nobody but
the current user and root can have written it: both must own it and every directory above it, and
neither group nor others may write there (except to directories above that are sticky, as ``/tmp``
is: nobody can replace the files of others in them). Whoever fills a cache for others, as root does
in an image, needs only the ordinary permissions for that. On Windows there are no such owners; the
directory is trusted as far as its access control list lets others write.

A file is a SHA-256 and what it is the SHA-256 of, so that damage is noticed before it does harm.

Of processes that want to compile the same kernel at once, one does, and the others wait for a lock:
an empty file beside the compiled code, locked by ``flock``. The system frees it when its process
ends, however that happens. Where there is no ``flock``, on Windows and on some network disks,
processes that start together all compile.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from unbounded.io import HAS_LOCKS, PART, try_lock, unlock, write_atomic

_PACKAGE = Path(__file__).resolve().parents[1]
_SUM = hashlib.sha256().digest_size
_VARIANTS = 4  # how many versions of one kernel are kept: an edit, and another script of its name
_PATIENCE = 600.0  # seconds: no kernel takes so long
_POLL = 0.05
_SUFFIXES = (".nbc", ".lock", PART)  # of what lies in the cache

_REMEDY = "UNBOUNDED_CACHE_DIR may name a directory that only you can write"


class CacheWarning(RuntimeWarning):
    """Compiled code is not cached, so that every process compiles again; it says why.

    Examples
    --------
    >>> import warnings
    >>> from unbounded import CacheWarning
    >>> warnings.simplefilter("ignore", CacheWarning)
    """


@cache
def say(reason: str) -> None:
    """Warn, once in a process, that nothing is kept."""
    warnings.warn(f"compiled code is not cached: {reason}", CacheWarning, stacklevel=2)


def places() -> tuple[Path, ...]:
    """Return where compiled code may be: ``UNBOUNDED_CACHE_DIR`` if that is set, else the package's
    ``__pycache__`` and the user's cache directory."""
    return _places(os.environ.get("UNBOUNDED_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"))


@cache
def _places(chosen: str | None, caches: str | None) -> tuple[Path, ...]:
    if chosen is not None:
        paths = [Path(chosen)]
    else:
        user = Path(os.path.expanduser(caches or "~/.cache"))
        install = hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:8]
        paths = [_PACKAGE / "__pycache__" / "kernels"]
        if user.is_absolute():  # there is a home
            paths.append(user / "unbounded" / install)
    # Links are followed once; what they lead to is what is checked, and what is used.
    return tuple(Path(os.path.realpath(path)) for path in paths)


def distrust(directory: Path) -> str:
    """Name who else could have written the files of a directory; empty if nobody could."""
    if not hasattr(os, "geteuid"):
        return ""
    for path in (directory, *directory.parents):
        try:
            found = path.lstat()
        except FileNotFoundError:  # not made yet
            continue
        except OSError as error:
            return f"{path} cannot be examined ({error.strerror})"
        sticky_above = path != directory and found.st_mode & stat.S_ISVTX
        reason = _distrust(found, writable_by_others=bool(sticky_above))
        if reason:
            return f"{path} {reason}"
        if not stat.S_ISDIR(found.st_mode):
            return f"{path} is not a directory"
    return ""


def _distrust(found: os.stat_result, *, writable_by_others: bool = False) -> str:
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not writable_by_others:
        return "can be written by other users (chmod go-w would end that)"
    return ""


def _trusted() -> list[Path]:
    reasons = {path: distrust(path) for path in places()}
    trusted = [path for path, reason in reasons.items() if not reason]
    if not trusted:
        say(f"{'; '.join(reasons.values())}. {_REMEDY}")
    return trusted


def nowhere() -> bool:
    """Return whether no place is trusted, so that nothing need be looked for."""
    return not _trusted()


def cache_directory() -> Path | None:
    """Return where compiled code is written: the first place that is trusted and can be written."""
    return next((path for path in _trusted() if _writable(path)), None)


def why_not_written() -> str:
    """Why there is no place to write compiled code, and what to do; empty if there is one."""
    if cache_directory() is not None:
        return ""
    reasons = [distrust(path) or f"{path} cannot be written" for path in places()]
    return f"{'; '.join(reasons)}. {_REMEDY}"


@cache
def _writable(directory: Path) -> bool:
    try:
        for path in (*reversed(directory.parents), directory):
            if not path.is_dir():
                path.mkdir(mode=0o755, exist_ok=True)  # for others to read, whatever the umask
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


def read(name: str) -> bytes | None:
    """Return what was written under this name, if it is there, trusted and whole."""
    for directory in _trusted():
        try:
            data = _read(directory / name)
        except OSError as error:
            if error.errno is None:  # no error of the system: a signal handler's TimeoutError
                raise
            continue
        if hashlib.sha256(data[_SUM:]).digest() == data[:_SUM]:
            return data[_SUM:]
    return None


def _read(path: Path) -> bytes:
    # What is examined is the open file, not a name that may mean another file a moment later. A
    # link is not followed, and a pipe is not waited for.
    flags = os.O_RDONLY
    for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # not all of them everywhere
        flags |= getattr(os, flag, 0)
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        reason = _distrust(found)
        if reason:
            say(f"{path} {reason}")
        return b"" if reason or not stat.S_ISREG(found.st_mode) else file.read()


def write(kernel: str, version: str, data: bytes) -> None:
    """Keep ``data`` as the file KERNEL.VERSION, and few other versions of this kernel.

    The part of ``version`` before its first dot is what versions are counted by.
    """
    directory = cache_directory()
    if directory is None:
        say(why_not_written())
        return
    try:  # others may read and, whatever the umask, not write
        target = directory / f"{kernel}.{version}"
        write_atomic(target, hashlib.sha256(data).digest(), data, mode=0o644, sync=False)
        _forget_old(directory, kernel)
    except OSError as error:  # a full disk or a deleted directory must not stop the play
        _lost.append(f"{directory} cannot be written ({error.strerror}). {_REMEDY}")
        say(_lost[-1])


_lost: list[str] = []


def lost() -> str:
    """Return why something that was compiled could not be written; empty if everything was."""
    return _lost[-1] if _lost else ""


def _forget_old(directory: Path, kernel: str) -> None:
    versions: dict[str, list[Path]] = {}
    for path in sorted(directory.glob(f"{kernel}.*.nbc"), key=_written_at, reverse=True):
        versions.setdefault(path.name.removeprefix(f"{kernel}.").partition(".")[0], []).append(path)
    for old in list(versions.values())[_VARIANTS:]:
        for path in old:
            path.unlink(missing_ok=True)


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # another process has deleted it meanwhile
        return 0


def clear_cache() -> int:
    """Delete all compiled code of this installation; the number of files that were deleted.

    A process that compiles meanwhile is not disturbed: what it writes is deleted, or it stays.
    """
    found = [path for place in _trusted() for path in place.glob("*") if path.suffix in _SUFFIXES]
    for path in found:
        path.unlink(missing_ok=True)
    return sum(path.suffix == ".nbc" for path in found)


_held: dict[Path, IO[bytes]] = {}  # the locks of this process


def take(path: Path) -> bool:
    """Wait for the lock at ``path``, and take it; False where that cannot be."""
    if not HAS_LOCKS or path in _held:  # a kernel that calls itself
        return False
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            _held[path] = lock_file(path)
        except BlockingIOError:
            pass
        except OSError:  # a disk without locks, a directory that was deleted
            return False
        else:
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


def lock_file(path: Path) -> IO[bytes]:
    """Take the lock at ``path`` without waiting: it is held while what is returned is open.

    Raises BlockingIOError if it is taken. Where there are no locks, nothing is locked.
    """
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(path, flags, 0o600), "rb")
    try:
        locked = try_lock(file.fileno())
        # Whoever had it before may have deleted the file that was opened here.
        if locked and not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            raise FileNotFoundError
    except OSError as error:
        file.close()
        raise BlockingIOError from error
    return file


def give_back(path: Path) -> None:
    """Free a lock that was taken."""
    with _held.pop(path) as file:
        with suppress(OSError):
            path.unlink()
        unlock(file.fileno())  # also for a child that has a copy of it


def _leave_to_parent() -> None:
    """After a fork: the lock is the parent's, and must end with it."""
    for file in _held.values():
        file.close()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
