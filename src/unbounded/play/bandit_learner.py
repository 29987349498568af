"""Bandit learners: ask for an arm, tell its loss."""

from __future__ import annotations

import math
import sys
import time
import warnings
from functools import cache
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unbounded._jit import borrowed
from unbounded.core.arrays import Vector
from unbounded.play.ask_tell import AskTell, Ticket
from unbounded.play.contract import ASKED, DRAWN, FIRST_WORD, WORDS, BanditSpec
from unbounded.play.seeds import Seed


class Choice(Ticket):
    """A ticket for one decision: what was chosen, with what probability.

    It can be used as an index: ``servers[choice]``.
    """

    __slots__ = ("_memo", "arm", "probability")

    def __init__(self, arm: int, probability: float, memo: float, number: int, learner: str):
        self.arm = arm
        self.probability = probability
        self.id = number
        self._memo = memo
        self._learner = learner

    def __index__(self) -> int:
        return self.arm

    def __repr__(self) -> str:
        return f"Choice(arm={self.arm}, probability={self.probability:.4g}, id={self.id})"


class Entries(NamedTuple):
    """An algorithm's steps over its buffer, compiled."""

    ask: Any  # buffer -> arm (-1: no random words left), probability, memo, number
    tell: Any  # buffer, arm, memo, loss
    look: Any  # buffer, q
    scale: Any  # buffer -> float
    ask_and_count: Any  # as ask, and then the algorithm's ``asked``


@cache
def entries(spec: BanditSpec) -> Entries:
    """The compiled entries of an algorithm; made on first use."""
    params_of, state_of, pack = spec.packing.compiled
    act, update, distribution, scale_of = spec.act, spec.update, spec.distribution, spec.scale
    asked_of: Any = spec.asked

    def ask(owner: Any) -> tuple[int, float, float, int]:
        buffer = borrowed(owner)
        asked = int(buffer[ASKED])
        if buffer[ASKED] == buffer[DRAWN]:
            return -1, 0.0, 0.0, asked
        buffer[ASKED] += 1.0
        word = buffer.view(np.uint64)[FIRST_WORD + asked % WORDS]
        arm, probability, memo = act(params_of(buffer), state_of(buffer), word)
        return arm, probability, memo, asked

    def tell(owner: Any, arm: int, memo: float, loss: Any) -> None:
        buffer = borrowed(owner)
        pack(buffer, update(params_of(buffer), state_of(buffer), arm, memo, loss))

    def look(owner: Any, q: Any) -> None:
        buffer = borrowed(owner)
        distribution(params_of(buffer), state_of(buffer), q)

    def scale(buffer: Any) -> float:
        return scale_of(params_of(buffer), state_of(buffer))

    ask_only = spec.entry(ask)

    def ask_and_count(owner: Any) -> tuple[int, float, float, int]:
        found = ask_only(owner)
        if found[0] >= 0:
            buffer = borrowed(owner)
            pack(buffer, asked_of(params_of(buffer), state_of(buffer)))
        return found

    others = (spec.entry(step) for step in (tell, look, scale, ask_and_count))
    return Entries(ask_only, *others)


