"""One connection to a database: opened when it is used, transactions, and no loss in silence.

Nothing in this module knows what the database holds.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from unbounded.durable import forks
from unbounded.durable.errors import (
    BusyError,
    DurableError,
    damaged,
    inherited,
    log_lost,
    sentences,
)
from unbounded.durable.files import MARK, MOVED, Files, log_size

R = TypeVar("R")

VERSION = 1  # of the format, which the database has as its user_version
_LONGEST_PAUSE = 1e-3  # seconds between two tries to get a turn
_PAGES = 4000  # of the write-ahead log, after which it is written back: 16 MB
_UNREADABLE = (
    "has a -wal and no -shm, which only who writes it may make: open it once without read_only=True"
)
_LOOKS = 10  # at a mark that another process may just set


class Database:
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

    @property
    def place(self) -> str:
        """What error messages call it."""
        return str(self.path)

    def now(self) -> int:
        """Return microseconds since 1970."""
        return time.time_ns() // 1000

    def errors(self) -> AbstractContextManager[None]:
        """Describe errors of SQLite and of the system in sentences."""
        return sentences(self.path)

    # ------------------------------------------------------------------ transactions

    def write(self, work: Callable[[], R], keys: Collection[str] = ()) -> R:
        """Let ``work`` change something, while nobody else does: all of it, or nothing."""
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
            if files.marked is False:
                self._mark(files)
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
                    self._patiently(connection, "SELECT 1 FROM sqlite_master LIMIT 1")
                    result = work()
                    self._check_process(connection)
            except (sqlite3.Error, DurableError):
                if not (self._still and self._changed()):
                    raise
            else:
                if not (self._still and self._changed()):
                    return result

    def query(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        """Carry out a statement in the transaction that has begun."""
        assert self._connection is not None
        return self._connection.execute(statement, values)

    def _check_process(self, connection: sqlite3.Connection) -> None:
        """Reject a transaction in the middle of which this process was forked."""
        forks.look()
        if connection is not self._connection:
            raise inherited(self.path)

    def _check_place(self, files: Files) -> None:
        moved = files.moved()
        self.lost = f"{self.path} {moved}" if files.orphaned else ""
        self._check(moved)

    def _check(self, reason: str) -> None:
        if reason:
            raise DurableError(f"{self.path} {reason}")

    def _mark(self, files: Files) -> None:
        """Mark the database, in the file itself, as one that a write-ahead log goes with.

        In the log, on the disk, is the same page without the mark. Whoever reads both, or writes
        the log back, does not see it; whoever has lost the log does. To write the log back removes
        the mark, so that must not happen in between. If this fails, the next call does it.
        """
        with suppress(sqlite3.Error), closing(self._connect("rw")) as connection:
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("PRAGMA synchronous = full")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            files.mark()

    # ------------------------------------------------------------------ opening and closing

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
                raise inherited(self.path)
            if not self.read_only:
                moved = MOVED if self._identity not in (None, files.identity) else files.linked()
                self._check(moved)
            # Without a write-ahead log nothing need be locked, and nothing may be made.
            self._still = self.read_only and log_size(path) <= 0
            if not self._still:
                self._until(files.hold)
                if self.read_only and not os.path.exists(f"{path}-shm"):
                    raise DurableError(f"{self.path} {_UNREADABLE}")
            mode = "ro" if self.read_only else "rw"
            connection = self._connect(mode + "&immutable=1" * self._still)
            self._patiently(connection, f"PRAGMA synchronous = {self._synchronous}")
            self._patiently(connection, f"PRAGMA wal_autocheckpoint = {_PAGES}")
            self._check_version(connection)
            files.note()
            if not self.read_only:
                self._check(files.moved())
        except BaseException as error:
            if connection is not None:
                connection.close()  # while it is held: a damaged log is not removed
            files.close()
            others = files.changed() if self._still else self.read_only and log_size(path) <= 0
            if others and isinstance(error, DurableError | sqlite3.Error):
                return self._open()  # it was opened, or closed, just now
            raise
        self._identity, self._files, self._connection = files.identity, files, connection
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=0.0,
            isolation_level=None,
            check_same_thread=False,
        )

    def _check_version(self, connection: sqlite3.Connection) -> None:
        """Reject a format that is not known, and a database that has lost its log."""
        for _ in range(_LOOKS):
            version = int(self._patiently(connection, "PRAGMA user_version")[0][0])
            if not version & MARK:
                break
        else:
            raise log_lost(self.path)
        if version > VERSION:
            raise DurableError(
                f"{self.path} has format {version}, and this version of unbounded knows "
                f"{VERSION}: update unbounded"
            )

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

    # ------------------------------------------------------------------ waiting

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

    def damaged(self, what: str) -> DurableError:
        """Return the error for a file in which something is wrong."""
        return damaged(self.path, what)
