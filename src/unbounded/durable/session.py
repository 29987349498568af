"""Turns: one thread of one process at a time acts on the newest state of the file."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any, TypeVar

from unbounded.durable.replica import Replica
from unbounded.durable.store import BusyError, DurableError, Store
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell

R = TypeVar("R")

_EVERY = 1000  # rows between two snapshots, of bandits
_EVERY_EPISODES = 20  # ... of learners for MDPs, whose steps take long to take again
_FORKING = 1.0  # seconds that a fork waits for a thread to end its turn


class Session:
    """The file and the learner in memory, which follows it.

    Parameters
    ----------
    store : Store
        The file.
    timeout : float
        How many seconds a thread waits for the others.
    """

    def __init__(self, store: Store, timeout: float) -> None:
        self.store, self._timeout = store, timeout
        self.kind: type[AskTell[Any]]
        self._replica: Replica | None = None
        self._lock = threading.Lock()
        self._closed = False
        _alive.add(self)

    def begin(self, learner: AskTell[Any] | None, names: list[str]) -> None:
        """Make the file, unless another process has, and read it."""
        with self._lock, self.store.sentences():
            if learner is not None and self.store.empty:
                with self.store.writing():
                    if self.store.empty:
                        beginning = Replica(learner, names, 0, b"")
                        self.store.create(beginning.snapshot(versions()))
            if self.store.empty:
                raise DurableError(
                    f"{self.store.path} is empty: give Durable a learner to make it for"
                )
            self.kind = _kind(self.store) if learner is None else type(learner)

    def write(self, work: Callable[[Replica], R]) -> R:
        """Let ``work`` add rows, after those of others: all of them, or none."""
        with self._alone():
            steps = -1
            try:
                with self.store.writing():
                    replica = self._caught_up()
                    before, steps = replica.n, replica.steps
                    result = work(replica)
                    every = _EVERY if isinstance(replica.learner, Learner) else _EVERY_EPISODES
                    if before // every != replica.n // every:
                        self.store.keep("latest", replica.snapshot(versions()))
                return result
            except BaseException as error:
                known = self._replica
                refused = isinstance(error, TypeError | ValueError | RuntimeError)
                if not (refused and known is not None and known.steps == steps):
                    self._replica = None  # what it has learned here is not in the file
                raise

    def read(self, work: Callable[[Replica], R]) -> R:
        """Let ``work`` look at the learner after the last row."""
        with self._alone(), self.store.reading():
            return work(self._caught_up())

    def _caught_up(self) -> Replica:
        """The learner after the last row, in a transaction."""
        replica, self._replica = self._replica, None
        if replica is None or not replica.catch_up(self.store):
            replica = restored(self.store, "latest", self.kind)
            if not replica.catch_up(self.store):
                raise self.store.damaged("its journal does not fit its snapshot")
        self._replica = replica
        return replica

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time."""
        if not self._lock.acquire(timeout=self._timeout):
            raise BusyError(
                f"{self.store.path} was in use by other threads for {self._timeout:g} s: call "
                "again, or give Durable a longer timeout"
            )
        try:
            if self._closed:
                raise DurableError(f"{self.store.path} was closed here: open it again with Durable")
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        """Keep a snapshot, so that whoever opens the file next need not replay; give it up."""
        if self._closed:
            return
        try:
            if not self.store.read_only:
                self.write(lambda replica: self.store.keep("latest", replica.snapshot(versions())))
        finally:
            with self._lock:
                self._closed = True
                self._replica = None
                self.store.close()

    def after_fork(self) -> None:
        """In a child: the lock and the connection are the parent's, and so is the learner."""
        self._lock = threading.Lock()
        self._replica = None
        self.store.abandon()


def verified(store: Store, kind: type[AskTell[Any]]) -> int:
    """Read the whole file and replay the journal from its base; how many rows that were.

    Refuses a file of which any row or page is not what was written, or whose journal does not lead
    to the snapshot that it has.
    """
    with store.another() as own, own.reading():
        own.check_pages()
        first = own.snapshot("first")
        for _ in own.checked_rows(first.n + 1, first.chain):
            pass
        replica, latest = restored(own, "base", kind), restored(own, "latest", kind)
        begin = replica.n
        rows = own.checked_rows(begin + 1, replica.chain)
        for row in chain([None], rows):
            if row is not None:
                replica.apply(row, own)
            if replica.n == latest.n and not replica.equals(latest):
                raise own.damaged("its journal does not lead to its snapshot")
        return replica.n - begin


def restored(store: Store, name: str, kind: type[AskTell[Any]]) -> Replica:
    """The learner of a snapshot."""
    snapshot = store.snapshot(name)
    try:
        return Replica.of(snapshot, kind)
    except (ValueError, LookupError, TypeError) as error:
        raise DurableError(
            f"{store.path} does not have a {kind.__name__} that can be used here: {error}"
        ) from error


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def _kind(store: Store) -> type[AskTell[Any]]:
    """The class of the learner in a file, if it is of this package."""
    from unbounded import bandits

    name = json.loads(json.loads(store.snapshot("latest").text)["learner"])["algorithm"]
    if name in bandits.algorithms():
        return bandits.algorithms()[name]
    from unbounded import mdps

    if name in mdps.algorithms():
        return mdps.algorithms()[name]
    raise DurableError(
        f"{store.path} has a {name}, which is not of this package: give Durable such a learner"
    )


@cache
def versions() -> str:
    """What the bits of a play depend on."""
    named = []
    for name in ("unbounded", "numpy", "numba"):
        try:
            named.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # run from its sources
            named.append(name)
    return ", ".join([*named, f"Python {platform.python_version()}", platform.machine()])


_alive: weakref.WeakSet[Session] = weakref.WeakSet()
_held: list[Session] = []


def _before_fork() -> None:
    """Let turns end, so that no thread is in the middle of SQLite, whose locks a child keeps."""
    _held.extend(s for s in list(_alive) if s._lock.acquire(timeout=_FORKING))


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop()._lock.release()


def _after_fork_in_child() -> None:
    _held.clear()
    for session in list(_alive):
        session.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