class Learner(AskTell[Choice]):
    """Base of every bandit learner: ask for an arm, tell its loss.

    Threads may share a learner: the compiled steps hold the GIL, so each is one indivisible
    action for other threads, and a lock guards what takes more than one.
    """

    spec: ClassVar[BanditSpec]
    _noun = "choice"
    _example = "SCB"

    def _start(self, params: Any, arguments: Any, seed: Seed) -> None:
        super()._start(params, arguments, seed)
        self._ask, self._tell, self._look, self._scale, _ = entries(self.spec)
        self._delayed = self.spec.delayed
        full = self.spec.feedback == "full"
        self._limit = 0.0 if full else min(self.spec.largest_loss, sys.float_info.max)
        self._least = -self._limit  # of learners that are told the least possible loss: that

    def _fresh(self) -> Vector:
        return self.spec.packing.new(self._params, self.spec.init(self._params))

    # ------------------------------------------------------------------ playing

    def ask(self) -> Choice:
        """Choose an arm.

        Returns
        -------
        Choice
            The ticket to give back with the loss. Several may be outstanding, unless the
            algorithm says otherwise.
        """
        if not self._delayed:
            return self._ask_alone()
        arm, probability, memo, number = self._ask(self._buffer)
        if arm < 0:
            with self._lock:
                self._draw_words()
            return self.ask()
        choice = Choice(arm, probability, memo, number, self._identity)
        self._outstanding[number] = choice
        return choice

    def _ask_alone(self) -> Choice:
        with self._lock:
            self._refuse_second()
            self._draw_words()
            arm, probability, memo, number = self._ask(self._buffer)
            choice = self._outstanding[number] = Choice(
                arm, probability, memo, number, self._identity
            )
            return choice

    def _draw_words(self) -> None:
        """Draw random words for the next WORDS asks, if none are left."""
        buffer = self._buffer
        if buffer[ASKED] == buffer[DRAWN]:
            words = buffer.view(np.uint64)[FIRST_WORD : FIRST_WORD + WORDS]
            words[:] = self._bits.random_raw(WORDS)
            buffer[DRAWN] += WORDS

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
        loss : float
            Any finite number; lower is better.
        reward : float
            Instead of ``loss``: higher is better.
        losses : array_like of shape (n_arms,)
            Instead of ``loss``, for full-information learners: the losses of all the arms.
        """
        value: Any
        if type(loss) is float and self._least <= loss <= self._limit and reward is losses is None:
            value = loss  # the usual case, at the least cost
        else:
            value = self._checked_feedback(loss, reward, losses)
        self._take(choice)
        self._tell(self._buffer, choice.arm, choice._memo, value)

    def forget(self, choice: Choice) -> None:
        """Drop a choice whose loss will never be known; nothing is learned from it."""
        self._take(choice)
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
        if value < self._least and self._scalar("below") == 0.0:
            warnings.warn(
                f"a loss of {value:g} is below the least possible one, {self._least:g}, and is "
                "taken as that: tell the learner a lower one (said once; learner.below counts)",
                stacklevel=3,
            )
        return value

    def _checked(self, name: str, value: object) -> float:
        if value is None:
            raise TypeError("tell() needs loss= or reward=")
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a real number, not {value!r}; pass float({name})")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(
                f"{name} must be finite, got {value!r}; if there is no {name}, "
                "forget() the choice instead"
            )
        if abs(number) > self.spec.largest_loss:
            raise ValueError(
                f"{self.spec.name} squares its losses and takes at most "
                f"{self.spec.largest_loss:g}, got {value!r}; rescale, or use SCB"
            )
        return number

    def _checked_losses(self, loss: object, reward: object, losses: ArrayLike | None) -> Vector:
        if losses is None or loss is not None or reward is not None:
            raise TypeError(f"{self.spec.name} learns from all the losses: pass losses=vector")
        vector = np.array(losses)
        if vector.shape != (self.n_arms,):
            raise ValueError(
                f"losses must have shape ({self.n_arms},), got {vector.shape}: one for each arm"
            )
        if vector.dtype.kind not in "iuf":
            raise TypeError(f"losses must be real numbers, not of type {vector.dtype}")
        for value in vector.tolist():
            self._checked("losses", value)
        return vector.astype(np.float64)

    # ------------------------------------------------------------------ looking

    @property
    def n_arms(self) -> int:
        """The number of arms."""
        return int(self._params.n)

    def probabilities(self) -> Vector:
        """The distribution that the next `ask` samples from, an array of shape (n_arms,)."""
        q = np.empty(self.n_arms)
        self._look(self._buffer, q)
        return q

    @property
    def rounds(self) -> int:
        """How many losses have been told."""
        return int(self._scalar("t")) - 1

    @property
    def scale(self) -> float:
        """The scale that the learner now works with: its clipping threshold, or its range."""
        return float(self._scale(self._buffer))

    # ------------------------------------------------------------------ keeping

    def _snapshot(self) -> tuple[Vector, Any, list[Choice]]:
        while True:
            buffer, generator, outstanding = super()._snapshot()
            told = buffer[self.spec.packing.slot("t")] - 1
            if buffer[ASKED] == told + self._forgotten + len(outstanding):
                return buffer, generator, outstanding
            time.sleep(0.0)  # another thread is in the middle of an ask or a tell

    def _record(self, choice: Choice) -> list[Any]:
        return [choice.id, choice.arm, choice.probability, choice._memo]

    def _reissued(self, record: list[Any]) -> Choice:
        number, arm, probability, memo = record
        if not 0 <= arm < self.n_arms:
            raise ValueError(f"choice {number} has arm {arm}")
        return Choice(int(arm), float(probability), float(memo), int(number), self._identity)
