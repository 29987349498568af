"""UCB1 for losses in a known range (Auer, Cesa-Bianchi & Fischer 2002).

Deterministic: each arm once, then the arm with the largest mean reward plus
sqrt(2 ln t / plays), t the number of plays so far. For stochastic losses only; against an
adversary its regret can be linear, and it is here to show that.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Arm, Count, CountsBelowT, Round, Sizes, Vector, require
from unbounded.core.clipping import to_unit
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float


class State(NamedTuple):
    t: Round
    clipped: Count
    best: Arm  # the arm of round t
    plays: CountsBelowT  # (n,)
    gains: Sizes  # (n,) sums of 1 - loss

    def check(self, params: Params) -> None:
        require(np.all(self.gains <= self.plays), "there are no such gains")


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    x, clipped = to_unit(loss, params.low, params.high)
    plays, gains = state.plays, state.gains
    plays[arm] += 1.0
    gains[arm] += 1.0 - x
    # state.t plays so far, this one included
    best = highest(plays, gains, 1.0, 1.0, 2.0 * math.log(state.t), None)
    return State(state.t + 1, state.clipped + clipped, best, plays, gains)


@kernel
def best_of(params: Params, state: State, side: Vector) -> int:
    """Return the available arm of the largest index (Kleinberg, Niculescu-Mizil & Sharma 2010)."""
    numerator = 2.0 * math.log(max(1, state.t - 1))
    return highest(state.plays, state.gains, 1.0, 1.0, numerator, side)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


@kernel
def highest(
    plays: Vector, gains: Vector, unit: float, width: float, numerator: float, side: Any
) -> int:
    """Return the arm of largest mean gain plus ``width sqrt(numerator / plays)``, or a new one.

    Where ``side`` is no None, of the arms for which it is 1.
    """
    best = 0
    largest = -math.inf
    for i in range(plays.size):
        if side is not None and side[i] == 0.0:
            continue
        if plays[i] == 0.0:
            return i
        index = gains[i] / unit / plays[i] + width * math.sqrt(numerator / plays[i])
        if index > largest:
            best, largest = i, index
    return best


class UCB1(Learner):
    """Upper confidence bounds, for stochastic losses in a known range."""

    spec = BanditSpec.of(
        __name__,
        reference="Auer, Cesa-Bianchi & Fischer 2002",
        guarantee="expected regret 8 sum_i ln T / gap_i + (1 + pi^2/3) sum_i gap_i for independent "
        "losses in a known range of width 1; none against an adversary",
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        loss_range = checked_range("loss_range", loss_range)
        self._start(Params(n_arms, *loss_range), seed)
