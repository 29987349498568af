"""The learner in memory: what the journal says up to some row, and how to go on.

Asks and tells of this process and those of others, read from the journal, take the same steps here.
So every process has the same learner after the same row, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence

from unbounded.advice.learner import AdvisedLearner
from unbounded.core.ceiling import Ceiling
from unbounded.core.clipping import Window
from unbounded.core.discounting import Blocks
from unbounded.durable.counters import Counters, Counts
from unbounded.durable.errors import DurableError
from unbounded.durable.feedback import Feedback, tell
from unbounded.durable.rows import ARMS, ASK, MOST, Row, Snapshot, Storage, check
from unbounded.learners.available import mask_of
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell
from unbounded.learners.episodes import Plan
from unbounded.validation import ArgumentTypeError

_TAG = 20  # bits of an id that come from the digest of its row


@dataclass(frozen=True, slots=True)
class Choice:
    """What a durable bandit learner chose: a ticket whose number is known to every process.

    It can be used as an index: ``servers[choice]``.

    Parameters
    ----------
    id : int
        For `Durable.tell`, from any process.
    arm : int or None
        The arm, from 0 on, among those that there are now; None if it was retired.
    name : str
        Its name.
    probability : float
        The probability with which it was chosen.

    Examples
    --------
    >>> from unbounded.durable import Choice
    >>> ["red", "blue"][Choice(id=7, arm=1, name="blue", probability=0.5)]
    'blue'
    """

    id: int
    arm: int | None
    name: str
    probability: float

    def __index__(self) -> int:
        if self.arm is None:
            raise IndexError(f"arm {self.name!r} was retired after this choice: use choice.name")
        return self.arm


@dataclass(frozen=True)
class Status:
    """A snapshot of a durable learner: what `Durable.status` returns."""

    algorithm: str
    settings: Mapping[str, Any]
    epoch: int  # how often arms were added or retired
    arms: tuple[str, ...]  # empty for MDPs
    probabilities: tuple[float, ...]  # of the next ask; empty for MDPs
    scale: float | None  # None for MDPs
    rounds: int  # told in this epoch
    clipped: int  # ... and clipped
    outstanding: int
    rows: int  # of the journal, all epochs
    counts: Mapping[str, Counts] = field(repr=False)  # by arm, of all epochs; "" for MDPs
    recent: tuple[tuple[str, float], ...] = field(repr=False)  # arm and loss, at most 1,000


class Waiting(NamedTuple):
    """An ask that was not told yet."""

    epoch: int
    number: int  # of the learner's own ticket
    at: int  # when it was asked, in microseconds since 1970
    name: str  # of the arm; empty for MDPs


class Replica:
    """A learner, and the position in the journal that it has come to."""

    def __init__(self, learner: AskTell[Any], names: Sequence[str], n: int, chain: bytes) -> None:
        self.learner: Any = learner
        self.names, self.n, self.chain = list(names), n, chain
        self.epoch = 0
        self.sizes = [len(self.names)]  # how many arms each epoch has
        self.waiting: dict[int, Waiting] = {}  # by the ids of the tickets
        self.counters = Counters()
        self.steps = 0  # that the learner took here
        self.versions = ""  # of the library and all, where it was kept
        self.admitted = False  # whether it has taken asks that were drawn elsewhere

    # ------------------------------------------------------------------ keeping

    def snapshot(self, versions: str) -> Snapshot:
        """Everything, as text."""
        waiting = [[ticket, *record] for ticket, record in self.waiting.items()]
        document = {
            "learner": self.learner.save(),
            "names": self.names,
            "sizes": self.sizes,
            "epoch": self.epoch,
            "waiting": waiting,
            "counts": self.counters.arms,
            "recent": list(self.counters.recent),
            "versions": versions,
        }
        return Snapshot(self.n, self.chain, json.dumps(document))

    @classmethod
    def of(cls, snapshot: Snapshot, kind: type[AskTell[Any]]) -> Replica:
        """Return what `snapshot` made, if it is a ``kind`` of learner; else a ValueError."""
        document = json.loads(snapshot.text)
        learner = kind.load(document["learner"])
        replica = cls(learner, document["names"], snapshot.n, snapshot.chain)
        replica.epoch, replica.sizes = document["epoch"], document["sizes"]
        replica.versions = document["versions"]
        replica.waiting = {entry[0]: Waiting(*entry[1:]) for entry in document["waiting"]}
        replica.counters = Counters(document["counts"], document["recent"])
        return replica

    def equals(self, other: Replica) -> bool:
        """Return whether all bits are equal; who issued a learner's tickets does not count."""
        return self._content() == other._content()

    def _content(self) -> Any:
        document = json.loads(self.learner.save())
        issued = document.pop("outstanding").values()
        document["outstanding"] = sorted(entry for entries in issued for entry in entries)
        del document["digest"]
        document["counters"] = self.counters.arms, self.counters.recent
        return document, self.names, self.sizes, self.epoch, self.waiting, self.n, self.chain

    # ------------------------------------------------------------------ others' rows

    def catch_up(self, store: Storage, rows: list[Row] | None = None) -> bool:
        """Take the steps that other processes have added; False if the file is not the one that
        this replica knows: rows were removed, or it was replaced.

        ``rows`` are the first of them from number n on, if they have been read.
        """
        rows = store.rows(self.n) if rows is None else rows
        full = len(rows) >= MOST
        if self.n > 0:
            if not rows or rows[0].n != self.n or rows[0].digest != self.chain:
                return False
            del rows[0]
        elif rows and rows[0].n != 1:
            return False
        while rows:
            for row in rows:
                check(store, row, self.n + 1, self.chain)
                self.apply(row, store)
            rows = store.rows(self.n + 1) if full else []
            full = len(rows) >= MOST
        return True

    def apply(self, row: Row, store: Storage) -> None:
        """Take the step that a row tells of, without the warnings that were given then."""
        self.learner._heard = []
        try:
            self._apply(row, store)
        finally:
            self.learner._heard = None

    def _apply(self, row: Row, store: Storage) -> None:
        given = self._given(row)
        if "record" in given:
            self._admit(row, given["record"])
        elif row.kind == ASK:
            ticket = self._chosen(given, row.at)
            if self._asked(ticket, row.n, row.at, row.key, given)[:-1] != row[:-1]:
                raise DurableError(
                    f"{store.place} was written by other versions of the library or on another "
                    f"type of processor ({self.versions}): row {row.n} comes out differently here; "
                    "open it there once and close() it"
                )
            self._advance(row)
            self._wait(row, ticket.id)
        elif row.kind == ARMS:
            assert row.name is not None
            self._begin_epoch(row.name, retired=row.arm is not None)
            self._advance(row)
        else:
            assert row.choice is not None
            loss = row.loss
            self._settle(row.choice, None if loss is None else Feedback(loss, row.payload))
            self._advance(row)
        self.steps += 1

    def _advance(self, row: Row) -> None:
        self.n, self.chain = row.n, row.digest
        if row.choice is not None:
            self.counters.add(row, self.waiting.pop(row.choice).name)

    def _wait(self, row: Row, number: int) -> None:
        """Begin to wait for the loss of an ask, whose ticket has this number."""
        waiting = Waiting(self.epoch, number, row.at, row.name or "")
        self.waiting[id_of(row)] = waiting
        self.counters.add(row, waiting.name)

    def _given(self, row: Row) -> Mapping[str, Any]:
        """Return what the row of a bandit's ask has besides: a record, or which arms there were."""
        if row.kind != ASK or row.payload is None or not isinstance(self.learner, Learner):
            return {}
        found: Mapping[str, Any] = json.loads(row.payload)
        return found

    def _admit(self, row: Row, kept: list[Any]) -> None:
        """Take an ask that was drawn elsewhere, perhaps from an earlier state of the learner.

        What the row says is what happened, whatever this learner would have drawn.
        """
        self.admitted = True
        number = -1
        if self._has(row):  # else nothing will be learned from it
            if [row.arm, row.probability] != kept[:2]:
                raise ValueError(f"row {row.n} has another arm than its record")
            number = self.learner._admit(kept)
        self._advance(row)
        self._wait(row, number)

    def _has(self, row: Row) -> bool:
        """Return whether an ask chose among the arms that there are now."""
        assert row.arm is not None
        return row.epoch == self.epoch and self.names[row.arm : row.arm + 1] == [row.name]

    # ------------------------------------------------------------------ our own

    def drawn(self, word: int, key: str | None, at: int) -> Row:
        """Choose with this random word, and change nothing: the row of the ask, without a number.

        Its payload is what the learner must remember of the ask.
        """
        kept = self.learner._kept(self.learner._drawn(word))
        arm, probability = kept[:2]
        payload = json.dumps({"record": kept}).encode()
        name = self.names[arm]
        return Row(0, ASK, None, at, key, self.epoch, arm, name, probability, payload=payload)

    def ask(
        self,
        key: str | None,
        at: int,
        available: Any = None,
        advice: Any = None,
        context: Any = None,
    ) -> tuple[Row, Choice | Plan]:
        """Choose, among these arms and with this advice if any is given; the row to append, and
        the ticket. Of ``context`` only experts learn that are functions."""
        given = self._side(available, advice, context)
        inner = self._chosen(given, at)
        self.steps += 1
        row = self._written(self._asked(inner, self.n + 1, at, key, given))
        self._wait(row, inner.id)
        return row, self.ticket(row)

    def _side(self, available: Any, advice: Any, context: Any) -> dict[str, Any]:
        """Return what an ask is given besides, as JSON."""
        names, learner = self._available(available), self.learner
        found: dict[str, Any] = {} if names is None else {"available": names}
        if isinstance(learner, AdvisedLearner):
            found["advice"] = learner._plain_advice(advice, context, self._mask(names))
        elif advice is not None:
            raise ArgumentTypeError("advice", f"is for experts, and {learner.spec.name} has none")
        return found

    def _mask(self, names: list[str] | None) -> Any:
        return None if names is None else mask_of(names, len(self.names), self.names) > 0.0

    def _available(self, given: Any) -> list[str] | None:
        """Return the names of the arms that are given, or None for all of them."""
        if given is None:
            return None
        if not isinstance(self.learner, Learner):
            raise ArgumentTypeError("available", "is for bandits: an MDP's actions are its own")
        mask = mask_of(given, len(self.names), self.names)
        if self.learner._side(mask > 0.0) is None:
            return None
        return [name for name, there in zip(self.names, mask, strict=True) if there]

    def _chosen(self, given: Mapping[str, Any], at: int) -> Any:
        if isinstance(self.learner, Learner) and self.learner.spec.elapsed is not None:
            self.learner.set_time(max(at, 0))
        arguments = dict(given)
        if "available" in given:
            arguments["available"] = self._mask(given["available"])
        return self.learner.ask(**arguments)

    def _asked(
        self, ticket: Any, n: int, at: int, key: str | None, given: Mapping[str, Any]
    ) -> Row:
        if isinstance(ticket, Plan):
            payload = ticket._words.astype("<u8").tobytes() + ticket._pi.astype("<f8").tobytes()
            return Row(n, ASK, None, at, key, self.epoch, payload=payload)
        arm, probability = ticket.arm, ticket.probability
        payload = json.dumps(given).encode() if given else None
        name = self.names[arm]
        return Row(n, ASK, None, at, key, self.epoch, arm, name, probability, payload=payload)

    def settle(self, ticket: int, kind: int, feedback: Feedback | None, at: int) -> Row:
        """Learn from a loss, or forget; the row to append."""
        before = self.learner.clipped
        self._settle(ticket, feedback)
        self.steps += 1
        loss, payload = (None, None) if feedback is None else feedback
        scale = self.learner.scale if isinstance(self.learner, Learner) else None
        clipped = self.learner.clipped - before
        row = Row(self.n + 1, kind, ticket, at, loss=loss, payload=payload)
        return self._written(row._replace(scale=scale, clipped=clipped))

    def change_arms(self, name: str, *, retired: bool, at: int) -> Row:
        """Begin an epoch with an arm more, or less; the row to append."""
        arm = self.names.index(name) if retired else None
        self._begin_epoch(name, retired=retired)
        self.steps += 1
        return self._written(Row(self.n + 1, ARMS, None, at, arm=arm, name=name))

    def _written(self, row: Row) -> Row:
        row = row._replace(digest=row.digest_after(self.chain))
        self._advance(row)
        return row

    # ------------------------------------------------------------------ both

    def _settle(self, ticket: int, feedback: Feedback | None) -> None:
        waiting = self.waiting[ticket]
        if waiting.number >= 0:  # else it is written down, and nothing is learned from it
            inner = self.learner.outstanding[waiting.number]
            if feedback is None:
                self.learner.forget(inner)
            else:
                tell(self.learner, inner, feedback)

    def _begin_epoch(self, name: str, *, retired: bool) -> None:
        names = [one for one in self.names if one != name]
        if not retired:
            names.append(name)
        if isinstance(self.learner, Learner) and self.learner._keeps_arms:
            keep = [self.names.index(one) if one in self.names else None for one in names]
            self.learner = self.learner.with_arms(keep)
        else:
            self.learner = next_learner(self.learner, len(names), self.epoch + 1)
            for ticket, waiting in self.waiting.items():  # the new learner knows nothing of them
                self.waiting[ticket] = waiting._replace(number=-1)
        self.names = names
        self.sizes.append(len(names))
        self.epoch += 1

    # ------------------------------------------------------------------ looking

    def status(self) -> Status:
        """Return what there is to see of the learner."""
        learner = self.learner
        bandit = isinstance(learner, Learner)
        shown = bandit and not isinstance(learner, AdvisedLearner)  # else they depend on the advice
        return Status(
            algorithm=learner.spec.name,
            settings=learner.settings,
            epoch=self.epoch,
            arms=tuple(self.names),
            probabilities=tuple(learner.probabilities().tolist()) if shown else (),
            scale=learner.scale if bandit else None,
            rounds=int(learner._scalar("t")) - 1,
            clipped=learner.clipped,
            outstanding=len(self.waiting),
            rows=self.n,
            counts=dict(self.counters.arms),
            recent=tuple(self.counters.recent),
        )

    def copied(self) -> Any:
        """Return a copy of the learner, with the names of its arms if they have any."""
        copy = type(self.learner).load(self.learner.save())
        if isinstance(copy, Learner) and tuple(self.names) != copy.arm_names:
            copy._name_arms(self.names)
        return copy

    # ------------------------------------------------------------------ tickets

    def ticket(self, row: Row) -> Choice | Plan:
        """Return the ticket of an ask, also when it was told long ago."""
        if not isinstance(self.learner, Learner):
            return _plan(self.learner, row)
        arm, name, probability = row.arm, row.name, row.probability
        assert name is not None  # without a plan it is a bandit's ask, and has all three
        assert probability is not None
        if not self._has(row):  # arms have other numbers now
            arm = self.names.index(name) if name in self.names else None
        return Choice(id_of(row), arm, name, probability)


