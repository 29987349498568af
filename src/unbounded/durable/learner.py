"""A learner that many processes share, in one file, and that survives restarts."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NoReturn,
    Self,
    SupportsIndex,
    TypeAlias,
    cast,
    overload,
)

from numpy.typing import ArrayLike

from unbounded.durable import checks
from unbounded.durable.errors import DurableError
from unbounded.durable.feedback import checked_feedback
from unbounded.durable.files import whole
from unbounded.durable.replica import Choice, Replica, Status, number_of
from unbounded.durable.rows import ASK, EXPIRE, TELL, Row, Storage, row_of
from unbounded.durable.rows import Context as StoredContext
from unbounded.durable.session import Session, Worker, copied, verified, versions
from unbounded.durable.store import Store
from unbounded.learners.arguments import Elsewhere, name_elsewhere
from unbounded.learners.available import distinct
from unbounded.learners.base import AskTell
from unbounded.learners.episodes import Plan
from unbounded.validation import (
    checked_count,
    checked_flag,
    checked_loss,
    checked_option,
    checked_positive,
    shown,
    warn_all,
)

if TYPE_CHECKING:
    import polars as pl
    from typing_extensions import TypeVar

    from unbounded.learners.bandit import Learner
    from unbounded.learners.mdp import MDPLearner

    C = TypeVar("C", Choice, Plan, default=Choice)  # what `ask` returns
else:
    from typing import TypeVar

    C = TypeVar("C")

Context: TypeAlias = Mapping[str, str | float | bool | None]
_SYNCHRONOUS = ("normal", "full")
_REPEATED = ("raise", "ignore")
_TRIES = 5  # to ask without a turn, before one is taken
_PART = 100_000  # rows that are archived and removed in one transaction
_AT_ONCE = 1000  # choices that are expired in one transaction


class _Unknown(Exception):  # noqa: N818 - no error: a turn is needed
    """A ticket that is not outstanding as far as is known here."""


class _Call(NamedTuple):
    """An ask or a tell, and how it is made."""

    turn: Callable[[Replica], Any]
    row: Callable[[Replica], Row] | None  # without a turn, if that is possible: what to append
    key: str | None = None
    context: str | None = None
    tells: bool = False


def _storage(
    path: str | os.PathLike[str],
    name: str | None,
    schema: str,
    synchronous: str,
    timeout: float,
    read_only: bool,
) -> Storage:
    options: dict[str, Any] = {
        "synchronous": synchronous, "timeout": timeout, "read_only": read_only,
    }  # fmt: skip
    if isinstance(path, str) and "://" in path:
        from unbounded.durable.postgres import PostgresStore

        if name is None:
            raise TypeError("a learner in PostgreSQL needs a name: Durable(url, learner, name=...)")
        return PostgresStore(path, name, schema=schema, **options)
    if name is not None:
        raise TypeError("name= is for postgresql:// addresses: a file has one learner")
    return Store(path, **options)


class Durable(Generic[C]):
    """A learner in a file, for many processes and restarts, that learns from each loss once.

    Every `ask` and `tell` is one transaction. All processes see the same order of calls and make,
    bit for bit, the choices that a single learner would make given those calls. Threads may share
    it. A fork between two calls may inherit it: the child opens the file again. `aask` and `atell`
    are for asyncio.

    Parameters
    ----------
    path : path or str
        The file, on a local disk; it is made if it does not exist. SQLite keeps two more beside
        it, ``-wal`` and ``-shm``. Or a database, for many hosts: ``postgresql://host/database``
        (``pip install 'unbounded[postgres]'``), in which the learner has a ``name``.
    learner : learner, optional
        What to begin with, as in ``SCB(n_arms=3)``; for MDPs, as in ``SCBRL(...)``. If the file
        exists, its settings must match those stored. Without it, the file must exist and have a
        learner of this package.
    arms : sequence of str, optional
        Names of the arms; those of the learner, or "0", "1", ... by default.
    synchronous : {"normal", "full"}
        With "normal", acknowledged calls survive a crash of the process; with "full" also a power
        failure, at the cost of a disk sync per call.
    timeout : float
        How many seconds to wait for other processes before a `BusyError`.
    read_only : bool
        Only look: `status`, `log` and the like. The file must exist.
    name : str, optional
        PostgreSQL: the name of the learner; a database may have many.
    schema : str
        PostgreSQL: the schema of the tables.
    staleness : int
        PostgreSQL: how many of the last tells an ask may not know. With 0, asks and tells take
        turns, and the choices are those of a single learner. With more, nobody waits for a turn,
        and the random numbers are those of each process; the journal has the probability with
        which each choice was drawn.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded import CostSCB
    >>> from unbounded.durable import Durable
    >>> directory = tempfile.TemporaryDirectory()
    >>> learner = CostSCB(n_arms=2, half_life=1000, cap=100, seed=0)
    >>> servers = Durable(f"{directory.name}/arms.db", learner, arms=["eu", "us"])
    >>> choice = servers.ask(key="request 1")
    >>> servers.ask(key="request 1") == choice
    True
    >>> servers.tell(choice.id, loss=0.31)
    True
    >>> servers.status().rounds
    1
    >>> servers.close(); directory.cleanup()
    """

    @overload
    def __init__(
        self: Durable[Choice], path: str | os.PathLike[str], learner: Learner, *,
        arms: Sequence[str] | None = None, synchronous: Literal["normal", "full"] = "normal",
        timeout: float = 5.0, read_only: bool = False, name: str | None = None,
        schema: str = "unbounded", staleness: SupportsIndex = 0,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Durable[Plan], path: str | os.PathLike[str], learner: MDPLearner, *,
        synchronous: Literal["normal", "full"] = "normal", timeout: float = 5.0,
        read_only: bool = False, name: str | None = None, schema: str = "unbounded",
        staleness: SupportsIndex = 0,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, path: str | os.PathLike[str], learner: None = None, *,
        synchronous: Literal["normal", "full"] = "normal", timeout: float = 5.0,
        read_only: bool = False, name: str | None = None, schema: str = "unbounded",
        staleness: SupportsIndex = 0,
    ) -> None: ...  # fmt: skip
    def __init__(
        self,
        path: str | os.PathLike[str],
        learner: AskTell[Any] | None = None,
        *,
        arms: Sequence[str] | None = None,
        synchronous: Literal["normal", "full"] = "normal",
        timeout: float = 5.0,
        read_only: bool = False,
        name: str | None = None,
        schema: str = "unbounded",
        staleness: SupportsIndex = 0,
    ) -> None:
        checked_option("synchronous", synchronous, _SYNCHRONOUS)
        self._staleness = checked_count("staleness", staleness, least=0)
        timeout = min(checked_positive("timeout", timeout), threading.TIMEOUT_MAX)
        names = checks.checked_names(learner, arms)
        read_only = checked_flag("read_only", read_only)
        store = _storage(path, name, schema, synchronous, timeout, read_only)
        if self._staleness > 0 and isinstance(store, Store):
            raise TypeError("staleness= is for postgresql:// addresses")
        if self._staleness > 0 and learner is not None:
            checks.check_relaxed(learner)
        self._session = Session(store, timeout)
        self._worker: Worker | None = None
        try:
            self._session.begin(learner, names)
            replica = self._session.read(lambda replica: replica)
            if self._staleness > 0:
                checks.check_relaxed(replica.learner)
            if learner is not None:
                named = arms is not None or getattr(learner, "_arm_names", None) is not None
                checks.check_agrees(store, replica, learner, names if named else None)
        except BaseException:
            store.close()
            raise

    # ------------------------------------------------------------------ playing

    @overload
    def ask(
        self, key: str | None = None, *, n: None = None, available: ArrayLike | None = None,
        advice: ArrayLike | Sequence[Any] | None = None, context: Context | None = None,
    ) -> C: ...  # fmt: skip
    @overload
    def ask(
        self, key: Sequence[str] | None = None, *, n: SupportsIndex,
        available: ArrayLike | None = None, advice: ArrayLike | Sequence[Any] | None = None,
        context: Context | Sequence[Context | None] | None = None,
    ) -> list[C]: ...  # fmt: skip
    def ask(
        self,
        key: Any = None,
        *,
        n: SupportsIndex | None = None,
        available: ArrayLike | None = None,
        advice: ArrayLike | Sequence[Any] | None = None,
        context: Any = None,
    ) -> Any:
        """Choose an arm, or for MDPs the policy of an episode.

        Parameters
        ----------
        key : str, optional
            Of a request. The same key gives the same choice again, in any process and whether it
            was told meanwhile or not, until `prune` removes it.
        n : int, optional
            Choose so many times, in one transaction, and return a list; ``key`` is then a sequence
            of n keys.
        available : sequence, optional
            The arms that can be chosen now: names, indices, or a boolean mask; all of them by
            default. See `Learner.ask`. It takes a turn, whatever the staleness.
        advice : array_like, optional
            For learners that follow experts: see `CostExp4.ask`. The journal keeps all of it.
        context : dict, optional
            What is known of the request, as in ``{"region": "eu", "tier": 2}``: texts, numbers and
            booleans by name; with ``n`` perhaps a sequence of n of them. It is stored beside the
            journal, for `log`, `estimate` and `by_context`; `delete_contexts` removes it.
            Functions among the ``advice`` are called with it.

        Returns
        -------
        Choice or Plan
            Its ``id`` is for `tell`.
        """
        if n is None:
            return self._made([self._asks(key, available, advice, context)])[0]
        n = checked_count("n", n)
        keys = checks.checked_each("key", key, n)
        if context is None or isinstance(context, Mapping):
            contexts = [context] * n
        else:
            contexts = checks.checked_each("context", context, n)
        return self._made(
            [
                self._asks(one, available, advice, about)
                for one, about in zip(keys, contexts, strict=True)
            ]
        )

    def _asks(self, key: str | None, available: Any, advice: Any, context: Any) -> _Call:
        if key is not None:
            checks.check_key(key)
        text = None if context is None else checks.checked_context(context)

        def row(replica: Replica) -> Row:
            return replica.drawn(secrets.randbits(64), key, self._now())

        plain = available is advice is None
        side = available, advice, context
        return _Call(partial(self._ask, key, side, text), row if plain else None, key, text)

    def _ask(self, key: str | None, side: Any, text: str | None, replica: Replica) -> Any:
        store = self._session.store
        if key is not None:
            number = store.number_of(key)
            row = None if number is None else row_of(store, number)
            if row is not None:
                return replica.ticket(row)
        row, ticket = replica.ask(key, self._now(), *side)
        store.append(row)
        if text is not None:
            store.attach(StoredContext.of(row.n, text))
        return ticket

    def _made(
        self, calls: Sequence[_Call], heard: list[tuple[str, type[Warning]]] | None = None
    ) -> list[Any]:
        """Make calls in one transaction, or none of them; their results."""
        if self._staleness > 0 and calls:
            found = self._made_at_once(calls)
            if found is not None:
                return found
        keys = [call.key for call in calls if call.key is not None]

        def turns(replica: Replica) -> list[Any]:
            return [call.turn(replica) for call in calls]

        return self._session.write(turns, keys, heard)

    def _made_at_once(self, calls: Sequence[_Call]) -> list[Any] | None:
        """Append what calls say, for all to learn in the order of the journal; None if a turn is
        needed for it.
        """
        from unbounded.durable.postgres import STALE

        # Places of the rows among the calls: asks come first, as they know no tell.
        places = sorted(range(len(calls)), key=lambda k: calls[k].tells)
        contexts = [calls[k].context for k in places]

        def made(replica: Replica) -> list[Row]:
            rows = []
            for k in places:
                made_without_turn = calls[k].row
                if made_without_turn is None:
                    raise _Unknown
                rows.append(made_without_turn(replica))
            return rows

        for _ in range(_TRIES):
            try:
                number, rows, replica = self._session.add(made, self._staleness, contexts)
            except _Unknown:
                return None
            if number > 0:
                found = dict(zip(places, rows, strict=True))
                return [
                    replica.ticket(row) if row.kind == ASK else True
                    for row in map(found.__getitem__, range(len(rows)))
                ]
            if number != STALE:  # told before, or another ask has this key
                return None
        return None

    def tell(
        self,
        ticket: SupportsIndex | Choice | Plan,
        loss: float | None = None,
        *,
        reward: float | None = None,
        losses: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        states: ArrayLike | None = None,
        actions: ArrayLike | None = None,
        repeated: Literal["raise", "ignore"] = "raise",
    ) -> bool:
        """Report the loss of a choice, in any process, once.

        Parameters
        ----------
        ticket : int
            The ``id`` of what `ask` returned, or that itself.
        loss, reward, losses
            As for the ``tell`` of the learner. MDPs: ``states``, ``actions``, and ``losses`` or
            ``rewards``.
        repeated : {"raise", "ignore"}
            What to do if it was told or has expired before.

        Returns
        -------
        bool
            Whether it was learned now; False if that was ignored.
        """
        given = {
            "loss": loss, "reward": reward, "losses": losses, "rewards": rewards,
            "states": states, "actions": actions,
        }  # fmt: skip
        return bool(self._made([self._tells(ticket, given, repeated)])[0])

    def tell_many(
        self,
        tickets: Sequence[SupportsIndex | Choice | Plan],
        loss: ArrayLike | None = None,
        *,
        reward: ArrayLike | None = None,
        losses: Sequence[ArrayLike] | None = None,
        rewards: Sequence[ArrayLike] | None = None,
        states: Sequence[ArrayLike] | None = None,
        actions: Sequence[ArrayLike] | None = None,
        repeated: Literal["raise", "ignore"] = "raise",
    ) -> list[bool]:
        """Report the losses of many choices, in one transaction: all of them, or none.

        Parameters
        ----------
        tickets : sequence
            As for `tell`.
        loss, reward, losses, rewards, states, actions : sequence
            As for `tell`: an entry for each ticket.
        repeated : {"raise", "ignore"}
            What to do with those that were told or have expired before.

        Returns
        -------
        list of bool
            Which were learned now.

        Examples
        --------
        >>> import tempfile
        >>> from unbounded import SCB
        >>> from unbounded.durable import Durable
        >>> directory = tempfile.TemporaryDirectory()
        >>> arms = Durable(f"{directory.name}/arms.db", SCB(n_arms=2, seed=0))
        >>> arms.tell_many(arms.ask(n=3), [0.31, 0.27, 0.33])
        [True, True, True]
        >>> arms.close(); directory.cleanup()
        """
        columns = {
            "loss": loss, "reward": reward, "losses": losses, "rewards": rewards,
            "states": states, "actions": actions,
        }  # fmt: skip
        rows = checks.rows_of(len(tickets), columns)
        calls = [
            self._tells(ticket, given, repeated)
            for ticket, given in zip(tickets, rows, strict=True)
        ]
        return list(map(bool, self._made(calls)))

    def _tells(self, ticket: Any, given: Mapping[str, Any], repeated: str) -> _Call:
        checked_option("repeated", repeated, _REPEATED)
        number = checks.checked_id(ticket)

        def row(replica: Replica) -> Row:
            feedback = checked_feedback(replica.learner, given, 0)
            if number not in replica.waiting:  # or it was asked elsewhere after what is known here
                raise _Unknown
            return Row(0, TELL, number, self._now(), loss=feedback.loss)

        return _Call(partial(self._tell, number, given, repeated == "ignore"), row, tells=True)

    def _tell(self, ticket: int, given: Mapping[str, Any], ignore: bool, replica: Replica) -> bool:
        waiting = replica.waiting.get(ticket)
        n_arms = replica.sizes[replica.epoch if waiting is None else waiting.epoch]
        feedback = checked_feedback(replica.learner, given, n_arms)
        if waiting is None:
            checks.check_issued(self._session.store, ticket)
            if ignore:
                return False
            raise ValueError(
                f"ticket {ticket} was told or has expired before: tell it once, or say "
                "repeated='ignore'"
            )
        self._session.store.append(replica.settle(ticket, TELL, feedback, self._now()))
        return True

    def forget(self, ticket: SupportsIndex | Choice | Plan) -> None:
        """Drop a choice whose loss will never come; nothing is learned from it."""
        number = checks.checked_id(ticket)

        def work(replica: Replica) -> None:
            if number not in replica.waiting:
                checks.check_issued(self._session.store, number)
                raise ValueError(f"ticket {number} was told or has expired before")
            self._session.store.append(replica.settle(number, EXPIRE, None, self._now()))

        self._session.write(work)

    def expire(self, older_than: timedelta, *, loss: float | None = None) -> int:
        """End the wait for losses that have not come.

        Parameters
        ----------
        older_than : timedelta
            Choices are ended that were made longer ago than that.
        loss : float, optional
            What they are told to have lost: a timeout is a loss. Without it they are forgotten,
            and nothing is learned.

        Returns
        -------
        int
            How many there were. Each thousand is a transaction.
        """
        checks.check_age(older_than)
        if loss is not None:
            loss = checked_loss("loss", loss)
        limits: list[int] = []  # one for all transactions

        def work(replica: Replica) -> int:
            limits.append(checks.time_before(older_than, self._now()))
            told = None if loss is None else checked_feedback(replica.learner, {"loss": loss}, 0)
            old = (ticket for ticket, record in replica.waiting.items() if record.at < limits[0])
            some = list(islice(old, _AT_ONCE))
            for ticket in some:
                self._session.store.append(replica.settle(ticket, EXPIRE, told, self._now()))
            return len(some)

        ended = [self._session.write(work)]
        while ended[-1] == _AT_ONCE:
            ended.append(self._session.write(work))
        return sum(ended)

    def _now(self) -> int:
        """Return the time of the storage: in a turn, as it may use the connection."""
        return self._session.store.now()

    # ------------------------------------------------------------------ asyncio

    async def aask(
        self,
        key: str | None = None,
        *,
        available: ArrayLike | None = None,
        advice: ArrayLike | Sequence[Any] | None = None,
        context: Context | None = None,
    ) -> C:
        """`ask`, in a thread of its own, so that the event loop does not wait.

        Calls of many tasks at the same time share a transaction. A task that is cancelled
        meanwhile may have asked: with a ``key`` it can ask again.
        """
        return cast("C", await self._in_worker(self._asks(key, available, advice, context)))

    async def atell(
        self,
        ticket: SupportsIndex | Choice | Plan,
        loss: float | None = None,
        *,
        reward: float | None = None,
        losses: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        states: ArrayLike | None = None,
        actions: ArrayLike | None = None,
        repeated: Literal["raise", "ignore"] = "raise",
    ) -> bool:
        """`tell`, in a thread of its own."""
        given = {
            "loss": loss, "reward": reward, "losses": losses, "rewards": rewards,
            "states": states, "actions": actions,
        }  # fmt: skip
        return bool(await self._in_worker(self._tells(ticket, given, repeated)))

    async def _in_worker(self, call: _Call) -> Any:
        if self._worker is None or not self._worker.is_ours:
            self._worker = Worker()
        found, heard = await asyncio.wrap_future(self._worker.submit(call, self._made_for_many))
        warn_all(heard)  # of the line that waits: the thread has none of the user's
        return found

    def _made_for_many(self, calls: list[_Call]) -> list[Any]:
        """Make calls of several callers in one transaction, where one that is rejected concerns
        nobody else; their results, the first with all warnings, or errors.
        """
        heard: list[tuple[str, type[Warning]]] = []
        try:
            found = self._made(calls, heard)
            return [(one, () if k else heard) for k, one in enumerate(found)]
        except DurableError:  # of all of them
            raise
        except (TypeError, ValueError, RuntimeError) as error:  # rejected, and so nothing is stored
            return (
                [error] if len(calls) == 1 else [self._made_for_many([call])[0] for call in calls]
            )

    # ------------------------------------------------------------------ arms

    def add_arm(self, name: str) -> None:
        """Begin an epoch with one more arm.

        Learners that have `Learner.with_arms` (all that `recommend` returns, but `AdaHedge`) keep
        what they know of the other arms, and learn from what is outstanding. Other learners begin
        again, all arms equal, at the scale that was learned
        (`unbounded.durable.replica.next_learner`): what is outstanding can still be told and is
        written down, and nothing is learned from it.
        """
        self._change_arms(lambda names: distinct([*names, name]), name, retired=False)

    def retire_arm(self, name: str) -> None:
        """Begin an epoch without an arm; see `add_arm`."""

        def check(names: list[str]) -> None:
            if name not in names:
                raise ValueError(f"there is no arm {name!r}: there are {shown(names)}")
            if len(names) == 1:
                raise ValueError("the last arm cannot be retired")

        self._change_arms(check, name, retired=True)

    def _change_arms(
        self, check: Callable[[list[str]], object], name: str, *, retired: bool
    ) -> None:
        def work(replica: Replica) -> None:
            check(replica.names)
            row = replica.change_arms(name, retired=retired, at=self._now())
            self._session.store.append(row)

        self._session.write(work)

    # ------------------------------------------------------------------ looking

    def status(self) -> Status:
        """Return the learner after the last row."""
        return self._session.read(Replica.status)

    def outstanding(self) -> list[int]:
        """Return the ids that have not been told, oldest first."""
        return self._session.read(lambda replica: sorted(replica.waiting))

    @overload
    def learner(self: Durable[Choice]) -> Learner: ...
    @overload
    def learner(self: Durable[Plan]) -> MDPLearner: ...
    def learner(self: Durable[Any]) -> Any:
        """Return a copy of the learner, which lives on its own."""
        return self._session.read(lambda replica: replica.copied())

    def log(self) -> pl.DataFrame:
        """Return every ask that is still in the journal, with its loss, as a frame of polars.

        Columns: ``id``, ``time``, ``key``, ``epoch``, ``arm``, ``name``, ``probability``, ``loss``,
        ``scale`` (after the tell), ``clipped``, ``status`` ("waiting", "told", "expired" with a
        loss that was booked, "forgotten"), ``told`` (when), and ``asked_as`` and ``told_as``, the
        numbers of the two rows in the order of all; ``available`` (null: all arms) and ``context``
        (JSON: ``pl.col("context").str.json_path_match("$.region")``). For MDPs, ``arm``, ``name``
        and ``scale`` are null, ``loss`` is the episode's sum, and ``states``, ``actions``,
        ``losses`` and ``chances`` (the probabilities of the actions) are lists.
        """
        from unbounded.durable.log import log

        learner = self._session.read(lambda replica: replica.learner)
        with self._session.another() as session:
            return log(session, learner)

    def delete_contexts(self, requests: str | Sequence[str | SupportsIndex | Choice | Plan]) -> int:
        """Delete what was stored of the contexts of requests, as where they are personal.

        Choices, losses and probabilities stay, and the learner is the same: it never read them.
        The keys of the requests stay too, until `prune`. Copies in backups, and in files that the
        database writes ahead, are deleted when these are.

        Parameters
        ----------
        requests : str or sequence
            Their keys, or what `ask` returned, or its ``id``.

        Returns
        -------
        int
            How many contexts there were.
        """
        given = [requests] if isinstance(requests, str) else list(requests)
        keys = [one for one in given if isinstance(one, str)]
        tickets = [checks.checked_id(one) for one in given if not isinstance(one, str)]

        def work(_: Replica) -> int:
            store = self._session.store
            for ticket in tickets:
                checks.check_issued(store, ticket)
            numbers = {number_of(ticket) for ticket in tickets}
            numbers |= {n for n in map(store.number_of, keys) if n is not None}
            return store.detach(numbers)

        return self._session.write(work, keys)

    # ------------------------------------------------------------------ keeping

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a snapshot of the file to ``path``, while everybody goes on.

        The copy gets its name when it is complete. Use this to upload or hash the file too.
        """
        if os.path.exists(path):
            raise DurableError(f"{os.fspath(path)} exists: give a new file")
        with self._session.another() as session:
            session.look(lambda: session.store.copy_to(path))

    def copy_to(
        self, path: str | os.PathLike[str], *, name: str | None = None, schema: str = "unbounded"
    ) -> int:
        """Copy the learner with its journal to a new file or into a database, bit for bit.

        Calls that come meanwhile are not copied: move when nobody writes.

        Parameters
        ----------
        path, name, schema
            As for `Durable`.

        Returns
        -------
        int
            How many rows were copied.

        Examples
        --------
        >>> import tempfile
        >>> from unbounded import SCB
        >>> from unbounded.durable import Durable
        >>> directory = tempfile.TemporaryDirectory()
        >>> arms = Durable(f"{directory.name}/arms.db", SCB(n_arms=2, seed=0))
        >>> arms.tell(arms.ask(), loss=0.31)
        True
        >>> arms.copy_to(f"{directory.name}/more.db")
        2
        >>> arms.close(); directory.cleanup()
        """
        target = _storage(path, name, schema, "full", max(30.0, self._session.timeout), False)
        with self._session.another() as session:
            return copied(session, target)

    def prune(self, older_than: timedelta) -> int:
        """Remove the oldest rows of the journal, as far as nothing outstanding needs them.

        Keys of removed asks are forgotten. `archive` stores the log of what it removes.

        Returns
        -------
        int
            How many rows were removed. Each hundred thousand is a transaction.
        """
        return self._removed(older_than, lambda *_: None)

    def archive(self, directory: str | os.PathLike[str], older_than: timedelta) -> int:
        """Write the log of the oldest rows to Parquet files, and then remove them like `prune`.

        ``pl.read_parquet(f"{directory}/*.parquet")`` has what `log` had, each choice once; after a
        call that was ended in the middle, or two at the same time, ``.unique("id")`` has.

        Parameters
        ----------
        directory : path
            It is made if it does not exist. Each learner needs its own.
        older_than : timedelta
            As for `prune`.

        Returns
        -------
        int
            How many rows were removed. Each hundred thousand is a file.

        Examples
        --------
        >>> import tempfile
        >>> from datetime import timedelta
        >>> import polars as pl
        >>> from unbounded import SCB
        >>> from unbounded.durable import Durable
        >>> directory = tempfile.TemporaryDirectory()
        >>> arms = Durable(f"{directory.name}/arms.db", SCB(n_arms=2, seed=0))
        >>> arms.tell_many(arms.ask(n=3), [0.31, 0.27, 0.33])
        [True, True, True]
        >>> arms.archive(f"{directory.name}/log", older_than=timedelta(0))
        5
        >>> pl.read_parquet(f"{directory.name}/log/*.parquet")["loss"].to_list()
        [0.31, 0.27, 0.33]
        >>> arms.close(); directory.cleanup()
        """
        from unbounded.durable.log import log

        if self._session.store.read_only:
            raise DurableError(f"{self._session.store.place} was opened with read_only=True")
        os.makedirs(directory, exist_ok=True)
        learner = self._session.read(lambda replica: replica.learner)

        def write(first: int, end: int) -> None:
            path = os.path.join(directory, f"log-{first:018}-{end:018}.parquet")
            with self._session.another() as session, whole(path) as part:
                log(session, learner, end).write_parquet(part)

        return self._removed(older_than, write)

    def _removed(self, older_than: timedelta, archive: Callable[[int, int], object]) -> int:
        """Remove the oldest rows after they were archived; how many there were."""
        checks.check_age(older_than)
        store, limits = self._session.store, []

        def removable(replica: Replica) -> tuple[int, int]:
            """Return the number of the first row, and the one before which rows can be removed."""
            limits.append(checks.time_before(older_than, self._now()))
            first, since = store.snapshot("first").n + 1, store.first_since(limits[0])
            kept = min(map(number_of, replica.waiting), default=replica.n)
            return first, min(kept, since or replica.n, first + _PART)

        def remove(end: int, replica: Replica) -> int:
            removed = store.remove_before(end)
            if removed:
                snapshot = replica.snapshot(versions())
                store.keep("base", snapshot)
                store.keep("latest", snapshot)
            return removed

        total = 0
        while True:
            first, end = self._session.read(removable)
            if end <= first:
                return total
            archive(first, end)
            total += self._session.write(partial(remove, end))

    def verify(self) -> int:
        """Read the whole file, replay the journal, and reject what does not fit.

        Returns
        -------
        int
            How many rows were replayed.
        """
        with self._session.another() as session:
            return verified(session)

    def close(self) -> None:
        """Give the file up; other processes go on."""
        if self._worker is not None:
            self._worker.shutdown()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Durable cannot be copied or pickled: open it by its path over there")

    def __repr__(self) -> str:
        return f"Durable({self._session.store.place!r})"


name_elsewhere(Durable, "ask() chooses, and tell(choice.id, loss) learns")
for _name in ("probabilities", "rounds", "scale", "settings", "history"):
    setattr(Durable, _name, Elsewhere(_name, "status() says how it is now, log() what it learned"))
