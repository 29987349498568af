"""SCBExp4: expert advice on losses of either sign; no regret bound is known for it.

`CostExp4` on losses that are clipped to the range observed so far, less its lower end. When the
lower end falls, all estimates so far have lacked the same in the mean, whatever the expert, so that
their differences stay unbiased but for clipping and implicit exploration. Unlike `SCBIX` it does
not mix in uniform exploration, which an expert's advice would not survive.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, SupportsIndex

import numpy as np

from unbounded.advice.learner import (
    AdvisedLearner,
    draw_mixture,
    implicit,
    learn_column,
    plain_rate,
    rescale,
    scratch,
)
from unbounded.core import clipping
from unbounded.core.arrays import Count, Round, Scratch, Sizes, Values, Vector, require
from unbounded.core.clipping import EMPTY, RANGE, Window, clip_to_range, unit_factor
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.bandit import BanditSpec, NumberOrNames, Seed
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int
    experts: int  # N


class State(NamedTuple):
    t: Round
    clipped: Count
    window: Window  # the observed range; its width is R_t
    A: Annotated[int, Values(1.0, whole=True)]  # the most arms recommended in one round
    L: Sizes  # (N,) cumulative estimates of the experts' losses, in units of 2^e
    q: Scratch  # (n,) the mixture, between the question and the draw
    lanes: Scratch  # its partial sums
    xi: Scratch  # (N,) the advice on the arm that a loss is told of

    def check(self, params: Params) -> None:
        self.window.check()
        require(self.clipped < self.t, "there are no so many losses")
        require(params.n >= self.A, "there are no so many arms")


def init(params: Params) -> State:
    """Start with R_1 = 0 and equal weights."""
    return State(1, 0, EMPTY, 1, np.zeros(params.experts), *scratch(params.n, params.experts))


@kernel
def rate(params: Params, state: State, breadth: int) -> float:
    """Return eta_t, in units of 2^-e."""
    if state.window.W == 0.0:
        return 0.0
    return 2.0 * implicit(math.log(params.experts), breadth, state.t) / state.window.W


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with the mixture."""
    assign(q, state.q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from the mixture; the ask_info is q_{t,k} + gamma_t."""
    gamma = implicit(math.log(params.experts), state.A, state.t)  # eta_t C_t / 2
    arm, q_k = draw_mixture(state.q, state.lanes, word)
    return arm, q_k, q_k + gamma


@kernel
def update(params: Params, state: State, arm: int, q_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``q_k_gamma`` is q_{t,k} + gamma_t of its ask."""
    l, clipped, window = clip_to_range(state.window, loss)
    learn_column(state.L, state.xi, l, l / q_k_gamma)  # in the old unit
    rescale(state.L, unit_factor(state.window, window))  # to the new 2^e
    t, count, _, A, L, q, lanes, xi = state
    return State(t + 1, count + clipped, window, A, L, q, lanes, xi)


@kernel
def scale(params: Params, state: State) -> float:
    """Return the observed range."""
    return clipping.scale_of(state.window, RANGE)


class SCBExp4(AdvisedLearner):
    """Bandit for losses of either sign that follows experts; no regret bound is known.

    Where a lower bound on the losses is known, `CostExp4` has a theorem.

    Examples
    --------
    >>> from unbounded import SCBExp4
    >>> learner = SCBExp4(n_arms=2, n_experts=2, seed=0)
    >>> for t in range(1000):
    ...     choice = learner.ask(advice=[[0.9, 0.1], [0.2, 0.8]])
    ...     learner.tell(choice, reward=[-1.0, 1.0][choice])
    >>> int(learner.weights().argmax())
    1
    """

    spec = BanditSpec.of(
        __name__,
        reference="none: clipping to the observed range, in Exp4 with implicit exploration",
        guarantee="no regret bound known",
        scale_free=True,
        translation_invariant=True,
        advised=True,
    )

    _remedy = (
        "where a lower bound on the losses is known, CostExp4(..., outliers=k) ignores such "
        "losses; else clip those that say nothing about their arm before you tell them"
    )

    def __init__(
        self, n_arms: NumberOrNames, n_experts: SupportsIndex, *, seed: Seed = None
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        self._start(Params(n_arms, checked_count("n_experts", n_experts)), seed)

    def _rate(self, breadth: int) -> float:
        return _RATE(self._params, self._state(), breadth)

    def _tenfold(self) -> tuple[float, float]:
        low, high = self._scalar("window.low"), self._scalar("window.high")
        return clipping.tenfold(low, high, self.scale, RANGE)


_RATE = plain_rate(rate)
