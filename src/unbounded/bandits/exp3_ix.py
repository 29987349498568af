"""Exp3-IX for losses in a known range, without a horizon (Neu 2015).

Exp3 whose estimator divides by p + gamma: a small bias towards optimism (implicit exploration)
that makes the regret bound hold with high probability.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded._jit import kernel
from unbounded.core.ftrl import shannon
from unbounded.core.known_range import to_unit
from unbounded.core.lanes import LANES, Vector
from unbounded.core.simplex import fill_uniform, mix, sample
from unbounded.learner import Learner, Seed, checked_arms, checked_range
from unbounded.spec import BanditSpec


class Params(NamedTuple):
    n: int
    low: float
    high: float


class State(NamedTuple):
    t: int
    clipped: int
    L_hat: Vector  # (n,) cumulative loss estimates
    p: Vector  # (n,) p_t
    lane_sums: Vector  # of p, for sampling
    lanes: Vector  # room for sums


def init(params: Params) -> State:
    """p_1 uniform."""
    p, lane_sums = np.empty(params.n), np.zeros(LANES)
    fill_uniform(p, lane_sums)
    return State(1, 0, np.zeros(params.n), p, lane_sums, np.zeros(LANES))


@kernel
def _eta(n: int, t: int) -> float:
    return math.sqrt(math.log(n) / (n * t))  # and gamma_t = eta_t / 2


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with p_t."""
    q[:] = state.p


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw from p_t; the memo is p_{t,k} + gamma_t."""
    arm = sample(state.p, state.lane_sums, word)
    return arm, state.p[arm], state.p[arm] + 0.5 * _eta(params.n, state.t)


@kernel
def update(params: Params, state: State, arm: int, p_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``p_k_gamma`` is p_{t,k} + gamma_t of its ask."""
    n, t, L_hat = params.n, state.t + 1, state.L_hat
    x, clipped = to_unit(loss, params.low, params.high)
    L_hat[arm] += x / p_k_gamma
    total = shannon(L_hat, _eta(n, t), state.p, state.lanes)
    mix(state.p, 1.0 / total, 0.0, state.lane_sums)
    return State(t, state.clipped + clipped, L_hat, state.p, state.lane_sums, state.lanes)


@kernel
def scale(params: Params, state: State) -> float:
    """The range that it was told."""
    return params.high - params.low


SPEC = BanditSpec(
    name="Exp3IX",
    reference="Neu 2015, Algorithm 1 with anytime rates",
    guarantee="regret 4 sqrt(n T ln n) + (2 sqrt(n T / ln n) + 1) ln(2/delta) with probability "
    "1 - delta, for losses in a known range of width 1",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
)


class Exp3IX(Learner):
    """Exponential weights with implicit exploration, for losses in a known range.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    loss_range : (float, float)
        Losses outside of it are clipped to it, and counted in ``clipped``.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import Exp3IX
    >>> learner = Exp3IX(n_arms=3, loss_range=(0, 100), seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[90, 10, 80][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = SPEC

    def __init__(
        self,
        n_arms: SupportsIndex,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        low, high = checked_range("loss_range", loss_range)
        params = Params(n=checked_arms(n_arms), low=low, high=high)
        self._start(params, {"n_arms": params.n, "loss_range": [low, high]}, seed)
