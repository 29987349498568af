"""CostSCB-IX: costs, with a high-probability bound (docs/theory/one-sided.md, Theorem O5).

`CostSCB` with the Shannon entropy and as much implicit exploration (Neu 2015) as makes the bound
hold for realized regret, with high probability. Losses are clipped at the m-th largest one observed
so far, for a fixed m; there is no mixing. Symbols are those of docs/theory/one-sided.md, section 4.
This algorithm is the library's own; we know of no other text on it.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, NamedTuple, SupportsIndex

from unbounded.bandits import discounted_cost_scb_ix
from unbounded.core.arrays import Count, Round, Vector, require
from unbounded.core.ceiling import (
    Ceiling,
    checked_lower,
    clip_above,
    height,
    new_ceiling,
    unit_factor,
)
from unbounded.core.discounting import rounds_or_time
from unbounded.core.simplex import shannon_arms, sleeping
from unbounded.core.simplex.shannon_arms import Arms
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.costs import Costs
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_constant, checked_count


class Params(NamedTuple):
    n: int
    lower: float  # b: the lower bound on the losses
    m: int  # the rank of the threshold among the observed losses
    iota: float  # ln n; ln(n / delta) for a learner that is given delta


class State(NamedTuple):
    t: Round
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``; clipped + below < t
    ceiling: Ceiling  # what losses are clipped at: C_t, and the unit 2^e; C = C_max, as m is fixed
    arms: Arms  # L_hat >= 0, in units of 2^e, and p_t

    def check(self, params: Params) -> None:
        self.ceiling.check_for(params.lower, params.m)
        require(self.ceiling.C_max == self.ceiling.C, "a threshold fell")
        require(self.clipped + self.below < self.t, "there are no so many losses")


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform p_1."""
    ceiling, arms = new_ceiling(params.lower, params.m), shannon_arms.new_arms(params.n)
    return State(t=1, clipped=0, below=0, ceiling=ceiling, arms=arms)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from p_t; the ask_info is p_{t,k} + gamma_t."""
    gamma = 0.5 * math.sqrt(params.iota / (params.n * state.t))  # eta_t C_t / 2
    arm, p_k = shannon_arms.draw(state.arms, word)
    return arm, p_k, p_k + gamma


@kernel
def distribution_with(params: Params, state: State, side: Vector, q: Vector) -> None:
    """Fill ``q`` with p_t on the available arms."""
    C = state.ceiling.C
    eta = math.sqrt(params.iota / (params.n * state.t)) / C if C > 0.0 else 0.0
    shannon_arms.fill_available(state.arms, eta, side, q)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw k_t from q_t, p_t on the available arms; the ask_info is q_{t,k} + gamma_t."""
    gamma = 0.5 * math.sqrt(params.iota / (params.n * state.t))
    distribution_with(params, state, side, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    return arm, q_k, q_k + gamma


@kernel
def update(params: Params, state: State, arm: int, p_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``p_k_gamma`` is p_{t,k} + gamma_t of its ask."""
    return learned(params, state, arm, p_k_gamma, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those are charged what was paid
    (docs/theory/sleeping.md)."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, p_k_gamma: float, note: Any, loss: float
) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    n, t, arms = params.n, state.t + 1, state.arms  # t + 1 in the theory: of the next round
    # l^c by C_t of this round; then C_{t+1}, the m-th largest with this loss.
    l, clipped, ceiling = clip_above(state.ceiling, params.lower, params.m, loss)
    if note is None:
        shannon_arms.add(arms, arm, l / p_k_gamma)  # L_hat += l_hat, in the old unit
    else:
        if arm >= 0:  # else the arm was retired since
            shannon_arms.add(arms, arm, l / p_k_gamma)
        shannon_arms.charge(arms, note, l)
    if n > 1 and ceiling.C > 0.0:  # until then p stays uniform
        shannon_arms.rescale(arms, unit_factor(state.ceiling, ceiling))  # to the new 2^e
        eta = math.sqrt(params.iota / (n * t)) / ceiling.C  # in units of 2^-e
        shannon_arms.solve(arms, eta, 0.0)  # for the next round
    below = state.below + (loss < params.lower)
    return State(t, state.clipped + clipped, below, ceiling, arms)


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates and the scale when arms come or go (docs/theory/sleeping.md)."""
    C, n = state.ceiling.C, params.n
    eta = math.sqrt(params.iota / (n * state.t)) / C if C > 0.0 else 0.0
    return state._replace(arms=shannon_arms.with_arms(state.arms, keep, eta))


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return height(state.ceiling, params.lower)


def bound(n: int, T: int, delta: float, m: int = 1) -> float:
    """Bound realized regret by Theorem O5, iota = ln n, for losses in [lower, lower + 1]."""
    log_n, log_2 = math.log(n), math.log(2.0 / delta)
    return 4.0 * math.sqrt(n * T * log_n) + (math.sqrt(n * T / log_n) + 1.0) * log_2 + m


def bound_for_delta(n: int, T: int, delta: float, m: int = 1) -> float:
    """Bound the same with iota = ln(n / delta), for the delta that the learner was given."""
    iota = math.log(n / delta)
    return 4.0 * math.sqrt(n * T * iota) + 0.7 * math.sqrt(n * T / iota) + math.log(2.0 / delta) + m


class CostSCBIX(Learner, Costs):
    """Bandit for costs whose realized regret is bounded with high probability.

    Parameters
    ----------
    lower, best_reward : see `CostSCB`
    outliers : int
        As in `CostSCB`; a number, as the theorem needs a fixed one.
    delta : float, optional
        Tunes the rates for regret that holds with probability 1 - delta for this delta. Without
        it, one run serves all delta.
    half_life : int or timedelta, optional
        As in `CostSCB`; but a scale that has fallen is not followed at once.

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.

    Examples
    --------
    >>> from unbounded import CostSCBIX
    >>> learner = CostSCBIX(n_arms=3, best_reward=100, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, reward=[20, 90, 50][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = BanditSpec.of(
        __name__,
        reference="docs/theory/one-sided.md",
        guarantee="regret M (4 sqrt(n T ln n) + sqrt(n T / ln n) ln(2/delta) + ln(2/delta) + 1) "
        "with probability 1 - delta for losses in [lower, lower + M], Theorem O5",
        scale_free=True,
        examples=({}, {"outliers": 3}, {"delta": 0.01}, {"half_life": 40}),
    )

    _remedy = "where such {} say nothing about their arms, make it with outliers=k"

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        lower: float | None = None,
        best_reward: float | None = None,
        outliers: SupportsIndex = 0,
        delta: float | None = None,
        half_life: SupportsIndex | timedelta | str | None = None,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        least = checked_lower(lower, best_reward)
        outliers = checked_count("outliers", outliers, least=0)
        iota = math.log(n_arms)
        if delta is not None:
            delta = checked_constant("delta", delta, below=1.0)
            iota -= math.log(delta)
        params: Any = Params(n_arms, least, outliers + 1, iota)
        checked: dict[str, str] = {}
        if half_life is not None:
            weights, checked = rounds_or_time("half_life", half_life, outliers, n_arms)
            discounted = discounted_cost_scb_ix
            self.spec = discounted.IN_TIME if checked else discounted.SPEC
            params = discounted_cost_scb_ix.Params(n_arms, least, outliers + 1, iota, weights)
        self._start(params, seed, checked)
        self._least = self._low = least
        self._watching = outliers != 0  # where one is expected, it does no harm

    def _tenfold(self) -> tuple[float, float]:
        return self._params.lower, self._params.lower + 10.0 * self.scale
