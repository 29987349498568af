"""Bandit learners: ask for an arm, tell its loss."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeAlias, overload

import numpy as np
from numpy.random import PCG64
from numpy.typing import ArrayLike

from unbounded import frames
from unbounded.core.arrays import Vector
from unbounded.core.discounting import tick
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import direct
from unbounded.jit.schedule import Code, side_steps_of, steps_of
from unbounded.learners import persistence as documents
from unbounded.learners.arguments import name_elsewhere
from unbounded.learners.available import checked_arms, distinct, mask_of, moved_record
from unbounded.learners.bandit_steps import entries, side_entries
from unbounded.learners.base import EMPTY, AskTell
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import (
    ASKED,
    DRAWN,
    FIRST_WORD,
    RING,
    TOLD,
    WORDS,
    BanditSpec,
    SideAsk,
)
from unbounded.learners.tickets import Choice, Issuer, names_of
from unbounded.validation import (
    ArgumentTypeError,
    ArgumentValueError,
    checked_count,
    checked_loss,
    checked_losses,
    checked_within,
    shown,
)

__all__ = ["BanditSpec", "Choice", "Learner", "NumberOrNames", "ScaleWarning", "Seed"]

NumberOrNames: TypeAlias = SupportsIndex | Sequence[str]
"""The number of arms, or their names."""

SETTLED = 1000  # rounds after which the scale of the losses should be known
_PATIENCE = 1.0  # seconds in which another thread finishes an ask or a tell
_LEAST_LOGGED = 1e-6
_MOST_ASK_INFO = 2.0**200
_ROUNDING = 1e-6  # of a sum of a million probabilities, with much to spare


class ScaleWarning(UserWarning):
    """One loss has made the scale of a learner more than ten times what it was.

    A learner that clips to what it has seen works at the scale of the largest loss for ever: after
    an outlier, losses of the usual size hardly count; with a ``half_life``, for two half-lives.
    Said once per learner, and only after a thousand rounds; by `tell`, before the loss is learned,
    and never by simulations.
    """


class Learner(AskTell[Choice]):
    """Base of every bandit learner: ask for an arm, tell its loss.

    Threads may share a learner: the compiled steps hold the GIL, so each is one indivisible
    action for other threads, and operations of several steps take a lock.

    Examples
    --------
    >>> from unbounded import CostSCB
    >>> learner = CostSCB(n_arms=3, seed=0)
    >>> first, second = learner.ask(), learner.ask()
    >>> learner.tell(second, 0.2)
    >>> learner.tell(first, reward=-1.5)
    >>> learner.rounds, learner.scale, len(learner.outstanding)
    (2, 1.5, 0)
    """

    spec: BanditSpec
    _ask: Callable[..., Any]  # the steps that are used now
    _tell: Callable[..., Any]
    _look: Callable[..., Any]
    _scale: Callable[..., Any]
    _variant: BanditSpec  # the same, as it is compiled for a learner of this size
    _noun = "choice"
    _noted_as: ClassVar[Mapping[str, type]] = {
        "arm": int, "probability": float, "loss": float, "scale": float, "clipped": int,
    }  # fmt: skip
    _counts = False  # whether asks change the state
    _example = "SCB"
    _shared: ClassVar[Mapping[str, str]] = {
        "n_arms": "int or sequence of str\n    The number of arms, or their names.",
        "seed": "int, SeedSequence or Generator, optional\n    For the choices.",
        "rounds": "int\n    How many rounds will be played.",
        "loss_range": "(float, float)\n"
        "    Losses outside of it are clipped to it, and counted in ``clipped``.",
    }  # fmt: skip
    _side_steps: Code | None = None  # those with side information, once there was some
    _plain_ask: Callable[..., Any]  # beside them
    _plain_tell: Callable[..., Any]
    _remedy = ""  # where one huge loss spoils the scale: what to do about such {}
    _instead: ClassVar[tuple[str, str] | None] = None  # who ignores them, given a lower bound

    @classmethod
    def _played_example(cls) -> str:
        given = dict(cls.spec.examples[0])
        given |= {"loss_range": (0, 100)} if "loss_range" in signature(cls).parameters else {}
        shown = "".join(f", {name}={value!r}" for name, value in given.items())
        told = "losses=[9.0, 1.0, 4.0]" if cls.spec.feedback == "full" else "loss=9.0"
        name, ours = cls.__name__, cls.__module__.startswith("unbounded.")
        imported = f">>> from unbounded import {name}\n" if ours else ""
        made = f">>> learner = {name}(n_arms=3{shown}, seed=0)"
        return f"{imported}{made}\n>>> learner.tell(learner.ask(), {told})"

    def _start(self, params: Any, seed: Seed, checked: Mapping[str, Any] = EMPTY) -> None:
        super()._start(params, seed, checked)
        self._choose_steps()
        self._delayed = self.spec.delayed
        full = self.spec.feedback == "full"
        self._limit = 0.0 if full else min(self.spec.largest_loss, sys.float_info.max)
        self._least = -self._limit  # of learners that are told the lower bound on the losses: that
        self._low, self._high = self._least, self._limit  # what is between needs no second look
        self._watching = not self._remedy  # for losses that spoil the scale; or no need to
        self._forgotten = 0  # asks = tells + forgotten + outstanding
        self._telling: tuple[Any, ...] | None = None  # the record whose tell began last

    def _name_arms(self, names: Sequence[str] | None) -> None:
        """Call the arms so, or by their numbers."""
        self._identity = Issuer.of(self._identity, names)

    def _choose_steps(self) -> bool:
        """Use the compiled steps, if they are ready; else interpreted ones."""
        steps = self._steps
        if steps.ready:
            self._use_compiled()
            return True
        self._ask, self._tell = self._ask_interpreted, self._tell_interpreted
        self._look, self._scale = steps.interpreted.look, steps.interpreted.scale
        self._tell_both_ways()
        return False

    def _use_compiled(self) -> None:
        ask, tell, self._look, self._scale, counting, _ = self._steps.compiled
        self._ask, self._tell = direct(counting if self._counts else ask), direct(tell)
        self._tell_both_ways()

    def _tell_both_ways(self) -> None:
        """From the first ask with side information on, look which way a tell goes, and let all
        steps take the lock: interpreted ones with side information put another buffer in place."""
        if self._side_steps is not None:
            self._plain_ask, self._ask = self._ask, self._ask_locked
            self._plain_tell, self._tell = self._tell, self._tell_either

    def _ask_interpreted(self, _: Vector) -> tuple[int, float, Any, int]:
        with self._lock:
            if self._choose_steps():
                return self._ask(self._buffer)
            steps = self._steps.interpreted
            arm, probability, ask_info, number = self._on_a_copy(
                steps.ask_and_count if self._counts else steps.ask
            )
            ask_info = (complex if self.spec.clocked else float)(ask_info)
            return int(arm), float(probability), ask_info, int(number)

    def _tell_interpreted(self, _: Vector, arm: int, ask_info: Any, number: int, loss: Any) -> None:
        with self._lock:
            if self._choose_steps():
                self._tell(self._buffer, arm, ask_info, number, loss)
            else:
                self._on_a_copy(self._steps.interpreted.tell, arm, ask_info, number, loss)

    def _ask_locked(self, _: Vector) -> Any:
        with self._lock:
            return self._plain_ask(self._buffer)

    def _tell_either(self, _: Vector, arm: int, record: Any, number: int, loss: Any) -> None:
        with self._lock:
            steps = self._with_side
            if not isinstance(record, SideAsk):
                self._plain_tell(self._buffer, arm, record, number, loss)
            elif steps.ready:
                steps.compiled.tell(self._buffer, arm, *record, number, loss)
            else:
                self._on_a_copy(steps.interpreted.tell, arm, *record, number, loss, of=steps)

    def _warm_up_with(self) -> None:
        """Run every compiled step with side information once."""
        ask, tell, look = self._with_side.compiled
        self._draw_words()
        side, note = np.ones(self.n_arms), np.empty(self.spec.note_size(self._params))
        look(self._buffer, side, np.empty(self.n_arms))
        arm, _, info, clock, number = ask(self._buffer, side, note)
        tell(self._buffer, arm, info, clock, note, number, max(0.0, self._least))

    def _warm_up(self) -> None:
        """Run every compiled step once."""
        self._use_compiled()
        if self.spec.elapsed is not None:
            self.set_time(0)
        choice = self.ask()
        if self.spec.feedback == "full":
            self.tell(choice, losses=np.zeros(self.n_arms))
        else:
            self.tell(choice, max(0.0, self._least))
        self.probabilities()
        _ = self.scale

    def _fresh(self) -> Vector:
        state = interpreted(self.spec.init)(self._params)
        buffer = self.spec.packing.new(self._params, state)
        buffer[TOLD : TOLD + RING] = -1.0
        self._variant = self.spec.lacking(buffer)
        self._steps = steps_of(type(self), self._variant, self._settings, entries)
        self._steps.begin(buffer.size)
        return buffer

    # ------------------------------------------------------------------ playing

    def ask(self, *, available: ArrayLike | None = None) -> Choice:
        """Choose an arm.

        The ticket goes back with the loss. Several may be outstanding, unless the algorithm says
        otherwise.

        Parameters
        ----------
        available : array_like, optional
            The arms that can be chosen now: a boolean mask, or indices; all of them by default
            (docs/guide/arms.md). Or names, if the arms have any.
        """
        if available is not None:
            side = self._side(available)
            if side is not None:
                return self._ask_with(side)
        if not self._delayed:
            return self._ask_alone()
        record = self._ask(self._buffer)
        arm, probability, _, number = record
        if arm < 0:
            with self._lock:
                self._draw_words()
            return self.ask()
        self._records[number] = record
        return Choice(arm, probability, number, self._identity)

    def _ask_alone(self) -> Choice:
        with self._lock:
            self._reject_second()
            self._draw_words()
            record = self._ask(self._buffer)
            arm, probability, _, number = record
            self._records[number] = record
            return Choice(arm, probability, number, self._identity)

    def _side(self, available: ArrayLike) -> Vector | None:
        """Return a mask as kernels take it, or None if all arms are available."""
        if self.spec.update_with is None:
            raise ArgumentTypeError(
                "available",
                "is for learners with a rule for arms that sleep, as CostSCB, AdaINF and SCBIX "
                f"have one: none is known for {self.spec.name} with these settings",
            )
        mask = mask_of(available, self.n_arms, self._arm_names)
        return None if mask.all() else mask

    @property
    def _with_side(self) -> Code:
        """The steps with side information."""
        if self._side_steps is None:
            self._side_steps = side_steps_of(
                type(self), self._variant, self._settings, side_entries
            )
            self._tell_both_ways()
        return self._side_steps

    def _ask_with(self, side: Vector) -> Choice:
        """Choose an arm, given side information."""
        if self._forked:
            self._reject_fork()
        note = np.empty(self.spec.note_size(self._params))
        with self._lock:
            steps = self._with_side
            if not self._delayed:
                self._reject_second()
            arm = -1
            while arm < 0:  # another thread may take the last word
                self._draw_words()
                if steps.ready:
                    found = steps.compiled.ask(self._buffer, side, note)
                else:
                    found = self._on_a_copy(steps.interpreted.ask, side, note, of=steps)
                arm, number = int(found[0]), int(found[4])
            probability, info, clock = float(found[1]), float(found[2]), int(found[3])
            self._records[number] = arm, probability, SideAsk(info, clock, note), number
            return Choice(arm, probability, number, self._identity)

    def _drawn(self, word: int) -> tuple[Any, ...]:
        """Return the record of an ask with this random word; nothing changes."""
        with self._lock:
            front = self._buffer[: FIRST_WORD + 1].copy()
            self._buffer[[ASKED, DRAWN]] = 0.0, WORDS
            self._buffer.view(np.uint64)[FIRST_WORD] = word
            try:
                record: tuple[Any, ...] = self._ask(self._buffer)
            finally:
                self._buffer[: FIRST_WORD + 1] = front
        return record

    def _admit(self, kept: list[Any]) -> int:
        """Remember an ask that was drawn elsewhere, as `_kept` has it; its number."""
        with self._lock:
            number = self._asked
            record = self._record_of(number, kept)
            self._draw_words()
            self._buffer[ASKED] += 1.0  # one of its own random words is not used
            self._records[number] = record
        return number

    def _draw_words(self) -> None:
        """Draw random words for the next WORDS asks, if none are left."""
        buffer = self._buffer
        if buffer[ASKED] == buffer[DRAWN]:
            words = buffer.view(np.uint64)[FIRST_WORD : FIRST_WORD + WORDS]
            words[:] = self._bits.random_raw(WORDS)
            buffer[DRAWN] += WORDS
            self._watch_if_settled()

    def _watch_if_settled(self) -> None:
        if not self._watching and self._buffer[DRAWN] >= SETTLED:
            self._watching = True
            self._watch()

    def tell(
        self,
        choice: Choice,
        loss: float | None = None,
        *,
        reward: float | None = None,
        losses: ArrayLike | None = None,
    ) -> None:
        """Report the loss of a choice; late and out of order is fine.

        Parameters
        ----------
        choice : Choice
            What `ask` returned.
        loss, reward : float
            One of the two, any finite number.
        losses : array_like of shape (n_arms,)
            Instead, for full-information learners: the losses of all the arms.
        """
        value: Any
        if type(loss) is float and self._low <= loss <= self._high and reward is losses is None:
            value = loss  # the usual case, at the least cost
        else:
            value = self._checked_feedback(loss, reward, losses)
        record = None
        if type(choice) is Choice and choice._learner == self._identity:  # the usual case again
            record = self._records.get(choice.id)
        if record is None:
            _, record = self._held(choice)
        arm, _, ask_info, number = record
        self._telling = record
        try:
            found = self._records.pop(number, None)
            if found is not None:
                self._tell(self._buffer, arm, ask_info, number, value)
        except BaseException:  # an interrupt, before the compiled step or after it
            if self._buffer[TOLD + number % RING] != number:
                self._records[number] = record
            raise
        if found is None:  # another thread was faster
            self._telling = None
            raise self._not_outstanding(choice)

    def set_time(self, at: SupportsIndex) -> None:
        """Say what time it is, for asks from now on; for learners whose half-life is a time.

        `Durable` does it by itself. A time before the last one counts as that.

        Parameters
        ----------
        at : int
            Microseconds since 1970.

        Examples
        --------
        >>> from datetime import timedelta
        >>> from unbounded import CostSCB
        >>> learner = CostSCB(n_arms=2, half_life=timedelta(hours=1), seed=0)
        >>> learner.set_time(1_800_000_000_000_000)
        >>> learner.tell(learner.ask(), loss=0.3)
        """
        if self.spec.elapsed is None:
            raise TypeError(f"set_time() is for half-lives that are times, and {self!r} has none")
        to = tick(self._settings["half_life"], checked_count("at", at, least=0, below=None))
        with self._lock:
            if self._steps.ready:
                self._steps.compiled.pass_time(self._buffer, to)
            else:
                self._on_a_copy(self._steps.interpreted.pass_time, to)

    def learn_from(
        self,
        arm: Any,
        probability: float | None = None,
        loss: float | None = None,
        *,
        reward: float | None = None,
    ) -> None:
        """Learn from a logged round that another policy played: a warm start.

        The loss is divided by the logged probability, so that the estimate of all losses of that
        round is unbiased, if the probability is right, every arm had a positive one, and no round
        was left out because of its loss. Probabilities below 1e-6 count as 1e-6: one loss must not
        outweigh a million others. No regret bound is known after such a start. Learners that do not
        divide by probabilities (UCB, Thompson sampling) ignore it.

        Parameters
        ----------
        arm : int, str or frame
            The arm that was played, perhaps by its name; or a frame of polars or pandas, or a dict
            of arrays, with a row for each round in their order: ``arm``, ``probability``, and
            ``loss`` or ``reward``.
        probability : float
            That with which it was chosen *then*, in (0, 1].
        loss, reward : float
            One of the two, as for `tell`.

        Examples
        --------
        >>> from unbounded import SCB
        >>> learner = SCB(n_arms=2, seed=0)
        >>> log = {"arm": [0, 1] * 50, "probability": [0.5] * 100, "loss": [30.0, 20.0] * 50}
        >>> learner.learn_from(log)
        >>> learner.rounds, int(learner.probabilities().argmax())
        (100, 1)
        """
        if self.spec.feedback == "full":
            raise TypeError(f"{self.spec.name} learns from the losses of all arms: use tell()")
        if self.spec.advised:
            raise TypeError(f"{self.spec.name} learns from the advice of each round: use tell()")
        if isinstance(arm, np.ndarray) or not isinstance(arm, SupportsIndex | str):  # a table
            if any(given is not None for given in (probability, loss, reward)):
                raise TypeError("a log has its probabilities and losses as columns")
            for one in self._logged(arm):
                self._learn_one(*one)
        elif probability is None:
            raise TypeError("learn_from() needs the probability with which the arm was chosen")
        else:
            self._learn_one(
                self._checked_arm(arm),
                checked_within("probability", probability, frames.LEAST, 1.0),
                self._checked_feedback(loss, reward, None),
            )

    def _logged(self, frame: Any) -> list[tuple[int, float, float]]:
        """Return the rounds of a log, all of them checked."""
        frames.check_has(frame, "arm")
        arms = [self._checked_arm(arm) for arm in frames.labels(frame, "arm")]
        p = frames.propensities(frame).tolist()
        losses = [self._checked("loss", loss) for loss in frames.losses(frame).tolist()]
        if not len(arms) == len(p) == len(losses):
            raise ValueError("the columns of a log must be of one length")
        return list(zip(arms, p, losses, strict=True))

    def _checked_arm(self, arm: SupportsIndex | str) -> int:
        if isinstance(arm, str):
            if arm not in (self._arm_names or ()):
                raise ArgumentValueError(
                    "arm", f"must be among {shown(self.arm_names)}, got {arm!r}"
                )
            return self.arm_names.index(arm)
        number = checked_count("arm", arm, least=0)
        if number >= self.n_arms:
            raise ArgumentValueError("arm", f"must be in 0..{self.n_arms - 1}, got {number}")
        return number

    def _learn_one(self, arm: int, probability: float, loss: float) -> None:
        probability = max(probability, _LEAST_LOGGED)
        with self._lock:
            choice = self.ask()
            _, own, info, number = self._records[choice.id]
            info = probability + (info - own)  # implicit exploration stays what it is
            self._records[number] = arm, probability, info, number
            self.tell(Choice(arm, probability, number, self._identity), loss)

    def _noted(
        self, choice: Choice, loss: Any = None, *, reward: Any = None, losses: Any = None
    ) -> tuple[Any, ...]:
        if losses is not None:
            loss = np.asarray(losses)[choice.arm]
        paid = -float(reward) if loss is None else float(loss)
        return choice.arm, choice.probability, paid, self.scale, self.clipped

    def _drop(self, number: int) -> None:
        if self._records.pop(number, None) is not None:
            self._forgotten += 1

    def _checked_feedback(self, loss: object, reward: object, losses: ArrayLike | None) -> Any:
        if self.spec.feedback == "full":
            return self._checked_losses(loss, reward, losses)
        if losses is not None:
            raise TypeError(
                f"{self.spec.name} learns from the loss of the arm that was played: "
                "pass loss= or reward=, not losses="
            )
        if reward is None:
            value = self._checked("loss", loss)
        elif loss is not None:
            raise TypeError("pass either loss or reward, not both")
        else:
            value = -self._checked("reward", reward)
        if not self._low <= value <= self._high:
            self._look_twice(value, reward=reward is not None)
        return value

    def _look_twice(self, loss: float, *, reward: bool) -> None:
        """Warn of a loss below the lower bound, and of one that spoils the scale."""
        if loss < self._least:
            if self._scalar("below") == 0.0:
                self._warn_below(loss, self._least, reward=reward)
            return
        low, high = self._tenfold()
        if self.rounds < SETTLED or self.scale == 0.0 or low <= loss <= high:
            self._watch()  # the scale has grown since
            return
        self._low, self._high = self._least, self._limit
        lasting = "any more" if self.settings.get("half_life") is None else "for two half-lives"
        one, many = ("reward", "rewards") if reward else ("loss", "losses")
        remedy = self._remedy.format(many)
        if self._instead is not None and loss > 0.0:  # a bound excludes those of the other sign
            (name, option), bound = self._instead, "best_reward" if reward else "lower"
            known = "the largest possible reward" if reward else "a lower bound on the losses"
            better = f"{name}(n_arms, {bound}=..., {option}) ignores such {many}"
            remedy = f"where {known} is known, {better}; else {remedy}"
        said = (
            f"a {one} of {-loss if reward else loss:g} makes the scale of {self.spec.name}, "
            f"{self.scale:g} after {self.rounds} rounds, more than ten times that, and {many} of "
            f"the usual size will hardly count {lasting}: {remedy} (said once)"
        )
        self._warn(said, ScaleWarning)

    def _watch(self) -> None:
        """Look twice at losses that would make the scale more than ten times what it is now."""
        low, high = self._tenfold()
        self._low, self._high = max(self._least, low), min(self._limit, high)

    def _tenfold(self) -> tuple[float, float]:
        """Return the losses beyond which the scale is more than ten times what it is."""
        return -math.inf, math.inf

    def _checked(self, name: str, value: object) -> float:
        if value is None:
            raise TypeError("tell() needs loss= or reward=")
        number = checked_loss(name, value)
        if abs(number) > self.spec.largest_loss:
            raise ValueError(
                f"{self.spec.name} squares its losses and takes at most "
                f"{self.spec.largest_loss:g}, got {value!r}; rescale, or use SCB"
            )
        return number

    def _checked_losses(self, loss: object, reward: object, losses: ArrayLike | None) -> Vector:
        if losses is None or loss is not None or reward is not None:
            raise TypeError(f"{self.spec.name} learns from all the losses: pass losses=vector")
        vector = checked_losses("losses", losses, self.n_arms, "arm")
        for value in vector[abs(vector) > self.spec.largest_loss]:
            self._checked("losses", float(value))  # an error
        return vector

    # ------------------------------------------------------------------ looking

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self._params.n)

    @property
    def _arm_names(self) -> tuple[str, ...] | None:
        return names_of(self._identity)

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of the arms: their numbers, if no names were given."""
        return self._arm_names or tuple(map(str, range(self.n_arms)))

    @overload
    def probabilities(
        self, *, available: ArrayLike | None = None, named: Literal[False] = False
    ) -> Vector: ...
    @overload
    def probabilities(
        self, *, available: ArrayLike | None = None, named: Literal[True]
    ) -> dict[str, float]: ...
    def probabilities(
        self, *, available: ArrayLike | None = None, named: bool = False
    ) -> Vector | dict[str, float]:
        """Return the distribution that the next `ask` samples from, an array of shape (n_arms,).

        Parameters
        ----------
        available : array_like, optional
            That from which it samples if this is given.
        named : bool
            Return a dict from the names of the arms instead.

        Examples
        --------
        >>> from unbounded import CostSCB
        >>> CostSCB(["eu-1", "eu-2"], seed=0).probabilities(named=True)
        {'eu-1': 0.5, 'eu-2': 0.5}
        """
        q = np.empty(self.n_arms)
        side = None if available is None else self._side(available)
        if side is None:
            self._look(self._buffer, q)
        else:
            steps = self._with_side
            (steps.compiled if steps.ready else steps.interpreted).look(self._buffer, side, q)
        return dict(zip(self.arm_names, q.tolist(), strict=True)) if named else q

    @property
    def rounds(self) -> int:
        """Return the number of losses told."""
        return int(self._scalar("t")) - 1

    @property
    def scale(self) -> float:
        """The scale that the learner works with now (its clipping threshold, or its range)."""
        return float(self._scale(self._buffer))

    # ------------------------------------------------------------------ arms that come and go

    @property
    def _keeps_arms(self) -> bool:
        return self.spec.with_arms is not None and not self._counts

    def with_arms(self, arms: Sequence[int | str | None]) -> Self:
        """Return a learner of other arms that knows what this one knows.

        It keeps the estimates of the arms that stay, and the scale; new arms begin with about an
        equal share (docs/theory/sleeping.md). Outstanding choices can be told to it, also those of
        arms that have gone. This learner should not be used any more.

        Parameters
        ----------
        arms : sequence
            The arms of the new learner: for each the index that it has here, or None for a new one.
            If the arms have names, the names of the new learner's: those that are not known here
            are new.

        Examples
        --------
        >>> from unbounded import CostSCB
        >>> learner = CostSCB(n_arms=3, seed=0)
        >>> for _ in range(1000):
        ...     choice = learner.ask()
        ...     learner.tell(choice, loss=[3.0, 1.0, 2.0][choice])
        >>> learner = learner.with_arms([1, 2, None])  # without arm 0, and with a new one
        >>> int(learner.probabilities().argmax()), learner.rounds, learner.scale
        (0, 1000, 3.0)
        """
        keep, names = checked_arms(arms, self.n_arms, self._arm_names)
        moved = self.spec.with_arms
        if moved is None or not self._keeps_arms:
            raise TypeError(
                f"{self.spec.name} with these settings cannot keep what it has learned when arms "
                "come or go: CostSCB, CostSCBIX, SCBIX, AdaINF and TsallisINF can"
            )
        with self._lock:
            buffer, records = self._snapshot()
            new = type(self)(**{**self._settings, "n_arms": keep.size}, seed=0)
            state = self.spec.packing.python.state(buffer)
            state = moved(self._params, state, new._params, keep)
            fresh = new.spec.packing.new(new._params, state)
            fresh[: TOLD + RING] = buffer[: TOLD + RING]
            new._buffer = fresh
            new._bits.state = self._bits.state
            new._name_arms(names)
            new._seed, new._spawned, new._named = None, self._spawned, self._named
            new._forgotten = self._forgotten
            for number, record in records.items():
                new._records[number] = moved_record(record, keep, self.n_arms)
                new._inherited[number] = self._inherited.get(number, self._identity)
        if any(isinstance(record[2], SideAsk) for record in new._records.values()):
            _ = new._with_side
        new._watch_if_settled()
        return new

    # ------------------------------------------------------------------ keeping

    @property
    def _asked(self) -> int:
        return int(self._buffer[ASKED])

    def _ticket(self, number: int, record: tuple[Any, ...], issuer: str) -> Choice:
        arm, probability, _, _ = record
        return Choice(arm, probability, number, Issuer.of(issuer, self._arm_names))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        given = super().get_params(deep)
        return given if self._arm_names is None else {**given, "n_arms": list(self._arm_names)}

    def _shown_settings(self) -> list[str]:
        given = self.get_params()
        return [f"{name}={shown(given[name])}" for name in self._named]

    def _more(self) -> dict[str, Any]:
        more = super()._more()
        return more if self._arm_names is None else {**more, "names": list(self._arm_names)}

    def _take_more(self, fields: Mapping[str, Any]) -> None:
        if "names" in fields:
            names = distinct(fields["names"])
            if type(fields["names"]) is not list or len(names) != self.n_arms:
                raise ValueError(f"it has {self.n_arms} arms and names {len(names)}")
            self._name_arms(names)
        super()._take_more(fields)

    def _snapshot(self) -> tuple[Vector, dict[int, tuple[Any, ...]]]:
        """Asks and tells take no lock, so that a copy may show one of them half done. What is then
        missing is what this thread was telling when a signal came, and has not been learned; or
        what another thread will finish in a moment; or an ask that an interrupt ended."""
        counters = [ASKED, self.spec.packing.slot("t")]
        patience = time.monotonic() + (_PATIENCE if threading.active_count() > 1 else 0.0)
        while True:
            buffer, records, telling = self._buffer.copy(), dict(self._records), self._telling
            asked, t = buffer[counters]
            missing = int(asked - (t - 1) - self._forgotten - len(records))
            if missing == 1 and telling is not None:
                number = telling[3]
                if number not in records and buffer[TOLD + number % RING] != number:
                    records[number] = telling
                    missing = 0
            if np.array_equal(self._buffer[counters], buffer[counters]):
                if missing == 0:
                    buffer[TOLD : TOLD + RING] = -1.0  # nothing is in question any more
                    return buffer, records
                if missing < 0 or time.monotonic() >= patience:
                    self._forgotten += missing  # nobody has the ticket of an interrupted ask
                    continue
            time.sleep(0.0)

    def _asked_at(self, buffer: Vector) -> int:
        return int(buffer[ASKED])

    def _kept(self, record: tuple[Any, ...]) -> list[Any]:
        arm, probability, ask_info, _ = record
        if isinstance(ask_info, SideAsk):
            info, clock, note = ask_info
            return [arm, probability, info, clock, documents.encoded(note)]
        asked_at = [int(ask_info.imag)] if self.spec.clocked else []
        return [arm, probability, ask_info.real, *asked_at]

    def _record_of(self, number: int, kept: list[Any]) -> tuple[Any, ...]:
        arm, probability, ask_info, *clock = kept[:4]
        if not (arm == -1 and type(arm) is int and len(kept) == 5):  # retired since
            documents.whole_number(arm, self.n_arms)
        if not (
            type(probability) is type(ask_info) is float and frames.LEAST <= probability <= 1.0
        ):
            raise ValueError(f"choice {number} has probability {probability!r}")
        # The package's algorithms divide by the ask_info; what a user's may mean is not known.
        ours = self.spec.module.partition(".")[0] == "unbounded"
        if not (probability if ours else -_MOST_ASK_INFO) <= ask_info <= _MOST_ASK_INFO:
            raise ValueError(f"choice {number} remembers {ask_info!r}")
        if self.spec.clocked or len(kept) == 5:
            (asked_at,) = clock
            latest = int(self._scalar("clock")) if self.spec.clocked else 0
            documents.whole_number(asked_at, latest + 1)
            if len(kept) == 5:
                note = self._note_of(number, kept[4])
                return arm, probability, SideAsk(ask_info, asked_at, note), number
            return arm, probability, complex(ask_info, asked_at), number
        if clock:
            raise ValueError(f"choice {number} remembers too much")
        return arm, probability, ask_info, number

    def _note_of(self, number: int, kept: Any) -> Vector:
        note = documents.decoded(kept)
        if self.spec.update_with is None or note.size != self.spec.note_size(self._params):
            raise ValueError(f"choice {number} has a note of {note.size} entries")
        if not np.all((note >= 0.0) & (note <= 1.0)):
            raise ValueError(f"choice {number} has a note that is not within [0, 1]")
        _ = self._with_side  # `tell` will need them
        return note

    @classmethod
    def _fewest_entries(cls, settings: Mapping[str, Any]) -> int:
        kept = [n for n in map(settings.get, ("outliers", "trim")) if isinstance(n, int)]
        return sum(documents.whole_number(n, 2**48) for n in [settings["n_arms"], *kept])

    def _check_state(self) -> None:
        asked, drawn = self._buffer[[ASKED, DRAWN]].tolist()
        if not (0.0 <= asked <= drawn < 2.0**53 and drawn - asked <= WORDS and drawn % WORDS == 0):
            raise ValueError("its random words are not where they should be")
        if asked != int(asked) or np.any(self._buffer[TOLD : TOLD + RING] != -1.0):
            raise ValueError("its tickets are not numbered as they should be")

    def _check_counts(self) -> None:
        asked, t = self._asked, self._scalar("t")
        self._forgotten = int(asked - (t - 1) - len(self._records))
        if t < 1.0 or self._forgotten < 0 or self.clipped < 0:
            raise ValueError("more was told than asked")
        q = self._distribution_now()
        if not (np.all(q >= 0.0) and abs(q.sum() - 1.0) <= _ROUNDING):
            raise ValueError("it would not play a distribution")
        self._watch_if_settled()

    def _distribution_now(self) -> Vector:
        """Return a distribution that its state determines, to check a loaded one."""
        return self.probabilities()

    def _renew_stream(self, bits: PCG64) -> None:
        self._forgotten += len(self._records)
        super()._renew_stream(bits)
        if self._buffer[ASKED] < self._buffer[DRAWN]:
            words = self._buffer.view(np.uint64)[FIRST_WORD : FIRST_WORD + WORDS]
            words[:] = bits.random_raw(WORDS)

    def _after_fork(self) -> None:
        super()._after_fork()
        self._ask = self._tell = lambda *_: self._reject_fork()


name_elsewhere(
    Learner, "ask() chooses, and tell(choice, loss) or tell(choice, reward=...) learns",
    log="; learn_from(log) takes a log", shows="; probabilities() says how likely each arm is",
)  # fmt: skip
