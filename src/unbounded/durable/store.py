"""The file of a durable learner: an SQLite database with a journal and two snapshots.

Every row of the journal has a digest of itself and of the row before it, so that a changed, lost or
doubled row is found by whoever reads it. Nothing in this module knows what a learner is.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn, Self

from unbounded.durable.journal import Row, Snapshot
from unbounded.durable.network_fs import network_file_system

_APPLICATION = 0x756E6264  # "unbd", in the header of the file
_VERSION = 1
_LONGEST_PAUSE = 1e-3  # seconds between two tries to get a turn
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
    """One connection to the file, made again in a child of a fork.

    Parameters
    ----------
    path : path
        The database; it is made if it does not exist.
    synchronous : {"normal", "full"}
        Whether what was acknowledged survives the end of the process, or a power failure too.
    timeout : float
        How many seconds to wait for other processes.
    create : bool
        Whether to make a file that does not exist.
    read_only : bool
        Whether to look and never write.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str,
        timeout: float,
        create: bool,
        read_only: bool,
    ) -> None:
        self.path = Path(os.path.abspath(path))
        self._synchronous, self._timeout = synchronous, timeout
        self.read_only = read_only
        self._connection: sqlite3.Connection | None = None
        kind = network_file_system(self.path)
        if kind is not None:
            raise DurableError(
                f"{self.path} is on {kind}, where processes cannot share it safely: put it on a "
                "local disk"
            )
        try:
            found, room = self.path.exists(), self.path.parent.is_dir()
        except OSError as error:
            raise DurableError(f"{self.path} cannot be reached: {error.strerror}") from error
        if not (create or found):
            raise DurableError(f"there is no {self.path}: give Durable a learner to make it for")
        if not room:
            raise DurableError(f"there is no directory {self.path.parent}: make it first")
        with self.sentences():
            self._open()

    # ------------------------------------------------------------------ opening

    def _open(self) -> sqlite3.Connection:
        mode = "ro" if self.read_only else "rwc"
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # Another process may just be making the file: each may have to wait, and who sees the
            # tables must see whose they are.
            tables, application, version = (
                self._patiently(connection, statement).fetchone()[0]
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
            if not self.read_only:
                self._patiently(connection, "PRAGMA journal_mode = WAL")
            self._patiently(connection, f"PRAGMA synchronous = {self._synchronous}")
            self._patiently(connection, f"PRAGMA wal_autocheckpoint = {_PAGES}")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def create(self, snapshot: Snapshot) -> None:
        """Make the tables, in a transaction that has begun; ``snapshot`` is the beginning."""
        connection = self._opened()
        for statement in _SCHEMA.split(";")[:-1]:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        for name in ("first", "base", "latest"):
            self.keep(name, snapshot)

    @property
    def empty(self) -> bool:
        """Whether nothing was made in the file yet."""
        found = self._patiently(self._opened(), "SELECT count(*) FROM sqlite_master").fetchone()
        return bool(found[0] == 0)

    def _opened(self) -> sqlite3.Connection:
        return self._connection or self._open()

    def close(self) -> None:
        """Give the file up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with self.sentences():
                connection.close()

    def __del__(self) -> None:  # who forgets to close it should not be warned by Python instead
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def abandon(self) -> None:
        """In a child of a fork: never touch the parent's connection, not even to close it."""
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None

    # ------------------------------------------------------------------ transactions

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that sees the last row and keeps other processes from adding to it."""
        with self.sentences():
            connection = self._opened()
            self._patiently(connection, "BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction that sees the file of one moment, and stops nobody."""
        with self.sentences():
            connection = self._opened()
            connection.execute("BEGIN")
            try:
                self._patiently(connection, "SELECT n FROM journal LIMIT 1")
                yield
            finally:
                self._undo(connection)

    @staticmethod
    def _undo(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> sqlite3.Cursor:
        """Carry out what may have to wait for others.

        SQLite's own waiting begins with a millisecond and goes to a tenth of a second, where a
        transaction takes 50 microseconds.
        """
        until, pause = 0.0, 5e-5
        while True:
            try:
                return connection.execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
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

    @contextmanager
    def sentences(self) -> Iterator[None]:
        """Say in a sentence what SQLite does not like."""
        try:
            yield
        except sqlite3.Error as error:
            self._refuse(error)
        except UnicodeDecodeError as error:  # of a name in a damaged schema, in SQLite's own words
            raise self.damaged("its schema is not text") from error

    def _refuse(self, error: sqlite3.Error) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # or not text
        kind = BusyError if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else DurableError
        raise kind(f"{self.path} {_REASONS.get(code, f'cannot be used: {error}')}") from error

    # ------------------------------------------------------------------ rows

    def append(self, row: Row) -> None:
        """Add a row, in a transaction."""
        self._opened().execute(_INSERT, row)

    def rows(self, first: int) -> Iterator[Row]:
        """The rows from number ``first`` on, as they are."""
        found = self._opened().execute("SELECT * FROM journal WHERE n >= ? ORDER BY n", (first,))
        return map(Row._make, found)

    def checked_rows(self, first: int, chain: bytes) -> Iterator[Row]:
        """The rows from number ``first`` on; ``chain`` is the digest of the one before them."""
        for row in self.rows(first):
            self.check(row, first, chain)
            yield row
            first, chain = first + 1, row.digest

    def check(self, row: Row, n: int, chain: bytes) -> None:
        """Refuse a row that was not written as number ``n``, after the one of digest ``chain``."""
        right = row.n == n and type(row.payload) in (bytes, type(None))
        if not right or row.digest != row.digest_after(chain):
            raise self.damaged(f"row {n} of its journal is not what was written")

    def row(self, n: int) -> Row | None:
        """A row by its number, checked; None if there is none, or none any more."""
        before = None
        for row in self.rows(n - 1):
            if row.n == n:
                chain = before.digest if before else self.snapshot("first").chain
                self.check(row, n, chain)
                return row
            if row.n > n:
                return None
            before = row
        return None

    def number_of(self, key: str) -> int | None:
        """The number of the ask with this key."""
        found = self._opened().execute("SELECT n FROM journal WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def first_since(self, at: int) -> int | None:
        """The number of the first row that is not older than ``at``."""
        query = "SELECT n FROM journal WHERE at >= ? ORDER BY n LIMIT 1"
        found = self._opened().execute(query, (at,)).fetchone()
        return None if found is None else int(found[0])

    def remove_before(self, n: int) -> int:
        """Remove the rows before number ``n``; how many there were."""
        last = next(self.rows(n - 1), None)
        if last is None or last.n != n - 1:
            return 0
        self.keep("first", Snapshot(last.n, last.digest, ""))
        return self._opened().execute("DELETE FROM journal WHERE n < ?", (n,)).rowcount

    # ------------------------------------------------------------------ snapshots

    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the one of that name: first, base or latest.

        "first" is what comes before the first row, "base" what can be replayed from.
        """
        self._opened().execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
            (name, *snapshot, _digest(snapshot)),
        )

    def snapshot(self, name: str) -> Snapshot:
        """The snapshot of that name."""
        found = self._opened().execute("SELECT * FROM snapshots WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise self.damaged("it has no snapshot")
        snapshot = Snapshot(*found[1:4])
        if type(snapshot.chain) is not bytes or found[4] != _digest(snapshot):
            raise self.damaged("its snapshot is not what was written")
        return snapshot

    def damaged(self, what: str) -> DurableError:
        """The error for a file in which something is wrong."""
        return DurableError(f"{self.path} {_DAMAGED} ({what})")

    # ------------------------------------------------------------------ copies

    def another(self) -> Store:
        """A connection of its own, for a long look."""
        return Store(
            self.path,
            synchronous=self._synchronous,
            timeout=self._timeout,
            create=False,
            read_only=True,
        )

    def copy_to(self, path: str | os.PathLike[str]) -> None:
        """Copy the file of one moment to another, while it is in use."""
        with self.sentences(), closing(sqlite3.connect(path)) as target:
            self._opened().backup(target)

    def check_pages(self) -> None:
        """Refuse a file whose pages do not fit together."""
        found = self._opened().execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise self.damaged(str(found).replace("\n", " "))


def _digest(snapshot: Snapshot) -> bytes:
    n, chain, text = snapshot
    return hashlib.blake2b(chain + f"{n}|{text}".encode(), digest_size=16).digest()


_DAMAGED = "is damaged: restore it from a backup, docs/guide/production.md says how"
_REASONS = {
    sqlite3.SQLITE_BUSY: "is in use by other processes: call again, or give a longer timeout",
    sqlite3.SQLITE_LOCKED: "is in use by other processes: call again, or give a longer timeout",
    sqlite3.SQLITE_FULL: "cannot grow, as the disk is full: free some space and call again; "
    "nothing of this call was kept",
    sqlite3.SQLITE_READONLY: "cannot be written: make it and its directory writable",
    sqlite3.SQLITE_PERM: "cannot be written: make it and its directory writable",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: make it and its directory readable and writable",
    sqlite3.SQLITE_IOERR: "could not be read or written: see what is wrong with the disk; nothing "
    "of this call was kept",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,  # a table is missing
    sqlite3.SQLITE_NOTADB: "is not the file of a durable learner, or is damaged: give another "
    "file, or restore it from a backup, docs/guide/production.md says how",
}
