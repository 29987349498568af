"""Adaptive adversaries: their losses depend on the learner's probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unbounded.adversaries.bandits.stochastic import loses
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary, adversary
from unbounded.validation import (
    checked_finite,
    checked_positive,
    checked_share,
    checked_within,
    setting,
)


@kernel
def _fill_chaser(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    likeliest = 0
    for k in range(out.size):
        out[k] = 0.0
        if q[k] > q[likeliest]:
            likeliest = k
    out[likeliest] = 1.0


@adversary
class Chaser(Adversary):
    """Loss 1 for the likeliest arm, 0 for all others; sees the probabilities.

    Linear regret for any deterministic learner.
    """

    fill = _fill_chaser
    looks = True


@kernel
def _fill_least_likely(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    rate, height, gap = params[0], params[1], params[2]
    stream = stream_of(state[0], t)
    hidden = 0
    for k in range(out.size):
        out[k] = 1.0 if loses(stream, k, 0, gap) else 0.0
        if q[k] < q[hidden]:
            hidden = k
    if uniform_at(stream, out.size) < rate:
        out[hidden] = height


@adversary
class SpikeLeastLikely(Adversary):
    """Coin flips with one better arm, and now and then a spike on the least likely arm."""

    rate: float = setting(0.01, checked_share, doc="The probability of a spike in a round.")
    height: float = setting(-8.0, checked_finite, doc="The loss of the spike.")
    gap: float = setting(
        0.4, checked_within, 0.0, 0.5, doc="By how much arm 0 is better, at most 1/2."
    )

    fill = _fill_least_likely
    looks = True

    def params(self, n: int, rounds: int) -> Any:
        return self.rate, self.height, self.gap


_LOW, _HIGH, _LAST = 0, 1, 2  # slots of the state: the observed range, then last round's losses


@kernel
def _fill_outside_window(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    margin, limit = params[0], params[1]
    n = out.size
    if last_arm >= 0:
        seen = state[_LAST + last_arm]
        state[_LOW] = min(state[_LOW], seen)
        state[_HIGH] = max(state[_HIGH], seen)
    low = state[_LOW] if state[_LOW] <= state[_HIGH] else 0.0
    high = state[_HIGH] if state[_LOW] <= state[_HIGH] else 0.0
    step = margin * max(high - low, 1e-3 * limit)
    likeliest = 0
    unlikeliest = 0
    for k in range(n):
        out[k] = 0.5 * (low + high)
        if q[k] > q[likeliest]:
            likeliest = k
        if q[k] <= q[unlikeliest]:
            unlikeliest = k
    out[unlikeliest] = max(-limit, low - step)
    if likeliest != unlikeliest:
        out[likeliest] = min(limit, high + step)
    for k in range(n):
        state[_LAST + k] = out[k]


@adversary
class OutsideWindow(Adversary):
    """The likeliest arm just above the observed range, the least likely just below it.

    Sees the probabilities and the arms played, and so knows the window that a learner clips to:
    what is gained by the least likely arm is never seen whole. The other arms are in the middle.
    """

    margin: float = setting(
        0.05, checked_positive, doc="How far outside, in units of the width of the window."
    )
    limit: float = setting(1.0, checked_positive, doc="Losses stay in [-limit, limit].")

    fill = _fill_outside_window
    looks = True

    def params(self, n: int, rounds: int) -> Any:
        return self.margin, self.limit

    def state(self, n: int, rounds: int, key: int) -> Any:
        return np.concatenate([(math.inf, -math.inf), np.zeros(n)])
