"""SOLO FTRL, full information (Orabona & Pal 2018), on the simplex with the entropy.

FTRL whose regulariser is c (ln n + sum w ln w) times the root of the sum of squared norms of the
losses so far: w_t = softmax(-L / (c N)), N^2 = sum_s max_k l_{s,k}^2. c = sqrt(2.75 / ln n)
minimises the theorem's leading term. Reconstructed: the paper's text was not at hand, and the
theorem is quoted at second hand (docs/errata.md, O2).
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded._arguments import checked_count
from unbounded._jit import kernel
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.simplex.ftrl import shannon
from unbounded.core.simplex.lanes import (
    LANES,
)
from unbounded.core.simplex.sampling import fill_uniform, mix, sample
from unbounded.play.bandit_learner import Learner
from unbounded.play.contract import BanditSpec
from unbounded.play.seeds import Seed


class Params(NamedTuple):
    n: int
    c: float


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    N: float  # root of the sum of squares
    L: Vector  # (n,) cumulative losses
    w: Vector  # (n,) w_t
    lane_sums: Vector  # of w, for sampling
    lanes: Vector  # room for sums


def init(params: Params) -> State:
    """w_1 uniform."""
    w, lane_sums = np.empty(params.n), np.zeros(LANES)
    fill_uniform(w, lane_sums)
    return State(
        t=1, clipped=0, N=0.0, L=np.zeros(params.n), w=w, lane_sums=lane_sums, lanes=np.zeros(LANES)
    )


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with w_t."""
    q[:] = state.w


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw from w_t."""
    arm = sample(state.w, state.lane_sums, word)
    return arm, state.w[arm], 0.0


@kernel
def update(params: Params, state: State, arm: int, memo: float, losses: Vector) -> State:
    """Learn from the losses of all arms."""
    L, N = state.L, state.N
    norm = 0.0
    for i in range(params.n):
        L[i] += losses[i]
        norm = max(norm, abs(losses[i]))
    largest = max(N, norm)
    if largest > 0.0 and params.n > 1:
        unit = math.frexp(largest)[1]  # squares of losses would leave the range of floats
        a, b = math.ldexp(N, -unit), math.ldexp(norm, -unit)
        N = math.ldexp(math.sqrt(a * a + b * b), unit)
        eta = min(1.0 / (params.c * N), 1e308)  # subnormal N
        mix(state.w, 1.0 / shannon(L, eta, state.w, state.lanes), 0.0, state.lane_sums)
    return State(state.t + 1, 0, N, L, state.w, state.lane_sums, state.lanes)


@kernel
def scale(params: Params, state: State) -> float:
    """The root of the sum of squared norms."""
    return state.N


def bound(n: int, T: int) -> float:
    """Orabona & Pal 2018: (f(u) + 2.75 / c) sqrt(T) + 3.5 min(sqrt(T - 1) / c, 2)."""
    if n == 1:
        return 0.0
    c = math.sqrt(2.75 / math.log(n))
    main = (c * math.log(n) + 2.75 / c) * math.sqrt(T)
    return main + 3.5 * min(math.sqrt(T - 1) / c, 2.0)


SPEC = BanditSpec(
    name="SOLOFTRL",
    reference="Orabona & Pal 2018, SOLO FTRL with the entropy on the simplex",
    guarantee="regret 3.32 sqrt(T ln n) + 7 for losses of absolute value at most 1, not known",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
    feedback="full",
    delayed=False,
    scale_free=True,
    largest_loss=1e290,
    bound=bound,
    bound_unit="scale",
)


class SOLOFTRL(Learner):
    """Scale-free FTRL where the losses of all arms are seen.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import SOLOFTRL
    >>> learner = SOLOFTRL(n_arms=3, seed=0)
    >>> for _ in range(100):
    ...     choice = learner.ask()
    ...     learner.tell(choice, losses=[5e9, 1e9, 4e9])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = SPEC

    def __init__(self, n_arms: SupportsIndex, *, seed: Seed = None) -> None:
        n = checked_count("n_arms", n_arms)
        params = Params(n, math.sqrt(2.75 / math.log(n)) if n > 1 else 1.0)
        self._start(params, {"n_arms": n}, seed)