def id_of(row: Row) -> int:
    """Return the id of an ask: its number, and some bits of its digest.

    Should the last rows be lost (a power failure, a backup that is restored), their numbers are
    given again; a loss that comes late for a lost ask must not be taken for another one's.
    """
    return row.n << _TAG | int.from_bytes(row.digest[:3]) >> 4


def number_of(ticket: int) -> int:
    """Return the number of the ask that has this id."""
    return ticket >> _TAG


def _plan(learner: Any, row: Row) -> Plan:
    """Return the plan of an ask, also when its episode is over."""
    assert row.payload is not None
    words = np.frombuffer(row.payload, "<u8", 1 + learner.layers.horizon)
    pi = np.frombuffer(row.payload, "<f8", offset=words.nbytes).astype(np.float64)
    pi.flags.writeable = False
    return Plan(learner.layers, pi, -1, words, id_of(row), "")


def next_learner(old: AskTell[Any], n_arms: int, epoch: int) -> Learner:
    """Return the learner of the next epoch, or a ValueError if the algorithm cannot keep its scale.

    It is a fresh one of the same settings, with the new number of arms. It keeps the clipping
    window (or the ceiling of one-sided losses) that the old one had, and nothing else: all arms are
    equal again, and its random numbers follow from those of the old one. What is proved of a fresh
    learner holds for it, with the larger of the old scale and the new losses for the scale. An
    algorithm that has a scale of another kind, and learns it, cannot do that.

    Examples
    --------
    >>> from unbounded import SCB
    >>> from unbounded.durable.replica import next_learner
    >>> learner = SCB(n_arms=2, seed=0)
    >>> learner.tell(learner.ask(), 3e6)
    >>> after = next_learner(learner, n_arms=3, epoch=1)
    >>> after.scale == learner.scale, after.rounds, after.n_arms
    (True, 0, 3)
    """
    if not isinstance(old, Learner):
        raise ValueError(f"{old.spec.name} has no arms to add or to retire")
    stream = old._bits.state["state"]
    seed = SeedSequence([stream["state"], stream["inc"], epoch])
    new = type(old)(**{**old.settings, "n_arms": n_arms}, seed=seed)
    if new.scale == old.scale:  # it was given the range, or has seen nothing
        return new
    state = new._state()
    for name, value in old._state()._asdict().items():
        if isinstance(value, Window):
            state = state._replace(**{name: value})
        elif isinstance(value, Ceiling):
            getattr(state, name).largest[:] = value.largest
            state = state._replace(**{name: value})
        elif isinstance(value, Blocks):
            getattr(state, name).now[:] = value.now
            getattr(state, name).before[:] = value.before
            state = state._replace(**{name: value})
    new.spec.packing.python.pack(new._buffer, state)
    try:
        new = type(old).load(new.save())  # which lets no state in that cannot be
    except ValueError:
        kept = False
    else:
        kept = new.scale == old.scale
    if not kept:
        raise ValueError(
            f"{old.spec.name} with these settings cannot begin again at the scale of {old.scale:g} "
            "that it has learned: begin a new file with the new arms, or use SCB or SCBIX"
        )
    return new
