"""Robust UCB with medians of means (Bubeck, Cesa-Bianchi & Lugosi 2013, "Bandits with heavy tail").

For independent losses whose central moment E |X - mu|^a is at most v, 1 < a <= 2. An arm's s losses
are dealt into k = min(1 + 16 ln T, s / 2) blocks. The median of the blocks' means is within
(12 v)^(1/a) ((2 + 32 ln T) / s)^(1 - 1/a) of mu with probability 1 - T^-2 (the paper's Lemma 2 with
a = 1 + epsilon and delta = T^-2), and the arm with the least lower bound is played. The paper has
delta = t^-2, and blocks of consecutive losses; dealing them in turn is the same in law, and needs
no memory of all the losses. The constants are not checked against the paper's text.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Arm, Count, CountsBelowT, Round, Scratch, Vector
from unbounded.core.simplex.ftrl import power
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count, checked_within


class Params(NamedTuple):
    n: int
    k: int  # the largest number of blocks
    width: float  # of the interval at s = 1: (12 v)^(1/a) (2 + 32 ln T)^power
    power: float  # 1 - 1 / a: the width shrinks as s^-power
    v: float


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    best: Arm  # the arm of round t
    plays: CountsBelowT  # (n,) s of every arm
    lower: Vector  # (n,) lower confidence bounds; 0 where s = 0
    sums: Vector  # (2 k n,) per arm, 2 k half-blocks to which losses are dealt in turn
    means: Scratch  # (k,) for the means of the blocks


def init(params: Params) -> State:
    """Arm 0 first."""
    n, k = params.n, params.k
    return State(1, 0, 0, np.zeros(n), np.zeros(n), np.zeros(2 * k * n), np.zeros(k))


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    plays, lower, hands = state.plays, state.lower, 2 * params.k
    sums = state.sums[hands * arm : hands * (arm + 1)]
    dealt = int(plays[arm])
    sums[dealt % hands] += loss
    plays[arm] += 1.0
    median = median_of_means(sums, dealt + 1, state.means)
    lower[arm] = median - params.width * power(plays[arm], -params.power)
    best = 0
    for i in range(params.n):
        if plays[i] == 0.0:
            best = i
            break
        if lower[i] < lower[best]:
            best = i
    return State(state.t + 1, 0, best, plays, lower, state.sums, state.means)


@kernel
def median_of_means(sums: Vector, s: int, means: Vector) -> float:
    """Return the median of the block means of ``s`` losses; two neighbors of ``sums`` are a block.

    With half-blocks, s < 2 k losses make s // 2 blocks of two without moving any loss.
    """
    hands = sums.size
    k = min(hands, s) // 2
    if k == 0:
        return float(sums[0])
    each, more = s // hands, s % hands  # losses of a hand; the first ``more`` have another
    for j in range(k):
        count = 2 * each + (2 * j < more) + (2 * j + 1 < more)
        means[j] = (sums[2 * j] + sums[2 * j + 1]) / count
    means[:k].sort()
    return 0.5 * float(means[(k - 1) // 2]) + 0.5 * float(means[k // 2])


@kernel
def scale(params: Params, state: State) -> float:
    """Return v."""
    return params.v


class RobustUCB(Learner):
    """Confidence bounds around medians of means, for independent losses with heavy tails.

    Parameters
    ----------
    moment : float
        An upper bound on the losses' central moment of that order; their variance by default.
    order : float
        Of the moment, above 1 and at most 2.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Bubeck, Cesa-Bianchi & Lugosi 2013, median of means",
        guarantee="expected regret of order sum_i (v / gap_i)^(1/(a - 1)) ln T for independent "
        "losses with central a-th moments of at most v; none against an adversary",
        translation_invariant=True,
        largest_loss=1e290,
        examples=({"rounds": 2000, "moment": 1e-4}, {"rounds": 50, "moment": 1e-3, "order": 1.5}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex,
        moment: float,
        order: float = 2.0,
        seed: Seed = None,
    ) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        moment = checked_within("moment", moment, 1e-300, 1e300)
        order = checked_within("order", order, math.nextafter(1.0, 2.0), 2.0)
        logarithm, power = 2.0 + 32.0 * math.log(rounds), 1.0 - 1.0 / order
        width = (12.0 * moment) ** (1.0 / order) * logarithm**power
        self._start(Params(n_arms, int(0.5 * logarithm), width, power, moment), seed)
