"""The learner that learns nothing: what every other one must beat."""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded._arguments import checked_count
from unbounded._jit import kernel
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.simplex.lanes import (
    LANES,
)
from unbounded.core.simplex.sampling import fill_uniform, sample
from unbounded.play.bandit_learner import Learner
from unbounded.play.contract import BanditSpec
from unbounded.play.seeds import Seed


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    q: Vector  # (n,)
    lane_sums: Vector  # of q, for sampling


def init(params: Params) -> State:
    """q uniform, for ever."""
    q, lane_sums = np.empty(params.n), np.zeros(LANES)
    fill_uniform(q, lane_sums)
    return State(1, 0, q, lane_sums)


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q``."""
    q[:] = state.q


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw any arm."""
    arm = sample(state.q, state.lane_sums, word)
    return arm, state.q[arm], 0.0


@kernel
def update(params: Params, state: State, arm: int, memo: float, loss: float) -> State:
    """Count the round."""
    return State(state.t + 1, 0, state.q, state.lane_sums)


@kernel
def scale(params: Params, state: State) -> float:
    """It works with no scale."""
    return 0.0


SPEC = BanditSpec(
    name="Uniform",
    reference="none",
    guarantee="none",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
    scale_free=True,
    shift_free=True,
)


class Uniform(Learner):
    """Every arm with equal probability, whatever the losses.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import Uniform
    >>> Uniform(n_arms=4, seed=0).ask().probability
    0.25
    """

    spec = SPEC

    def __init__(self, n_arms: SupportsIndex, *, seed: Seed = None) -> None:
        params = Params(checked_count("n_arms", n_arms))
        self._start(params, {"n_arms": params.n}, seed)
