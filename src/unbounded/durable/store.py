"""The file of a durable learner: an SQLite database with a journal and snapshots."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from unbounded.durable import forks
from unbounded.durable.database import VERSION, Database
from unbounded.durable.errors import DurableError
from unbounded.durable.files import OFD, log_size, network_file_system, whole
from unbounded.durable.rows import MOST, Context, Row, Snapshot

R = TypeVar("R")

_APPLICATION = 0x756E6264  # "unbd", in the header of the file
_READY = (  # ours, with a write-ahead log
    b"SQLite format 3\0\2\2" + VERSION.to_bytes(3) + _APPLICATION.to_bytes(4)
)
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
_CONTEXTS = """
CREATE TABLE IF NOT EXISTS contexts (
    n INTEGER PRIMARY KEY, text TEXT NOT NULL, digest BLOB NOT NULL
)
"""  # made with the first of them: the format stays what older versions know
_INSERT = f"INSERT INTO journal VALUES ({', '.join('?' * 14)})"


class Store(Database):
    """The tables of a durable learner: rows of a journal, and snapshots."""

    # ------------------------------------------------------------------ making

    def prepare(self, beginning: Callable[[], Snapshot] | None) -> None:
        """Check whose file it is; make it if there is none and there is a ``beginning``."""
        kind = network_file_system(self.path)
        if kind is not None:
            raise DurableError(
                f"{self.path} is on {kind}, where processes cannot share it safely: put it on a "
                "local disk, and mount directories, not files"
            )
        log, header = log_size(str(self.path)), _header(self.path)
        if header is None and (beginning is None or self.read_only):
            raise DurableError(f"there is no {self.path}: give Durable a learner to make it for")
        if not self.path.parent.is_dir():
            raise DurableError(f"there is no directory {self.path.parent}: make it first")
        if log > 0 and header == b"":
            raise self.damaged("it is empty, and its write-ahead log is not")
        if header != _READY:
            with closing(self._connect("ro" if self.read_only else "rwc")) as connection:
                self._make(connection, beginning)

    def create(self, beginning: Snapshot, fill: Callable[[Store], R]) -> R:
        """Make the file, which gets its name when ``fill`` has written to it."""
        if os.path.exists(self.path):
            raise DurableError(f"{self.path} exists: give a new file")
        with whole(self.path) as path, closing(self._like(path)) as part:
            part.prepare(lambda: beginning)
            return part.write(lambda: fill(part))

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
                    connection.execute(f"PRAGMA user_version = {VERSION}")
                    snapshot = beginning()
                    for name in ("first", "base", "latest"):
                        _keep(connection, name, snapshot)
        if not self.read_only:
            self._patiently(connection, "PRAGMA journal_mode = WAL")

    def _tables(self, connection: sqlite3.Connection) -> int:
        """Return the number of tables, if they are ours: who sees them must see whose they are."""
        tables, application = (
            int(self._patiently(connection, statement)[0][0])
            for statement in ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id")
        )
        if application != _APPLICATION and (application or tables):
            raise DurableError(f"{self.path} is another program's: give another file")
        self._check_version(connection)
        return tables

    # ------------------------------------------------------------------ rows

    def append(self, row: Row) -> None:
        """Add a row, in a transaction, if it reads as it was written."""
        self.query(_INSERT, row)
        found = self.rows(row.n, 1)[0]
        if found != row or found.content != row.content:
            raise ValueError(f"{row} cannot be kept: {self.path} would have {found}")

    def rows(self, first: int, most: int = MOST) -> list[Row]:
        """Return the rows from number ``first`` on, as they are, and at most so many."""
        query = "SELECT * FROM journal WHERE n >= ? ORDER BY n LIMIT ?"
        return list(map(Row._make, self.query(query, (first, most))))

    @property
    def last(self) -> int:
        """The number of the last row, or of the last one that was removed."""
        found = self.query("SELECT max(n) FROM journal").fetchone()[0]
        return self.snapshot("first").n if found is None else int(found)

    def number_of(self, key: str) -> int | None:
        """Return the number of the ask with this key."""
        found = self.query("SELECT n FROM journal WHERE key = ?", (key,)).fetchone()
        return None if found is None else int(found[0])

    def first_since(self, at: int) -> int | None:
        """Return the number of the first row that is not older than ``at``."""
        query = "SELECT n FROM journal WHERE at >= ? ORDER BY n LIMIT 1"
        found = self.query(query, (at,)).fetchone()
        return None if found is None else int(found[0])

    def remove_before(self, n: int) -> int:
        """Remove the rows before number ``n``; how many there were."""
        last = self.rows(n - 1, 1)
        if not last or last[0].n != n - 1:
            return 0
        self.keep("first", Snapshot(n - 1, last[0].digest, ""))
        if self._has_contexts():
            self.query("DELETE FROM contexts WHERE n < ?", (n,))
        return self.query("DELETE FROM journal WHERE n < ?", (n,)).rowcount

    # ------------------------------------------------------------------ contexts

    def attach(self, context: Context) -> None:
        """Store the context of an ask."""
        self.query(_CONTEXTS)
        self.query("INSERT INTO contexts VALUES (?, ?, ?)", context)

    def contexts(self, first: int, last: int) -> list[Context]:
        """Return the contexts of the rows from ``first`` to ``last``, as they are."""
        if not self._has_contexts():
            return []
        query = "SELECT * FROM contexts WHERE n BETWEEN ? AND ? ORDER BY n"
        return list(map(Context._make, self.query(query, (first, last))))

    def detach(self, numbers: Collection[int]) -> int:
        """Delete the contexts of these rows, and overwrite them; how many there were."""
        if not self._has_contexts():
            return 0
        self.query("PRAGMA secure_delete = on")
        delete = "DELETE FROM contexts WHERE n = ?"
        return sum(self.query(delete, (n,)).rowcount for n in numbers)

    def _has_contexts(self) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE name = 'contexts'"
        return self.query(query).fetchone() is not None

    # ------------------------------------------------------------------ snapshots

    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the one of that name: first, base or latest.

        "first" is what comes before the first row, "base" what can be replayed from.
        """
        assert self._connection is not None
        _keep(self._connection, name, snapshot)

    def age_of(self, name: str) -> int:
        """Return how many rows were added after a snapshot; all of them if it is missing."""
        found = self.query("SELECT n FROM snapshots WHERE name = ?", (name,)).fetchone()
        return self.last - (0 if found is None else int(found[0]))

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name."""
        found = self.query("SELECT * FROM snapshots WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise self.damaged("it has no snapshot")
        snapshot = Snapshot(*found[1:4])
        if type(snapshot.chain) is not bytes or found[4] != snapshot.digest:
            raise self.damaged("its snapshot is not what was written")
        return snapshot

    # ------------------------------------------------------------------ copies

    def another(self) -> Store:
        """Return a connection of its own, for a long look."""
        return self._like(self.path, looks=True)

    def _like(self, path: str | os.PathLike[str], *, looks: bool = False) -> Store:
        return Store(
            path,
            synchronous=self._synchronous,
            timeout=self._timeout,
            read_only=self.read_only,
            looks=looks,
        )

    def copy_to(self, path: str | os.PathLike[str]) -> None:
        """Copy the file to another that gets its name when it is complete, in a transaction."""
        assert self._connection is not None
        with whole(path) as part, closing(sqlite3.connect(part)) as target:
            self._connection.backup(target, pages=1000, progress=lambda *_: forks.check())

    def check_pages(self) -> None:
        """Reject a file whose pages do not fit together."""
        found = self.query("PRAGMA integrity_check(1)").fetchone()[0]
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
    return header[:16] + header[18:20] + header[61:64] + header[68:72]


def _keep(connection: sqlite3.Connection, name: str, snapshot: Snapshot) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
        (name, *snapshot, snapshot.digest),
    )
