"""Discounted UCB for losses in a known range (Kocsis & Szepesvari 2006; Garivier & Moulines 2011).

What was observed s rounds ago has the weight gamma^s. N_i is the weight of the plays of arm i,
n_t = sum_i N_i, and the arm of round t has the largest discounted mean reward plus
2 B sqrt(xi ln n_t / N_i): B = 1 for rewards in [0, 1], and the theorem wants xi > 1/2. Here
xi = 1/2 and gamma = 2^(-1/half_life). Deterministic. The constants are as quoted elsewhere, not
checked against the paper's text.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded.bandits.baselines.ucb1 import highest
from unbounded.core.arrays import Arm, Count, Round, Sizes, Vector, require
from unbounded.core.clipping import to_unit
from unbounded.core.discounting import checked_half_life
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_constant, checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float
    gamma: float
    width: float  # multiplies the confidence widths


class State(NamedTuple):
    t: Round
    clipped: Count
    best: Arm  # the arm of round t
    weights: Sizes  # (n,) N_i
    gains: Sizes  # (n,) discounted sums of 1 - loss

    def check(self, params: Params) -> None:
        require(np.all(self.gains <= self.weights), "there are no such gains")


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    x, clipped = to_unit(loss, params.low, params.high)
    weights, gains = state.weights, state.gains
    total = 0.0  # n_t
    for i in range(params.n):
        weights[i] *= params.gamma
        gains[i] *= params.gamma
        if i == arm:
            weights[i] += 1.0
            gains[i] += 1.0 - x
        total += weights[i]
    # (2 B)^2 xi ln n_t; n_t >= 1, the weight of this play. New are arms forgotten to the last bit.
    best = highest(weights, gains, 1.0, params.width, 2.0 * math.log(total), None)
    return State(state.t + 1, state.clipped + clipped, best, weights, gains)


@kernel
def best_of(params: Params, state: State, side: Vector) -> int:
    """Return the available arm of the largest index."""
    total = 0.0
    for i in range(params.n):
        total += state.weights[i]
    numerator = 2.0 * math.log(max(1.0, total))
    return highest(state.weights, state.gains, 1.0, params.width, numerator, side)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


class DiscountedUCB(Learner):
    """Upper confidence bounds that forget, for stochastic losses whose means change.

    It must be given the range of the losses, and how fast to forget. With S changes in T rounds the
    paper takes the discount 1 - sqrt(S/T) / 4, a half-life of 2.77 sqrt(T/S) rounds.

    Parameters
    ----------
    half_life : int
        In how many rounds the weight of a loss falls to one half.
    width : float
        Multiplies the confidence widths. The theorem is for more than 1; less is often better.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Garivier & Moulines 2011",
        guarantee="expected regret of order sqrt(S T) ln T for independent losses in a known range "
        "whose means change S times, if the half-life fits S and T; none against an adversary",
        examples=({"half_life": 100},),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        half_life: SupportsIndex,
        width: float = 1.0,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        gamma = checked_half_life("half_life", half_life).decay
        width = checked_constant("width", width)
        loss_range = checked_range("loss_range", loss_range)
        self._start(Params(n_arms, *loss_range, gamma, width), seed)
