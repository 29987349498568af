"""Losses whose scale grows or falls during the play."""

from __future__ import annotations

import math
from typing import Any

from unbounded.adversaries.bandits.stochastic import loses, toss
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary, adversary
from unbounded.validation import checked_part, checked_whole, checked_within, setting


@kernel
def _size(params: Any, t: int) -> float:
    doublings, rounds = params[0], params[1]
    return math.exp2(doublings * (t / rounds - 1.0))


@kernel
def _fill_growth(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    size, gap, stream = _size(params, t), params[2], stream_of(state[0], t)
    for k in range(out.size):
        out[k] = size if loses(stream, k, 0, gap) else -size


@kernel
def _one_growth(params: Any, state: Any, t: int, k: int) -> float:
    size, gap = _size(params, t), params[2]
    return size if loses(stream_of(state[0], t), k, 0, gap) else -size


@adversary
class Growth(Adversary):
    """Losses of either sign whose size doubles ``doublings`` times and ends at 1."""

    doublings: float = setting(20.0, checked_within, 0.0, 1000.0, doc="2^20-fold by default.")
    gap: float = setting(
        0.3, checked_within, 0.0, 0.5, doc="By how much arm 0 is less likely to lose, at most 1/2."
    )

    fill = _fill_growth
    entry = _one_growth

    def params(self, n: int, rounds: int) -> Any:
        return self.doublings, rounds, self.gap


@kernel
def _fill_shrink(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, final, last = params[0], int(params[1]), params[2], params[3]
    toss(stream_of(state[0], t), best, gap, final ** ((t - 1) / last), out)


@adversary
class Shrink(Adversary):
    """Losses 0 or s, one arm better, where s falls geometrically from 1 to ``final``.

    A learner that has seen the large losses must not stop caring, and one whose rates follow the
    losses has little left to win.
    """

    final: float = setting(1e-3, checked_part, doc="The size of the last losses, in (0, 1].")
    gap: float = setting(
        0.1, checked_within, 0.0, 0.5, doc="The gap of the means in units of s, at most 1/2."
    )
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_shrink

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.final, max(rounds - 1, 1)
