"""Exp3-IX for losses in a known range, without a horizon (Neu 2015).

Exp3 whose estimator divides by p + gamma: a small bias towards optimism (implicit exploration)
that makes the regret bound hold with high probability.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

from unbounded._jit import kernel
from unbounded.core import shannon_arms
from unbounded.core.known_range import to_unit
from unbounded.core.lanes import Vector
from unbounded.core.shannon_arms import Arms
from unbounded.learner import Learner, Seed, checked_arms, checked_range
from unbounded.spec import BanditSpec


class Params(NamedTuple):
    n: int
    low: float
    high: float


class State(NamedTuple):
    t: int
    clipped: int
    arms: Arms  # cumulative loss estimates, and p_t


def init(params: Params) -> State:
    """p_1 uniform."""
    return State(1, 0, shannon_arms.new_arms(params.n))


@kernel
def _eta(n: int, t: int) -> float:
    return math.sqrt(math.log(n) / (n * t))  # and gamma_t = eta_t / 2


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with p_t."""
    shannon_arms.fill(state.arms, q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw from p_t; the memo is p_{t,k} + gamma_t."""
    arm, p_k = shannon_arms.draw(state.arms, word)
    return arm, p_k, p_k + 0.5 * _eta(params.n, state.t)


@kernel
def update(params: Params, state: State, arm: int, p_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``p_k_gamma`` is p_{t,k} + gamma_t of its ask."""
    n, t, arms = params.n, state.t + 1, state.arms
    x, clipped = to_unit(loss, params.low, params.high)
    shannon_arms.add(arms, arm, x / p_k_gamma)
    shannon_arms.solve(arms, _eta(n, t), 0.0)
    return State(t, state.clipped + clipped, arms)


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
