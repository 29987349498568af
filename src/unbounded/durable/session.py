"""Turns: one thread of one process at a time acts on the newest state of the file."""

from __future__ import annotations

import json
import os
import platform
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from unbounded.durable import forks
from unbounded.durable.errors import BusyError, DurableError
from unbounded.durable.replica import Replica
from unbounded.durable.rows import MOST, Context, Row, Storage, check
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell
from unbounded.validation import warn_all

R = TypeVar("R")
Together = Callable[[list[Any]], list[Any]]

_EVERY = 1000  # rows between two snapshots, of bandits
_EVERY_EPISODES = 20  # ... of learners for MDPs, whose steps take long to take again
_SHARE = 4  # ... and as many as a quarter of what is outstanding, which a snapshot writes again


class Session:
    """The file and the learner in memory, which follows it.

    Parameters
    ----------
    store : Storage
        The file, or the database.
    timeout : float
        How many seconds a thread waits for the others.
    """

    def __init__(self, store: Storage, timeout: float) -> None:
        self.store, self.timeout = store, timeout
        self.kind: type[AskTell[Any]]
        self._replica: Replica | None = None
        self.lock = threading.Lock()
        self.owner = 0  # the thread whose turn it is
        self._closed = False
        forks.register(self)

    def begin(self, learner: AskTell[Any] | None, names: list[str]) -> None:
        """Make the file, unless another process has, and read it."""

        def beginning() -> Any:
            assert learner is not None
            unnamed: Any = type(learner).load(learner.save())
            if isinstance(unnamed, Learner):
                unnamed._name_arms(None)  # a replica has names that come and go
            return Replica(unnamed, names, 0, b"").snapshot(versions())

        self._turn(lambda: self.store.prepare(None if learner is None else beginning))
        self.kind = self.look(lambda: _kind(self.store)) if learner is None else type(learner)

    # ------------------------------------------------------------------ turns

    def write(
        self,
        work: Callable[[Replica], R],
        keys: Collection[str] = (),
        heard: list[tuple[str, type[Warning]]] | None = None,
    ) -> R:
        """Let ``work`` add rows, after those of others: all of them, or none.

        ``keys`` are those that it will look for. Warnings are appended to ``heard``, or given here.
        """
        given = heard is None
        heard = [] if heard is None else heard

        def act() -> tuple[R, Replica]:
            replica = self._caught_up()
            before, steps = replica.n, replica.steps
            replica.learner._heard = heard
            try:
                result = work(replica)
            except (TypeError, ValueError, RuntimeError):
                if replica.steps == steps:  # rejected
                    replica.learner._heard = None
                    self._replica = replica
                raise
            replica.learner._heard = None
            every = _EVERY if isinstance(replica.learner, Learner) else _EVERY_EPISODES
            if before // every != replica.n // every:
                every = max(every, len(replica.waiting) // _SHARE)
                if self.store.age_of("latest") >= every:
                    self.store.keep("latest", replica.snapshot(versions()))
            return result, replica

        def transaction() -> R:
            result, replica = self.store.write(act, keys)
            self._replica = replica  # what it has learned is in the file
            return result

        result = self._turn(transaction)
        if given:  # now, as who hears it may call again
            warn_all(heard)
        return result

    def add(
        self,
        made: Callable[[Replica], list[Row]],
        staleness: int,
        contexts: Sequence[str | None] = (),
    ) -> tuple[int, list[Row], Replica]:
        """Add rows that are ``made`` from the learner as it is known here, without taking a turn:
        `PostgresStore.add`. Returns the first number, them, and the learner after them.
        """
        store: Any = self.store

        def act() -> tuple[int, list[Row], Replica]:
            if self._replica is None:
                self._replica = store.read(self._caught_up)
            replica = self._replica
            some = made(replica)
            number, rows = store.add(some, replica.n, staleness, contexts)
            self._replica = None  # until it has learned them all
            last = number + len(some) - 1
            if not replica.catch_up(store, list(rows)) or replica.n < last:
                replica = store.read(self._caught_up)
            self._replica = replica
            ours = [row for row in rows if number <= row.n <= last] if number > 0 else []
            if number > 0 and len(ours) < len(some):  # many others are before them
                ours = store.rows(number, len(some))
            return number, ours, replica

        number, rows, replica = self._turn(act)
        if rows and (number - 1) // _EVERY != rows[-1].n // _EVERY:
            with suppress(DurableError):  # what was added is stored, without a snapshot too
                self.write(lambda replica: store.keep("latest", replica.snapshot(versions())))
        return number, rows, replica

    def read(self, work: Callable[[Replica], R]) -> R:
        """Let ``work`` look at the learner after the last row."""

        def act() -> R:
            replica = self._caught_up()
            result = work(replica)
            self._replica = replica
            return result

        return self.look(act)

    def look(self, work: Callable[[], R]) -> R:
        """Let ``work`` read a snapshot of the file."""
        return self._turn(lambda: self.store.read(work))

    def _turn(self, work: Callable[[], R]) -> R:
        """Act with one thread at a time, and with none while a thread forks.

        An interrupt may raise an error after any call; what must not stay behind is given up in
        the first call of a ``finally``, and that is one of C.
        """
        while True:
            forks.begin_turn()
            me = threading.get_ident()
            if self.owner == me:
                raise DurableError(
                    f"{self.store.place} is in use by this thread: call it when its call has ended"
                )
            got: list[bool] = []
            lock = self.lock  # a child has another
            try:
                got.extend(map(lock.acquire, (True,), (self.timeout,)))
                if not got[0]:
                    raise BusyError(
                        f"{self.store.place} was in use by other threads for {self.timeout:g} s: "
                        "call again, or give Durable a longer timeout"
                    )
                self.owner = me
                forks.check()
                if self._closed:
                    raise DurableError(
                        f"{self.store.place} was closed here: open it again with Durable"
                    )
                with self.store.errors():
                    return work()
            except forks.Waits:
                pass
            finally:
                if got and got[0]:
                    self.owner = 0
                    lock.release()
            forks.wait(self.timeout)

    def _caught_up(self) -> Replica:
        """Return the learner after the last row, in a transaction.

        Whoever has it gives it back when its state is that of the file.
        """
        replica, self._replica = self._replica, None
        if replica is None or not replica.catch_up(self.store):
            replica = restored(self.store, "latest", self.kind)
            if not replica.catch_up(self.store) or replica.n != self.store.last:
                raise self.store.damaged("its journal does not fit its snapshot")
        return replica

    # ------------------------------------------------------------------ long looks

    def another(self) -> Session:
        """Return a session with a connection of its own, for a long look."""
        other = Session(self.store.another(), self.timeout)
        other.kind = self.kind
        return other

    def rows(self, n: int, chain: bytes, last: int) -> Iterator[Row]:
        """The rows after number ``n``, whose digest is ``chain``, up to ``last``, checked.

        Each thousand is a turn: others may write meanwhile, and fork.
        """
        while n < last:
            some, first = self.look(
                lambda: (self.store.rows(n + 1), self.store.snapshot("first").n)  # noqa: B023 - at once
            )
            if first > n:
                raise BusyError(f"{self.store.place} was pruned while it was read: call again")
            if not some:
                raise self.store.damaged(f"row {n + 1} of its journal is missing")
            for row in some:
                check(self.store, row, n + 1, chain)
                n, chain = row.n, row.digest
                if n <= last:
                    yield row

    def contexts(self, last: int) -> Iterator[Context]:
        """The contexts of the rows up to ``last``, checked; a turn for each thousand rows."""
        n = self.look(lambda: self.store.snapshot("first").n)
        while n < last:
            for one in self.look(lambda: self.store.contexts(n + 1, min(n + MOST, last))):  # noqa: B023
                if one != Context.of(one.n, one.text):
                    raise self.store.damaged(f"the context of row {one.n} is not what was written")
                yield one
            n += MOST

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(keep=False)

    def close(self, *, keep: bool = True) -> None:
        """Keep a snapshot, so that whoever opens the file next need not replay; give it up."""
        forks.look()
        if self._closed:
            return
        try:
            if keep and self._replica and not (self.store.read_only or self.store.lost):
                self.write(lambda replica: self.store.keep("latest", replica.snapshot(versions())))
        finally:
            with self.lock:
                self._closed = True
                self._replica = None
                self.store.close()

    # ------------------------------------------------------------------ forks

    def before_fork(self) -> None:
        """Close the connection; this thread has the lock."""
        self.store.close()

    def hurry(self) -> None:
        """Make another thread end a long look."""
        self.store.hurry()

    def inherit(self) -> None:
        """In a child: lock, connection and learner are the parent's."""
        self.lock = threading.Lock()
        self.owner = 0
        self._replica = None
        self.store.inherit()


class Worker:
    """The thread in which asyncio's calls wait for the storage: those that have come meanwhile are
    made in one transaction.

    Python does not wait for it at exit. For the threads of a `ThreadPoolExecutor` it does, and for
    ever if they are a parent's (after a fork by C code), or if an interrupt came while they began.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock, self._ended = threading.Lock(), False
        self._calls: SimpleQueue[tuple[Future[Any], Any, Together] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="unbounded-durable", daemon=True)
        self._thread.start()

    @property
    def is_ours(self) -> bool:
        """Whether the thread runs in this process: it does not come along into a child."""
        return self._process == os.getpid()

    def submit(self, call: Any, together: Together) -> Future[Any]:
        """Return the future of a call, which ``together`` makes with the others that wait: it
        returns their results, or errors.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self._ended:
                raise RuntimeError("this Durable was closed: open it again")
            self._calls.put((future, call, together))
        return future

    def _run(self) -> None:
        while (given := self._calls.get()) is not None:
            some = [given]
            while len(some) < MOST and self._calls.qsize() > 0:
                given = self._calls.get()
                if given is None:
                    self._calls.put(None)
                    break
                some.append(given)
            self._make([one for one in some if one[0].set_running_or_notify_cancel()])
            del given, some  # while it waits for the next, nothing of these calls stays alive

    @staticmethod
    def _make(some: list[tuple[Future[Any], Any, Together]]) -> None:
        if not some:
            return
        found: Sequence[Any]
        try:
            found = some[0][2]([call for _, call, _ in some])
        except BaseException as error:
            found = [error] * len(some)
        for (future, *_), one in zip(some, found, strict=True):
            if isinstance(one, BaseException):
                future.set_exception(one)
            else:
                future.set_result(one)

    def shutdown(self) -> None:
        """End when all calls have been made; wait for that."""
        if self.is_ours:
            with self._lock:
                self._ended = True
                self._calls.put(None)
            self._thread.join()


def copied(session: Session, target: Storage) -> int:
    """Copy snapshots and journal, as they are, to a storage that has nothing yet; how many rows."""
    store = session.store
    names = ("first", "base", "latest")
    (first, base, latest), last = session.look(
        lambda: ([store.snapshot(name) for name in names], store.last)
    )

    def fill(target: Storage) -> int:
        rows = 0
        for row in session.rows(first.n, first.chain, last):
            target.append(row)
            rows += 1
        for context in session.contexts(last):
            target.attach(context)
        target.keep("base", base)
        target.keep("latest", latest)
        return rows

    with target.errors():
        try:
            return target.create(first, fill)
        finally:
            target.close()


def verified(session: Session) -> int:
    """Read the whole file and replay the journal from its base; how many rows that were.

    Rejects a file of which any row or page is not what was written, or whose journal does not lead
    to the snapshot that it has.
    """
    store, kind = session.store, session.kind
    session.look(store.check_pages)
    first, replica, latest, last = session.look(
        lambda: (
            store.snapshot("first"),
            restored(store, "base", kind),
            restored(store, "latest", kind),
            store.last,
        )
    )
    begin = replica.n

    def compare(n: int, chain: bytes) -> None:
        if n == begin and replica.chain != chain:
            raise store.damaged("its journal does not fit its snapshot")
        other = replica.admitted and latest.versions != versions()  # its last digits may be other
        if n == latest.n and not other and not replica.equals(latest):
            raise store.damaged("its journal does not lead to its snapshot")

    compare(first.n, first.chain)
    for _ in session.contexts(last):
        pass
    for row in session.rows(first.n, first.chain, last):
        if row.n > begin:
            replica.apply(row, store)
        compare(row.n, row.digest)
    return replica.n - begin


def restored(store: Storage, name: str, kind: type[AskTell[Any]]) -> Replica:
    """Return the learner of a snapshot."""
    snapshot = store.snapshot(name)
    try:
        return Replica.of(snapshot, kind)
    except (ValueError, LookupError, TypeError) as error:
        raise DurableError(
            f"{store.place} cannot be opened with {kind.__name__}: {error}"
        ) from error


def _kind(store: Storage) -> type[AskTell[Any]]:
    """Return the class of the learner in a file, if it is of this package."""
    from unbounded import advice, bandits

    name = json.loads(json.loads(store.snapshot("latest").text)["learner"])["algorithm"]
    if name in bandits.algorithms():
        return bandits.algorithms()[name]
    if name in advice.algorithms():
        return advice.algorithms()[name]
    from unbounded import mdps

    if name in mdps.algorithms():
        return mdps.algorithms()[name]
    raise DurableError(
        f"{store.place} has a {name}, which is not of this package: give Durable such a learner"
    )


@cache
def versions() -> str:
    """Return what the bits of a play depend on."""
    named = []
    for name in ("unbounded", "numpy", "numba"):
        try:
            named.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # run from its sources
            named.append(name)
    return ", ".join([*named, f"Python {platform.python_version()}", platform.machine()])
