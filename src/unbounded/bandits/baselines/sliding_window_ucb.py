"""Sliding-window UCB for losses in a known range (Garivier & Moulines 2011).

N_i is how often arm i was played in the last ``window`` rounds, and the arm of round t has the
largest mean reward over these plus B sqrt(xi ln(min(t, window)) / N_i): B = 1 for rewards in
[0, 1], and the theorem wants xi > 1/2. Here xi = 1/2. Deterministic. The constants are as quoted
elsewhere, not checked against the paper's text.

Rewards are rounded to multiples of 2^-32 of the range. So their sums over at most 2^20 rounds are
exact, and what leaves the window is subtracted without a trace.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, SupportsIndex

import numpy as np

from unbounded.bandits.baselines.ucb1 import highest
from unbounded.core.arrays import Arm, Count, CountsBelowT, Round, Values, Vector, require
from unbounded.core.clipping import to_unit
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import (
    ArgumentValueError,
    checked_constant,
    checked_count,
    checked_range,
    shown,
)

UNIT = 2.0**32  # of the rewards
MOST = 2**20  # rounds of a window
_Gains = Annotated[Vector, Values(0.0, UNIT * MOST, whole=True)]


class Params(NamedTuple):
    n: int
    low: float
    high: float
    window: int
    width: float  # multiplies the confidence widths


class State(NamedTuple):
    t: Round
    clipped: Count
    best: Arm  # the arm of round t
    plays: CountsBelowT  # (n,) N_i
    gains: _Gains  # (n,) sums of the rewards in the window, in units of 2^-32
    # (window,) each: which arm round s played, at (s - 1) % window, and its reward; -1: none yet
    recent: Annotated[Vector, Values(-1.0, whole=True, below="n")]
    rewards: Annotated[Vector, Values(0.0, UNIT, whole=True)]

    def check(self, params: Params) -> None:
        there = np.arange(params.window) < self.t - 1
        require(np.array_equal(self.recent >= 0.0, there), "there are no such plays")
        played = self.recent[there].astype(np.int64)
        plays = np.bincount(played, minlength=params.n)
        gains = np.bincount(played, self.rewards[there], params.n)
        require(np.array_equal([self.plays, self.gains], [plays, gains]), "no such gains")


def init(params: Params) -> State:
    """Arm 0 first."""
    n, window = params.n, params.window
    return State(1, 0, 0, np.zeros(n), np.zeros(n), np.full(window, -1.0), np.zeros(window))


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    x, clipped = to_unit(loss, params.low, params.high)
    plays, gains, recent, rewards = state.plays, state.gains, state.recent, state.rewards
    at = (state.t - 1) % params.window
    leaving = int(recent[at])
    if leaving >= 0:
        plays[leaving] -= 1.0
        gains[leaving] -= rewards[at]
    recent[at] = arm
    rewards[at] = math.floor(UNIT * (1.0 - x) + 0.5)
    plays[arm] += 1.0
    gains[arm] += rewards[at]
    numerator = 0.5 * math.log(min(state.t, params.window))  # state.t plays, this one included
    best = highest(plays, gains, UNIT, params.width, numerator, None)
    return State(state.t + 1, state.clipped + clipped, best, plays, gains, recent, rewards)


@kernel
def best_of(params: Params, state: State, side: Vector) -> int:
    """Return the available arm of the largest index."""
    numerator = 0.5 * math.log(min(max(1, state.t - 1), params.window))
    return highest(state.plays, state.gains, UNIT, params.width, numerator, side)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


class SlidingWindowUCB(Learner):
    """Upper confidence bounds over the last rounds, for stochastic losses whose means change.

    It must be given the range of the losses, and how fast to forget. With S changes in T rounds the
    paper takes a window of 2 sqrt(T ln T / S) rounds.

    Parameters
    ----------
    window : int
        How many rounds are remembered, at most 2**20.
    width : float
        Multiplies the confidence widths. The theorem is for more than 1; less is often better.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Garivier & Moulines 2011",
        guarantee="expected regret of order sqrt(S T ln T) for independent losses in a known range "
        "whose means change S times, if the window fits S and T; none against an adversary",
        examples=({"window": 100},),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        window: SupportsIndex,
        width: float = 1.0,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("window", window)
        if rounds > MOST:
            raise ArgumentValueError("window", f"must be at most 2**20, got {shown(rounds)}")
        width = checked_constant("width", width)
        loss_range = checked_range("loss_range", loss_range)
        self._start(Params(n_arms, *loss_range, rounds, width), seed)
