"""Thompson sampling that forgets, on the logarithms of the losses.

The model of `log_thompson`, whose sums are discounted as Raj & Kalyani (2017) discount those of
Bernoulli rewards: in every round, the sums of every arm are multiplied by gamma = 2^(-1/half_life).
So s, the weight of an arm's losses, replaces their number, and Q is the discounted sum of squared
deviations from the discounted mean of the logarithms. It follows no paper line by line.

The mean of an arm is drawn from Student's distribution with f = s - 3 degrees of freedom and the
scale sqrt((Q / s) / f); where s < 4, with one degree of freedom and f = s / 4 in the scale, so that
it is the more uncertain the more is forgotten. Each arm is played five times at first, and again
whenever its s is below 1: its losses may all have been the same, and Q is then 0.

Draws, and losses of at most 0, are treated as in `log_thompson`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple, SupportsIndex

import numpy as np

from unbounded.bandits.baselines.log_thompson import (
    BITS,
    FIRST_PLAYS,
    MOST_BITS,
    logarithm,
    student,
)
from unbounded.core.arrays import Arm, Count, CountsBelowT, Round, Sizes, Values, Vector, require
from unbounded.core.discounting import checked_half_life
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int
    gamma: float
    stream: int


class State(NamedTuple):
    t: Round
    clipped: Count  # losses of at most 0
    best: Arm  # the arm of round t
    first: float  # log2 of the first positive loss, less its exponent, in [-1, 0); 1: none yet
    e: Annotated[int, BITS]  # the exponent of that loss
    least: Annotated[float, Values(-MOST_BITS, 0.0)]  # log2(smallest loss / first loss) so far
    plays: CountsBelowT  # (n,)
    weights: Sizes  # (n,) s of every arm
    means: Annotated[Vector, BITS]  # (n,) of y = log2(loss / first loss)
    squares: Sizes  # (n,) Q of every arm

    def check(self, params: Params) -> None:
        require(self.first == 1.0 or -1.0 <= self.first < 0.0, "there is no such first loss")
        require(np.all(self.weights <= self.plays), "there are no such weights")
        require(np.all(self.squares <= 2.0 * MOST_BITS**2 * self.t), "no such squares")


def init(params: Params) -> State:
    """Arm 0 first."""
    n = params.n
    return State(1, 0, 0, 1.0, 0, 0.0, np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n))


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    t = state.t + 1
    y, first, e, least = logarithm(loss, state.first, state.e, state.least)
    plays, weights, means, squares = state.plays, state.weights, state.means, state.squares
    for i in range(params.n):
        weights[i] *= params.gamma
        squares[i] *= params.gamma
    plays[arm] += 1.0
    weights[arm] += 1.0
    change = y - means[arm]
    means[arm] += change / weights[arm]
    squares[arm] = max(0.0, squares[arm] + change * (y - means[arm]))
    best = drawn(params, t, plays, weights, means, squares, None)
    clipped = state.clipped + (loss <= 0.0)
    return State(t, clipped, best, first, e, least, plays, weights, means, squares)


@kernel
def drawn(
    params: Params,
    t: int,
    plays: Vector,
    weights: Vector,
    means: Vector,
    squares: Vector,
    side: Any,
) -> int:
    """Return the arm whose mean is drawn as the least, as in `log_thompson`."""
    best = 0
    lowest = math.inf
    stream = stream_of(float(params.stream), t)
    for i in range(params.n):
        if side is not None and side[i] == 0.0:
            continue
        s = weights[i]
        if plays[i] < FIRST_PLAYS or s < 1.0:
            best = i
            break
        spread = math.sqrt(squares[i] / s / max(s - 3.0, 0.25 * s))
        mu = means[i] + spread * student(
            uniform_at(stream, 2 * i), uniform_at(stream, 2 * i + 1), max(s - 3.0, 1.0)
        )
        if mu < lowest:
            best, lowest = i, mu
    return best


@kernel
def best_of(params: Params, state: State, side: Vector) -> int:
    """Return the available arm of the least draw."""
    return drawn(params, state.t, state.plays, state.weights, state.means, state.squares, side)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


class DiscountedThompson(Learner):
    """Thompson sampling that forgets, for positive losses that are log-normal, or nearly so.

    It is given no range. It assumes that losses are positive, independent draws between changes,
    and that arms may be ranked by the geometric means of their losses: it underrates rare huge
    losses. No regret bound is known for it.

    Parameters
    ----------
    half_life : int
        In how many rounds the weight of a loss falls to one half. Every arm is played about once
        per half-life, so that it should be a multiple of the number of arms.
    stream : int
        Which random numbers the posteriors are drawn with; they are fixed before the play.

    Notes
    -----
    A loss of at most 0 is taken as the least positive one so far, and counted in ``clipped``:
    losses that are 0 or 1 all look alike.
    """

    spec = BanditSpec.of(
        __name__,
        reference="the conjugate normal model on logarithms; discounted as in Raj & Kalyani 2017",
        guarantee="none",
        scale_free=True,
        examples=({"half_life": 100},),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        half_life: SupportsIndex,
        stream: SupportsIndex = 0,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        gamma = checked_half_life("half_life", half_life).decay
        stream = checked_count("stream", stream, least=0)
        self._start(Params(n_arms, gamma, stream), seed)
