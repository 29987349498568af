"""The file of a durable learner: an SQLite database with a journal and snapshots.

Every row of the journal has a digest of itself and of the row before it, so that a changed, lost or
doubled row is found by whoever reads it. Nothing in this module knows what a learner is.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from unbounded.durable import forks
from unbounded.durable.files import MOVED, OFD, Files, log_is_lost, log_size
from unbounded.durable.journal import Row, Snapshot
from unbounded.durable.network_fs import network_file_system

R = TypeVar("R")

_APPLICATION = 0x756E6264  # "unbd", in the header of the file
_VERSION = 1
_LONGEST_PAUSE = 1e-3  # seconds between two tries to get a turn
_MOST = 1000  # rows that are read at a time
_PAGES = 4000  # of the write-ahead log, after which it is written back: 16 MB

_SCHEMA = """
CREATE TABLE journal (
    n INTEGER PRIMARY KEY, kind INTEGER NOT NULL, choice INTEGER, at INTEGER NOT NULL, key TEXT,
    epoch INTEGER, arm INTEGER, name TEXT, probability REAL, loss REAL, scale REAL, clipped INTEGER,
    payload BLOB, digest BLOB NOT NULL
);
CREATE UNIQUE INDEX keys ON journal (key) WHERE key IS NOT NULL;
CREATE TABLE snapshots (
    name TEXT PRIMARY KEY, n INTEGER NOT NULL, chain BLOB NOT NULL, text TEXT NOT NULL,
    digest BLOB NOT NULL
) WITHOUT ROWID;
"""
_INSERT = f"INSERT INTO journal VALUES ({', '.join('?' * 14)})"


class DurableError(RuntimeError):
    """Why the file of a durable learner cannot be used, and what to do."""


class BusyError(DurableError):
    """Other processes kept the file for longer than the timeout; nothing was changed."""


class Store:
    """One connection to the file, opened when it is used, by each process for itself.

    Parameters
    ----------
    path : path
        The database.
    synchronous : {"normal", "full"}
        Whether what was acknowledged survives the end of the process, or a power failure too.
    timeout : float
        How many seconds to wait for other processes.
    read_only : bool
        Whether to look and never write, nor make any file.
    looks : bool
        Whether it is only used for long looks, which may begin again.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str,
        timeout: float,
        read_only: bool,
        looks: bool = False,
    ) -> None:
        self.path = Path(os.path.realpath(path))  # as SQLite does: the other files are beside it
        self._synchronous, self._timeout = synchronous, timeout
        self.read_only, self._looks = read_only, looks
        self._connection: sqlite3.Connection | None = None
        self._files: Files | None = None
        self._still = False  # whether nobody was writing when the connection was opened
        self._identity: tuple[int, int] | None = None
        self.lost = ""  # why the file cannot be used any more

    # ------------------------------------------------------------------ opening

    def prepare(self, beginning: Callable[[], Snapshot] | None) -> None:
        """Check whose file it is; make it if there is none and there is a ``beginning``."""
        kind = network_file_system(self.path)
        if kind is not None:
            raise DurableError(
                f"{self.path} is on {kind}, where processes cannot share it safely: put it on a "
                "local disk, and mount directories, not files"
            )
        with self.sentences():
            log, header = log_size(str(self.path)), _header(self.path)
            if header is None and (beginning is None or self.read_only):
                raise DurableError(
                    f"there is no {self.path}: give Durable a learner to make it for"
                )
            if not self.path.parent.is_dir():
                raise DurableError(f"there is no directory {self.path.parent}: make it first")
            if log > 0 and header == b"":
                raise self.damaged("it is empty, and its write-ahead log is not")
            if header != _READY:
                with closing(self._connect("ro" if self.read_only else "rwc")) as connection:
                    self._make(connection, beginning)

    def _make(
        self, connection: sqlite3.Connection, beginning: Callable[[], Snapshot] | None
    ) -> None:
        """Make the tables, unless another process does.

        They are in the database before a write-ahead log is begun: to lose that does not leave an
        empty file.
        """
        if self._tables(connection) == 0:
            if beginning is None or self.read_only:
                raise DurableError(f"{self.path} is empty: give Durable a learner to make it for")
            with connection:
                self._patiently(connection, "BEGIN EXCLUSIVE")
                if self._tables(connection) == 0:
                    for statement in _SCHEMA.split(";")[:-1]:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
                    snapshot = beginning()
                    for name in ("first", "base", "latest"):
                        _keep(connection, name, snapshot)
        if not self.read_only:
            self._patiently(connection, "PRAGMA journal_mode = WAL")

    def _tables(self, connection: sqlite3.Connection) -> int:
        """Return the number of tables, if they are ours: who sees them must see whose they are."""
        tables, application, version = (
            int(self._patiently(connection, statement)[0][0])
            for statement in (
                "SELECT count(*) FROM sqlite_master",
                "PRAGMA application_id",
                "PRAGMA user_version",
            )
        )
        if application != _APPLICATION and (application or tables):
            raise DurableError(f"{self.path} is another program's: give another file")
        if version > _VERSION:
            raise DurableError(
                f"{self.path} has format {version}, and this version of unbounded knows "
                f"{_VERSION}: update unbounded"
            )
        return tables

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
        )

    def _opened(self) -> sqlite3.Connection:
        """Return the connection of this process."""
        if self.lost:
            raise DurableError(self.lost)
        if self.read_only and self._changed():
            self.close()
        return self._connection or self._open()

    def _changed(self) -> bool:
        """Return whether a file that is only read must be opened again."""
        if self._files is None:
            return False
        return self._files.changed() if self._still else bool(self._files.moved())

    def _open(self) -> sqlite3.Connection:
        path = str(self.path)
        files = Files(path, read_only=self.read_only)
        connection = None
        try:
            if files.identity in forks.inherited:
                raise DurableError(f"{self.path} {_INHERITED}")
            if self._identity not in (None, files.identity) and not self.read_only:
                raise DurableError(f"{self.path} {MOVED}")
            # Without a write-ahead log nothing need be locked, and nothing may be made.
            self._still = self.read_only and log_size(path) <= 0
            if not self._still:
                self._until(files.hold)
                if log_is_lost(path):
                    raise self.damaged(_LOG_LOST.format(path=self.path))
            mode = "ro" if self.read_only else "rw"
            connection = self._connect(mode + "&immutable=1" * self._still)
            self._patiently(connection, f"PRAGMA synchronous = {self._synchronous}")
            self._patiently(connection, f"PRAGMA wal_autocheckpoint = {_PAGES}")
            self._patiently(connection, "SELECT count(*) FROM sqlite_master")
            files.note()
            moved = "" if self.read_only else files.moved()
            if moved:
                raise DurableError(f"{self.path} {moved}")
        except BaseException:
            if connection is not None:
                connection.close()
            files.close()
            raise
        self._identity, self._files, self._connection = files.identity, files, connection
        return connection

    def close(self) -> None:
        """Give the file up until it is used again."""
        forks.look()
        connection, files = self._connection, self._files
        self._connection = self._files = None
        if connection is None or files is None:
            return
        if not self.read_only and files.moved():
            forks.leak(connection)  # closed, it would write an orphaned log into the file
        else:
            files.let_go()
            with suppress(sqlite3.Error):
                connection.close()
        files.close()

    def __del__(self) -> None:  # who forgets to close it should not be warned by Python instead
        with suppress(Exception):
            self.close()

    def inherit(self) -> None:
        """In a child of a fork: never touch the parent's connection, not even to close it."""
        if self._connection is not None:
            forks.leak(self._connection)
            if self._identity is not None:
                forks.inherited.add(self._identity)
        if self._files is not None:
            self._files.close()
        self._connection = self._files = None

    def hurry(self) -> None:
        """End a long look of another thread, for a fork; it then begins again."""
        connection = self._connection
        if connection is not None and self._looks:
            connection.interrupt()

    # ------------------------------------------------------------------ transactions

    def write(self, work: Callable[[], R]) -> R:
        """Let ``work`` add rows, while nobody else does: all of them, or none."""
        if self.read_only:
            raise DurableError(f"{self.path} cannot be written: it was opened with read_only=True")
        connection = self._opened()
        files = self._files
        assert files is not None
        try:
            self._until(files.take_turn)
            self._check_place(files)
            with connection:  # ends the transaction in C: no interrupt can leave it open
                self._patiently(connection, "BEGIN IMMEDIATE")
                result = work()
                self._check_process(connection)
            self._check_place(files)
        finally:
            files.end_turn()
        return result

    def read(self, work: Callable[[], R]) -> R:
        """Let ``work`` read a snapshot of the file; that blocks nobody."""
        while True:
            connection = self._opened()
            try:
                with connection:
                    connection.execute("BEGIN")
                    self._patiently(connection, "SELECT n FROM journal LIMIT 1")
                    result = work()
                    self._check_process(connection)
            except (sqlite3.Error, DurableError):
                if not (self._still and self._changed()):
                    raise
            else:
                if not (self._still and self._changed()):
                    return result

    def _check_process(self, connection: sqlite3.Connection) -> None:
        """Reject a transaction in the middle of which this process was forked."""
        forks.look()
        if connection is not self._connection:
            raise DurableError(f"{self.path} {_INHERITED}")

    def _check_place(self, files: Files) -> None:
        moved = files.moved()
        if moved:
            self.lost = f"{self.path} {moved}" if files.orphaned else ""
            raise DurableError(f"{self.path} {moved}")

    def _until(self, step: Callable[[], bool]) -> None:
        """Repeat what may have to wait for others.

        SQLite's own waiting begins with a millisecond and goes to a tenth of a second, where a
        transaction takes 50 microseconds.
        """
        until, pause = 0.0, 5e-5
        while not step():
            forks.check()
            now = time.monotonic()
            if until == 0.0:
                until = now + self._timeout
            elif now > until:
                raise BusyError(
                    f"{self.path} was in use by other processes for {self._timeout:g} s: call "
                    "again, or give Durable a longer timeout"
                )
            time.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> list[tuple[Any, ...]]:
        """Carry out a statement that may have to wait for others; the rows that it gives."""
        done: list[list[tuple[Any, ...]]] = []

        def step() -> bool:
            try:
                done.append(connection.execute(statement).fetchall())
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
            return bool(done)

        self._until(step)
        return done[0]

    @contextmanager
    def sentences(self) -> Iterator[None]:
        """Describe an error of SQLite or of the system."""
        try:
            yield
        except sqlite3.Error as error:
            self._refuse(error)
        except UnicodeDecodeError as error:  # of a name in a damaged schema, in SQLite's own words
            raise self.damaged("its schema is not text") from error
        except FileNotFoundError as error:
            raise DurableError(f"{self.path} {MOVED}") from error
        except OSError as error:
            permitted = not isinstance(error, PermissionError)
            reason = f"cannot be opened: {error.strerror}" if permitted else _CLOSED
            raise DurableError(f"{self.path} {reason}") from error

    def _refuse(self, error: sqlite3.Error) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:  # of Python's module: a text that is none, or a call that is
            undecodable = type(error) is sqlite3.OperationalError
            code = sqlite3.SQLITE_CORRUPT if undecodable else sqlite3.SQLITE_MISUSE
        code &= 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            forks.check()
        kind = BusyError if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else DurableError
        raise kind(f"{self.path} {_REASONS.get(code, f'cannot be used: {error}')}") from error

    # ------------------------------------------------------------------ rows

    def append(self, row: Row) -> None:
        """Add a row, in a transaction, if it reads as it was written."""
        self._query(_INSERT, row)
        found = self.rows(row.n, 1)[0]
        if found != row or found.text != row.text:
            raise ValueError(f"{row} cannot be kept: {self.path} would have {found}")

    def rows(self, first: int, most: int = _MOST) -> list[Row]:
        """Return the rows from number ``first`` on, as they are, and at most so many."""
        query = "SELECT * FROM journal WHERE n >= ? ORDER BY n LIMIT ?"
        return list(map(Row._make, self._query(query, (first, most))))

    @property
    def last(self) -> int:
        """The number of the last row, or of the last one that was removed."""
        found = self._query("SELECT max(n) FROM journal").fetchone()[0]
        return self.snapshot("first").n if found is None else int(found)

    def _query(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        """Carry out a statement in the transaction that has begun."""
        assert self._connection is not None
        return self._connection.execute(statement, values)

    def check(self, row: Row, n: int, chain: bytes) -> None:
        """Reject a row that was not written as number ``n``, after the one of digest ``chain``."""
        right = row.n == n and type(row.payload) in (bytes, type(None))
        if not right or row.digest != row.digest_after(chain):
            raise self.damaged(f"row {n} of its journal is not what was written")

    def row(self, n: int) -> Row | None:
        """Return a row by its number, checked; None if there is none, or none any more."""
        found = {row.n: row for row in self.rows(n - 1, 2)}
        if n not in found:
            return None
        before = found.get(n - 1)
        self.check(found[n], n, before.digest if before else self.snapshot("first").chain)
        return found[n]

    def number_of(self, key: str) -> int | None:
        """Return the number of the ask with this key."""
        found = self._query("SELECT n FROM journal WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def first_since(self, at: int) -> int | None:
        """Return the number of the first row that is not older than ``at``."""
        query = "SELECT n FROM journal WHERE at >= ? ORDER BY n LIMIT 1"
        found = self._query(query, (at,)).fetchone()
        return None if found is None else int(found[0])

    def remove_before(self, n: int) -> int:
        """Remove the rows before number ``n``; how many there were."""
        last = self.rows(n - 1, 1)
        if not last or last[0].n != n - 1:
            return 0
        self.keep("first", Snapshot(n - 1, last[0].digest, ""))
        return self._query("DELETE FROM journal WHERE n < ?", (n,)).rowcount

    # ------------------------------------------------------------------ snapshots

    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the one of that name: first, base or latest.

        "first" is what comes before the first row, "base" what can be replayed from.
        """
        assert self._connection is not None
        _keep(self._connection, name, snapshot)

    def age_of(self, name: str) -> int:
        """Return how many rows were added after a snapshot."""
        found = self._query("SELECT n FROM snapshots WHERE name = ?", (name,)).fetchone()
        return self.last - int(found[0])

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name."""
        found = self._query("SELECT * FROM snapshots WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise self.damaged("it has no snapshot")
        snapshot = Snapshot(*found[1:4])
        if type(snapshot.chain) is not bytes or found[4] != _digest(snapshot):
            raise self.damaged("its snapshot is not what was written")
        return snapshot

    def damaged(self, what: str) -> DurableError:
        """Return the error for a file in which something is wrong."""
        return DurableError(f"{self.path} {_DAMAGED} ({what})")

    # ------------------------------------------------------------------ copies

    def another(self) -> Store:
        """Return a connection of its own, for a long look."""
        return Store(
            self.path,
            synchronous=self._synchronous,
            timeout=self._timeout,
            read_only=self.read_only,
            looks=True,
        )

    def copy_to(self, path: str | os.PathLike[str]) -> None:
        """Copy the file to another that gets its name when it is complete, in a transaction."""
        assert self._connection is not None
        part = f"{os.fspath(path)}.{secrets.token_hex(4)}.part"
        try:
            with closing(sqlite3.connect(part)) as target:
                self._connection.backup(target, pages=1000, progress=lambda *_: forks.check())
            os.replace(part, path)
        except BaseException:
            for leftover in (part, f"{part}-journal"):
                with suppress(OSError):
                    os.unlink(leftover)
            raise

    def check_pages(self) -> None:
        """Reject a file whose pages do not fit together."""
        found = self._query("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise self.damaged(str(found).replace("\n", " "))


def _header(path: Path) -> bytes | None:
    """Return what the header of a database says, as `_READY` has it; None if there is no file.

    Only where `Files` has locks that this does not take away.
    """
    try:
        if not OFD:
            return b"" if path.stat().st_size == 0 else b"?"
        with open(path, "rb") as file:
            header = file.read(72)
    except FileNotFoundError:
        return None
    return header[:16] + header[18:20] + header[60:64] + header[68:72]


def _keep(connection: sqlite3.Connection, name: str, snapshot: Snapshot) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
        (name, *snapshot, _digest(snapshot)),
    )


def _digest(snapshot: Snapshot) -> bytes:
    n, chain, text = snapshot
    return hashlib.blake2b(chain + f"{n}|{text}".encode(), digest_size=16).digest()


_DAMAGED = "is damaged: restore it from a backup, docs/guide/production.md says how"
_CLOSED = "cannot be opened: make it and its directory readable and writable"
_INHERITED = (
    "was open when this process was forked, by other code than Python's or in the middle of a "
    "call: open it only after such a fork, or start workers with 'spawn'"
)
_LOG_LOST = (
    "its write-ahead log is missing or damaged: put {path}-wal back, or remove it and {path}-shm "
    "to go on without the last calls"
)
_READY = (  # ours, with a write-ahead log
    b"SQLite format 3\0\2\2" + _VERSION.to_bytes(4) + _APPLICATION.to_bytes(4)
)
_REASONS = {
    sqlite3.SQLITE_BUSY: "is in use by other processes: call again, or give a longer timeout",
    sqlite3.SQLITE_LOCKED: "is in use by other processes: call again, or give a longer timeout",
    sqlite3.SQLITE_FULL: "cannot grow, as the disk is full: free some space and call again; "
    "nothing of this call was kept",
    sqlite3.SQLITE_READONLY: "cannot be written: make it and its directory writable",
    sqlite3.SQLITE_PERM: "cannot be written: make it and its directory writable",
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_IOERR: "could not be read or written: see what is wrong with the disk; nothing "
    "of this call was kept",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: "is not the file of a durable learner, or is damaged: give another "
    "file, or restore it from a backup, docs/guide/production.md says how",
}
