"""Rare losses far outside of the usual ones."""

from __future__ import annotations

from typing import Any, Literal

from unbounded.adversaries.bandits.stochastic import GAP, loses, toss
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary, adversary
from unbounded.validation import (
    checked_count,
    checked_finite,
    checked_share,
    checked_whole,
    checked_within,
    one_of,
    setting,
)

_SIGNS = {"positive": 1.0, "negative": 0.0, "both": 0.5}


@kernel
def _fill_spikes(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, rate, height, positive = params[0], int(params[1]), params[2], params[3], params[4]
    stream = stream_of(state[0], t)
    toss(stream, best, gap, 1.0, out)
    n = out.size
    if uniform_at(stream, n) < rate:
        arm = int(uniform_at(stream, n + 1) * n)
        out[arm] = height if uniform_at(stream, n + 2) < positive else -height


@adversary
class Spikes(Adversary):
    """Losses 0 or 1, one arm better; now and then one arm, drawn at random, has a spike."""

    height: float = setting(30.0, checked_finite, doc="The absolute value of a spike.")
    rate: float = setting(1e-3, checked_share, doc="The probability of a spike in a round.")
    sign: Literal["positive", "negative", "both"] = setting(
        "positive", one_of, tuple(_SIGNS), doc="Which spikes there are."
    )
    gap: float = setting(0.1, checked_within, 0.0, 0.5, doc=GAP)
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_spikes

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.rate, self.height, _SIGNS[self.sign]


@kernel
def _one_catastrophe(params: Any, state: Any, t: int, k: int) -> float:
    gap, lure, rate, height = params[0], int(params[1]), params[2], params[3]
    if k != lure:
        return 1.0
    return float(height if uniform_at(stream_of(state[0], t), 0) < rate else 1.0 - gap)


@kernel
def _fill_catastrophe(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    out[:] = 1.0
    lure = int(params[1])
    out[lure] = _one_catastrophe(params, state, t, lure)


@adversary
class Catastrophe(Adversary):
    """Losses of 1, but for one arm: it costs less by ``gap``, and rarely a catastrophe.

    A learner that takes rare huge losses for accidents plays that arm.
    """

    rate: float = setting(1e-3, checked_share, doc="The probability of a catastrophe.")
    height: float = setting(1e4, checked_finite, doc="What it costs.")
    gap: float = setting(0.1, checked_finite, doc="By how much the arm usually is better.")
    lure: int = setting(0, checked_whole, doc="The arm.")

    fill = _fill_catastrophe
    entry = _one_catastrophe

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.lure % n, self.rate, self.height


@kernel
def _comes(params: Any, state: Any, t: int) -> bool:
    """Return whether round ``t`` is the one that was drawn from its part of the run."""
    count, rounds = int(params[2]), int(params[3])
    if count == 0:
        return False
    part = (t - 1) * count // rounds
    first = (part * rounds + count - 1) // count  # rounds before this part
    size = ((part + 1) * rounds + count - 1) // count - first
    drawn = int(uniform_at(stream_of(state[0], 0), part) * size)
    return bool(t == first + drawn + 1)


@kernel
def _fill_outliers(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    if _comes(params, state, t):
        out[:] = params[4]
    else:
        toss(stream_of(state[0], t), int(params[1]), params[0], 1.0, out)


@kernel
def _one_outliers(params: Any, state: Any, t: int, k: int) -> float:
    if _comes(params, state, t):
        return float(params[4])
    return 1.0 if loses(stream_of(state[0], t), k, int(params[1]), params[0]) else 0.0


@adversary
class Outliers(Adversary):
    """Losses 0 or 1, one arm better; in some rounds every arm has the same huge loss.

    The run is divided into ``count`` equal parts, and each has one such round, drawn at random.
    """

    count: int = setting(1, checked_count, 0, doc="How many rounds have the huge loss.")
    height: float = setting(1e4, checked_finite, doc="The huge loss.")
    gap: float = setting(0.2, checked_within, 0.0, 0.5, doc=GAP)
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_outliers
    entry = _one_outliers

    def params(self, n: int, rounds: int) -> Any:
        if self.count > rounds:
            raise ValueError(f"count must be at most the {rounds} rounds, got {self.count}")
        return self.gap, self.best % n, self.count, rounds, self.height
