"""What a durable learner stores: rows of a journal and snapshots, and what a storage must do.

Every row has a digest of itself and of the row before it, so that a changed, lost or doubled row is
found by every reader. Nothing in this module knows what a learner is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from unbounded.durable.errors import DurableError

R = TypeVar("R")

ASK, TELL, EXPIRE, ARMS = range(4)
"""What a row of the journal says.

EXPIRE has a loss or none. ARMS begins an epoch: with one more arm, ``name``, or without that one if
``arm`` says where it was.
"""
MOST = 1000  # rows that are read at a time


class Row(NamedTuple):
    """One event of the journal, in the order in which all processes see them."""

    n: int
    kind: int
    choice: int | None  # the id of the ask that is told or expired
    at: int  # microseconds since 1970
    key: str | None = None
    epoch: int | None = None
    arm: int | None = None
    name: str | None = None
    probability: float | None = None
    loss: float | None = None
    scale: float | None = None
    clipped: int | None = None
    payload: bytes | None = None
    digest: bytes = b""

    @property
    def content(self) -> bytes:
        """All but the number and the digest, as bytes, in which -0.0 and 0.0 differ."""
        return "|".join(map(str, self[1:-2])).encode() + b"|" + (self.payload or b"")

    def digest_after(self, chain: bytes) -> bytes:
        """Return the digest of this row, if ``chain`` is that of the row before it."""
        return hashlib.sha256(chain + self.content).digest()[:16]


class Context(NamedTuple):
    """Which request an ask was for, as JSON.

    It is not in the journal: no digest of a row depends on it, and no learner reads it, so that it
    can be deleted.
    """

    n: int  # the row of the ask
    text: str
    digest: bytes

    @classmethod
    def of(cls, n: int, text: str) -> Self:
        """Return the context of row ``n``."""
        return cls(n, text, hashlib.sha256(f"{n}|{text}".encode()).digest()[:16])


class Snapshot(NamedTuple):
    """Everything that is known after row ``n``, whose digest is ``chain``."""

    n: int
    chain: bytes
    text: str

    @property
    def digest(self) -> bytes:
        """Return what tells whether it is as it was written."""
        n, chain, text = self
        return hashlib.sha256(chain + f"{n}|{text}".encode()).digest()[:16]


class Storage(Protocol):
    """Where a durable learner is: what `Session` needs, and what every storage must guarantee.

    - *Atomicity.* All that happens in one `write` is stored, or nothing of it.
    - *Isolation.* Between the start and the end of a `write` no other process writes to this
      learner; a `read` sees one state of it.
    - *Order.* Rows are numbered 1, 2, ... without gaps; a reader of row n sees all rows before it.
    - *Durability.* A `write` that has returned survives the end of the process.
    - *Clock.* `now` is the clock by which choices expire: one clock for all processes.
    - *Ownership.* A connection belongs to one process: `close` before a fork, `inherit` after it.

    Calls come from one thread at a time. `unbounded.testing.check_storage` checks all of this.
    """

    read_only: bool
    lost: str  # why it cannot be used any more

    @property
    def place(self) -> str:
        """What error messages call it."""

    def prepare(self, beginning: Callable[[], Snapshot] | None) -> None:
        """Make what is missing, or raise if there is nothing and no ``beginning``."""

    def create(self, beginning: Snapshot, fill: Callable[[Self], R]) -> R:
        """Make the learner, where there is none, and let ``fill`` write to it: all of it, or
        nothing.
        """

    def write(self, work: Callable[[], R], keys: Collection[str] = ()) -> R:
        """Let ``work`` change something, while nobody else does: all of it, or nothing.

        It will ask for the numbers of these keys, which may be read beforehand.
        """

    def read(self, work: Callable[[], R]) -> R:
        """Let ``work`` read a snapshot; that blocks nobody."""

    def append(self, row: Row) -> None:
        """Add a row, in a `write`."""

    def rows(self, first: int, most: int = MOST) -> list[Row]:
        """Return the rows from number ``first`` on, as they are, and at most so many."""

    @property
    def last(self) -> int:
        """The number of the last row, or of the last one that was removed."""

    def number_of(self, key: str) -> int | None:
        """Return the number of the ask with this key."""

    def first_since(self, at: int) -> int | None:
        """Return the number of the first row that is not older than ``at``."""

    def remove_before(self, n: int) -> int:
        """Remove the rows before number ``n``, and their contexts, in a `write`; how many rows
        there were.
        """

    def attach(self, context: Context) -> None:
        """Store the context of an ask, in the `write` that appends it."""

    def contexts(self, first: int, last: int) -> list[Context]:
        """Return the contexts of the rows from ``first`` to ``last``, as they are."""

    def detach(self, numbers: Collection[int]) -> int:
        """Delete the contexts of these rows, in a `write`; how many there were."""

    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Store a snapshot in place of the one of that name, in a `write`.

        "first" is what comes before the first row, "base" what can be replayed from, "latest" where
        a new connection begins.
        """

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name."""

    def age_of(self, name: str) -> int:
        """Return how many rows were added after a snapshot; all of them if it is missing."""

    def check_pages(self) -> None:
        """Raise if what is stored does not fit together."""

    def copy_to(self, path: Any) -> None:
        """Write a copy to a file, in a `read`."""

    def another(self) -> Self:
        """Return a connection of its own, for a long look."""

    def now(self) -> int:
        """Return microseconds since 1970."""

    def errors(self) -> AbstractContextManager[None]:
        """Describe errors of the storage in sentences."""

    def damaged(self, what: str) -> DurableError:
        """Return the error for something that is not as it was written."""

    def close(self) -> None:
        """Give the connection up until it is used again."""

    def inherit(self) -> None:
        """In a child of a fork: never touch the parent's connection, not even to close it."""

    def hurry(self) -> None:
        """End a long look of another thread, for a fork; it then begins again."""


def check(storage: Storage, row: Row, n: int, chain: bytes) -> None:
    """Reject a row that was not written as number ``n``, after the one of digest ``chain``."""
    right = row.n == n and type(row.payload) in (bytes, type(None))
    if not right or row.digest != row.digest_after(chain):
        raise storage.damaged(f"row {n} of its journal is not what was written")


def row_of(storage: Storage, n: int) -> Row | None:
    """Return a row by its number, checked; None if there is none, or none any more."""
    found = {row.n: row for row in storage.rows(n - 1, 2)}
    if n not in found:
        return None
    before = found.get(n - 1)
    check(storage, found[n], n, before.digest if before else storage.snapshot("first").chain)
    return found[n]
