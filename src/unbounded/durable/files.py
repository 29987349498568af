"""The files of a database in use: SQLite's, its write-ahead log's and that of the shared memory.

SQLite holds the file by POSIX locks, which a process loses when it closes any other descriptor of
the file: it is enough to read it. Then another process may remove the write-ahead log, and what is
written to it is lost. So a second lock, which belongs to one descriptor, holds the same bytes (on
Linux), and after each commit the three files must still be those that were opened.

The write-ahead log needs locks that work and memory that all processes share; a file system of the
network has neither, and a file there is damaged sooner or later (`network_file_system`).
"""

from __future__ import annotations

import errno
import os
import secrets
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

OFD = sys.platform == "linux" and sys.maxsize > 2**32
if OFD:
    import fcntl

_PENDING = 0x40000000  # the first of the bytes that SQLite locks; no data is ever there
_SHARED = _PENDING + 2, 510  # locked for reading while a connection is open
_TURN = _PENDING + 512, 1  # a byte of our own, locked for writing during a turn
_PLACE = 60  # of the first byte of the user_version, in the header of a database
MARK = 0x40 << 24  # in the user_version: a write-ahead log goes with this file

MOVED = (
    "or its -wal or -shm was removed or replaced while it was open, and what this call wrote may "
    "be lost: stop all workers, and open it again with Durable"
)
_SECOND = "has a second name (a hard link), and so a second -wal: remove one of the names"
_MARKED = MARK.to_bytes(4)[:1]
Identity = tuple[int, int]  # device and inode

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs2", "glusterfs", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "osxfs", "panfs", "prl_fs", "pvfs2",
    "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs",
    "fuse.blobfuse", "fuse.blobfuse2", "fuse.ceph", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.goofys", "fuse.grpcfuse", "fuse.gvfsd-fuse", "fuse.juicefs", "fuse.mfs", "fuse.moosefs",
    "fuse.mount-s3", "fuse.osxfs", "fuse.prl_fsd", "fuse.rclone", "fuse.s3fs", "fuse.seaweedfs",
    "fuse.sshfs", "fuse.vmhgfs-fuse",
}  # fmt: skip


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

    def linked(self) -> str:
        """Return that the database has two names, as the end of a sentence; nothing if not."""
        return _SECOND if os.stat(self._paths[0]).st_nlink != 1 else ""

    def moved(self) -> str:
        """Return what is not as it was opened, as the end of a sentence; nothing if all is."""
        found: list[os.stat_result] = []
        with suppress(OSError):
            found.extend(map(os.stat, self._paths))
        self.orphaned = [(one.st_dev, one.st_ino) for one in found] != self._opened
        if found and found[0].st_nlink != 1:
            return _SECOND
        return MOVED if self.orphaned else ""

    @property
    def marked(self) -> bool | None:
        """Whether the database says that a log goes with it; None where there are no marks."""
        return os.pread(self._fd, 1, _PLACE) == _MARKED if self._fd >= 0 else None

    def mark(self) -> None:
        """Let the database say that a log goes with it."""
        os.pwrite(self._fd, _MARKED, _PLACE)

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


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give a file its name when it is complete and on the disk; else remove it."""
    part = f"{os.fspath(path)}.{secrets.token_hex(4)}.part"
    try:
        yield part
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        for ending in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(part + ending)
        raise


def log_size(path: str) -> int:
    """Return bytes of the write-ahead log; -1 if there is none."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return -1


def _identity(path: str) -> Identity | None:
    try:
        return _state(path)[:2]
    except FileNotFoundError:
        return None


def _state(path: str) -> tuple[int, int, int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def network_file_system(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of network file system that ``path`` is on, as far as the system tells.

    Linux does; elsewhere only a path like ``\\\\server\\share`` is recognized. A file that is
    mounted alone is reported too: the files beside it are not those that others see.

    Examples
    --------
    >>> from unbounded.durable.files import network_file_system
    >>> network_file_system("/proc")
    """
    if os.name == "nt":
        return "a network share" if os.path.realpath(path).startswith("\\\\") else None
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place = Path(os.path.realpath(path))
    best, found = -1, ""
    for line in lines:  # 36 35 98:0 /root /where options ... - kind source options
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        where = Path(_unescaped(fields[4]))
        if place.is_relative_to(where) and len(where.parts) >= best:  # the last one mounted counts
            best, found = len(where.parts), after.split()[0]
    if best == len(place.parts) and not place.is_dir():
        return "a mount of its own"
    return found if found in _NETWORK else None


def _unescaped(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
