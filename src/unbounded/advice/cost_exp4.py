"""CostExp4: costs, with expert advice and a high-probability bound (docs/theory/advice.md, X1).

`CostSCBIX` over experts: FTRL with the Shannon entropy over N experts, on estimates of the losses
of arms that are clipped at the m-th largest one observed so far, with as much implicit exploration
(Neu 2015) as makes the bound hold for realized regret. Exp4 is by Auer, Cesa-Bianchi, Freund &
Schapire (2002); clipping from above, and silent experts in this form, are the library's own.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple, SupportsIndex

import numpy as np

from unbounded.advice import discounted_cost_exp4
from unbounded.advice.learner import (
    AdvisedLearner,
    draw_mixture,
    implicit,
    learn_column,
    plain_rate,
    rescale,
    scratch,
)
from unbounded.core.arrays import Count, Round, Scratch, Sizes, Values, Vector, require
from unbounded.core.ceiling import (
    Ceiling,
    checked_lower,
    clip_above,
    height,
    new_ceiling,
    unit_factor,
)
from unbounded.core.discounting import checked_half_life
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.bandit import BanditSpec, NumberOrNames, Seed
from unbounded.learners.costs import Costs
from unbounded.validation import checked_constant, checked_count


class Params(NamedTuple):
    n: int
    experts: int  # N
    lower: float  # b: the lower bound on the losses
    m: int  # the rank of the threshold among the observed losses
    iota: float  # ln N; ln(N / delta) for a learner that is given delta


class State(NamedTuple):
    t: Round
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``; clipped + below < t
    ceiling: Ceiling  # what losses are clipped at: C_t, and the unit 2^e
    A: Annotated[int, Values(1.0, whole=True)]  # the most arms recommended in one round
    L: Sizes  # (N,) cumulative estimates of the experts' losses, in units of 2^e
    q: Scratch  # (n,) the mixture, between the question and the draw
    lanes: Scratch  # its partial sums
    xi: Scratch  # (N,) the advice on the arm that a loss is told of

    def check(self, params: Params) -> None:
        self.ceiling.check_for(params.lower, params.m)
        require(self.ceiling.C_max == self.ceiling.C, "a threshold fell")
        require(self.clipped + self.below < self.t, "there are no so many losses")
        require(params.n >= self.A, "there are no so many arms")


def init(params: Params) -> State:
    """Start with C_1 = 0 and equal weights."""
    ceiling = new_ceiling(params.lower, params.m)
    return State(1, 0, 0, ceiling, 1, np.zeros(params.experts), *scratch(params.n, params.experts))


@kernel
def rate(params: Params, state: State, breadth: int) -> float:
    """Return eta_t, in units of 2^-e."""
    if state.ceiling.C == 0.0:
        return 0.0
    return 2.0 * implicit(params.iota, breadth, state.t) / state.ceiling.C


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with the mixture."""
    assign(q, state.q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from the mixture; the ask_info is q_{t,k} + gamma_t."""
    gamma = implicit(params.iota, state.A, state.t)  # eta_t C_t / 2
    arm, q_k = draw_mixture(state.q, state.lanes, word)
    return arm, q_k, q_k + gamma


@kernel
def update(params: Params, state: State, arm: int, q_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``q_k_gamma`` is q_{t,k} + gamma_t of its ask."""
    l, clipped, ceiling = clip_above(state.ceiling, params.lower, params.m, loss)
    learn_column(state.L, state.xi, l, l / q_k_gamma)  # in the old unit
    rescale(state.L, unit_factor(state.ceiling, ceiling))  # to the new 2^e
    t, above, below, _, A, L, q, lanes, xi = state
    below += loss < params.lower
    return State(t + 1, above + clipped, below, ceiling, A, L, q, lanes, xi)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return height(state.ceiling, params.lower)


def bound(n: int, N: int, T: int, delta: float, m: int = 1) -> float:
    """Bound realized regret by Theorem X1, iota = ln N, for losses in [lower, lower + 1]; ``n`` is
    the number of arms, or a number that those recommended in one round are sure not to exceed."""
    log_N, log_2 = math.log(N), math.log(2.0 / delta)
    return 4.0 * math.sqrt(n * T * log_N) + (math.sqrt(n * T / log_N) + 1.0) * log_2 + m


class CostExp4(AdvisedLearner, Costs):
    """Bandit for costs that follows experts, with a regret bound against the best of them.

    Experts are rules, models or people: each recommends an arm, or a distribution over the arms,
    in every round. The learner does not see what they look at, so advice is how a context comes
    in. Regret grows with the logarithm of their number.

    Parameters
    ----------
    lower, best_reward : see `CostSCB`
    outliers : int
        As in `CostSCB`; a number, as the theorem needs a fixed one.
    delta : float, optional
        Tunes the rates for regret that holds with probability 1 - delta for this delta. Without
        it, one run serves all delta.
    half_life : int, optional
        As in `CostSCBIX`.

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.

    Examples
    --------
    >>> from unbounded import CostExp4
    >>> learner = CostExp4(n_arms=2, n_experts=3, lower=900, seed=0)
    >>> experts = [lambda hour: 0, lambda hour: 1, lambda hour: int(hour >= 12)]
    >>> for t in range(2000):
    ...     hour = t % 24
    ...     choice = learner.ask(advice=experts, context=hour)
    ...     learner.tell(choice, loss=900.0 if choice.arm == (hour >= 12) else 1000.0)
    >>> int(learner.weights().argmax())
    2
    """

    spec = BanditSpec.of(
        __name__,
        reference="docs/theory/advice.md",
        guarantee="regret M (4 sqrt(n T ln N) + (sqrt(n T / ln N) + 1) ln(2/delta) + 1) against "
        "the best of N experts with probability 1 - delta for losses in [lower, lower + M], "
        "Theorem X1",
        scale_free=True,
        advised=True,
    )

    _remedy = "where such losses say nothing about their arms, make it with outliers=k"

    def __init__(
        self,
        n_arms: NumberOrNames,
        n_experts: SupportsIndex,
        *,
        lower: float | None = None,
        best_reward: float | None = None,
        outliers: SupportsIndex = 0,
        delta: float | None = None,
        half_life: SupportsIndex | None = None,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        n_experts = checked_count("n_experts", n_experts)
        least = checked_lower(lower, best_reward)
        outliers = checked_count("outliers", outliers, least=0)
        iota = math.log(n_experts)
        if delta is not None:
            delta = checked_constant("delta", delta, below=1.0)
            iota -= math.log(delta)
        params: Any = Params(n_arms, n_experts, least, outliers + 1, iota)
        self._eta = _RATE
        if half_life is not None:
            weights = checked_half_life("half_life", half_life, outliers)
            self.spec = discounted_cost_exp4.SPEC
            params = discounted_cost_exp4.Params(
                n_arms, n_experts, least, outliers + 1, iota, weights
            )
            self._eta = discounted_cost_exp4.RATE
        self._start(params, seed)
        self._least = self._low = least
        self._watching = outliers != 0  # where one is expected, it does no harm

    def _rate(self, breadth: int) -> float:
        return self._eta(self._params, self._state(), breadth)

    def _tenfold(self) -> tuple[float, float]:
        return self._params.lower, self._params.lower + 10.0 * self.scale


_RATE = plain_rate(rate)
