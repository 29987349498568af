"""What cannot be done with the file of a durable learner, in sentences that say what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from unbounded.durable import forks
from unbounded.durable.files import MOVED

_DAMAGED = "is damaged: restore it from a backup, docs/guide/production.md says how"
_BUSY = "is in use by other processes: call again, or give a longer timeout"
_UNWRITABLE = "cannot be written: make it and its directory writable"
_CLOSED = (
    "cannot be opened: make it and its directory readable and writable, or only look, with "
    "read_only=True"
)
_REASONS = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: "cannot grow, as the disk is full: free some space and call again; "
    "nothing of this call was kept",
    sqlite3.SQLITE_READONLY: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_IOERR: "could not be read or written: see what is wrong with the disk; nothing "
    "of this call was kept",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: "is not the file of a durable learner, or is damaged: give another "
    "file, or restore it from a backup, docs/guide/production.md says how",
}


class DurableError(RuntimeError):
    """Why the file of a durable learner cannot be used, and what to do."""


class BusyError(DurableError):
    """Other processes kept the file for longer than the timeout; nothing was changed."""


def damaged(path: Path | str, what: str) -> DurableError:
    """Return the error for a file in which something is wrong."""
    return DurableError(f"{path} {_DAMAGED} ({what})")


def inherited(path: Path) -> DurableError:
    """Return the error for a file whose connection is that of a parent process."""
    return DurableError(
        f"{path} was open when this process was forked, by other code than Python's or in the "
        "middle of a call: open it only after such a fork, or start workers with 'spawn'"
    )


def log_lost(path: Path) -> DurableError:
    """Return the error for a file without the write-ahead log that goes with it."""
    return damaged(
        path,
        f"its write-ahead log is missing or damaged: put {path}-wal back, or run `PRAGMA "
        "user_version = 1` in sqlite3 to go on without the last calls",
    )


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """Describe an error of SQLite or of the system."""
    try:
        yield
    except sqlite3.Error as error:
        _reject(path, error)
    except UnicodeDecodeError as error:  # of a name in a damaged schema, in SQLite's own words
        raise damaged(path, "its schema is not text") from error
    except FileNotFoundError as error:
        raise DurableError(f"{path} {MOVED}") from error
    except OSError as error:
        permitted = error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS)
        reason = f"cannot be opened: {error.strerror}" if permitted else _CLOSED
        raise DurableError(f"{path} {reason}") from error


def _reject(path: Path, error: sqlite3.Error) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # of Python's module: a text that is none, or a call that is
        undecodable = type(error) is sqlite3.OperationalError
        code = sqlite3.SQLITE_CORRUPT if undecodable else sqlite3.SQLITE_MISUSE
    code &= 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        forks.check()
    reason = _REASONS.get(code, f"cannot be used: {error}")
    raise (BusyError if reason is _BUSY else DurableError)(f"{path} {reason}") from error
