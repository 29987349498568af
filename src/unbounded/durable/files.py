"""The files of a database in use: SQLite's, its write-ahead log's and that of the shared memory.

SQLite holds the file by POSIX locks, which a process loses when it closes any other descriptor of
the file: it is enough to read it. Then another process may remove the write-ahead log, and what is
written to it is lost. So a second lock, which belongs to one descriptor, holds the same bytes (on
Linux), and after each commit the three files must still be those that were opened.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

OFD = sys.platform == "linux" and sys.maxsize > 2**32
if OFD:
    import fcntl

_PENDING = 0x40000000  # the first of the bytes that SQLite locks; no data is ever there
_SHARED = _PENDING + 2, 510  # locked for reading while a connection is open
_TURN = _PENDING + 512, 1  # a byte of our own, locked for writing during a turn
_HEADER = 32  # bytes of the write-ahead log before its first frame

MOVED = (
    "or its -wal or -shm was removed or replaced while it was open, and what this call wrote may "
    "be lost: stop all workers, and open it again with Durable"
)
Identity = tuple[int, int]  # device and inode


def _flock(kind: str, place: tuple[int, int]) -> bytes:
    return struct.pack("hhqqi4x", getattr(fcntl, kind), os.SEEK_SET, *place, 0) if OFD else b""


_HOLD, _LET_GO = _flock("F_RDLCK", _SHARED), _flock("F_UNLCK", _SHARED)
_TAKE, _END = _flock("F_WRLCK", _TURN), _flock("F_UNLCK", _TURN)


class Files:
    """The three files of one connection.

    Parameters
    ----------
    path : str
        The database, which must exist.
    read_only : bool
        Whether to look and never write.
    """

    def __init__(self, path: str, *, read_only: bool) -> None:
        self._paths = path, f"{path}-wal", f"{path}-shm"
        self._fd = -1
        self.end_turn: Callable[[], object] = int  # in C, so that no interrupt comes before it
        if OFD:
            self._fd = os.open(path, os.O_CLOEXEC | (os.O_RDONLY if read_only else os.O_RDWR))
            self.end_turn = partial(fcntl.fcntl, self._fd, fcntl.F_OFD_SETLK, _END)
        self._first = _state(path)
        self._opened: list[Identity | None] = []
        self.orphaned = False  # whether what is written now gets lost

    @property
    def identity(self) -> Identity:
        """Device and inode of the database."""
        return self._first[:2]

    def hold(self) -> bool:
        """Keep others from removing the write-ahead log; False if one just does."""
        return self._lock(_HOLD)

    def take_turn(self) -> bool:
        """Keep others from writing; False if one does."""
        return self._lock(_TAKE)

    def _lock(self, lock: bytes) -> bool:
        if self._fd >= 0:
            try:
                fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, lock)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                return False
        return True

    def note(self) -> None:
        """Remember which files were opened; nobody removes them while they are held."""
        self._opened = [_identity(path) for path in self._paths]

    def moved(self) -> str:
        """Return what is not as it was opened, as the end of a sentence; nothing if all is."""
        found: list[os.stat_result] = []
        with suppress(OSError):
            found.extend(map(os.stat, self._paths))
        self.orphaned = [(one.st_dev, one.st_ino) for one in found] != self._opened
        if found and found[0].st_nlink != 1:
            return "has a second name (a hard link), and so a second -wal: remove one of the names"
        return MOVED if self.orphaned else ""

    def changed(self) -> bool:
        """Return whether the database was written or replaced, or a write-ahead log begun."""
        return _state(self._paths[0]) != self._first or log_size(self._paths[0]) > 0

    def let_go(self) -> None:
        """Let whoever closes the file last remove its write-ahead log; before that is done here."""
        if self._fd >= 0:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _LET_GO)

    def close(self) -> None:
        """Give everything up, after the connection was closed."""
        fd, self._fd = self._fd, -1
        self.end_turn = int
        if fd >= 0:
            os.close(fd)


def log_size(path: str) -> int:
    """Bytes of the write-ahead log; -1 if there is none."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return -1


def log_is_lost(path: str) -> bool:
    """Return whether the write-ahead log is missing or its header is damaged, while it is held.

    SQLite makes the log before the shared memory and removes it after that, and syncs the header
    of a log before it writes the first frame. It takes a log with a wrong header for an empty one.
    """
    try:
        with open(f"{path}-wal", "rb", buffering=0) as file:  # SQLite has no locks on it
            data = file.read(_HEADER + 1)  # in one call, as another process may write it now
    except FileNotFoundError:  # or not made yet: whoever makes the other file has made this one
        return os.path.exists(f"{path}-shm") and not os.path.exists(f"{path}-wal")
    return len(data) > _HEADER and not _is_header(data[:_HEADER])


def _is_header(header: bytes) -> bool:
    magic = int.from_bytes(header[:4])
    if magic & ~1 != 0x377F0682:
        return False
    order = ">" if magic & 1 else "<"
    words = struct.unpack(f"{order}6I", header[:24])
    first = second = 0
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = first + one + second & 0xFFFFFFFF
        second = second + other + first & 0xFFFFFFFF
    return struct.unpack(">2I", header[24:]) == (first, second)


def _identity(path: str) -> Identity | None:
    try:
        return _state(path)[:2]
    except FileNotFoundError:
        return None


def _state(path: str) -> tuple[int, int, int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
