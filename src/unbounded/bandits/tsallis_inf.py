"""Tsallis-INF with importance weighting (Zimmert & Seldin 2021, Algorithm 1).

FTRL with the 1/2-Tsallis entropy for losses in a known range: minimax-optimal against
adversaries and log-optimal against stochastic losses. Told the true range, it is the oracle
that SCB is compared with.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded._jit import kernel
from unbounded.core.ftrl import Anchor, tsallis, tsallis_cold, tsallis_moved
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
    x: float  # the normaliser of p_t and its power sums: where the next solve starts
    S2: float
    S3: float
    S4: float
    L_hat: Vector  # (n,) cumulative loss estimates
    p: Vector  # (n,) p_t
    lane_sums: Vector  # of p, for sampling
    lanes: Vector  # room for sums


def init(params: Params) -> State:
    """p_1 uniform."""
    n = params.n
    p, lane_sums = np.empty(n), np.zeros(LANES)
    fill_uniform(p, lane_sums)
    return State(
        t=1, clipped=0, x=0.0, S2=0.0, S3=0.0, S4=0.0,
        L_hat=np.zeros(n), p=p, lane_sums=lane_sums, lanes=np.zeros(3 * LANES),
    )  # fmt: skip


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with p_t."""
    q[:] = state.p


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw from p_t; the memo is p_{t,k}."""
    arm = sample(state.p, state.lane_sums, word)
    return arm, state.p[arm], state.p[arm]


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    t, L_hat = state.t + 1, state.L_hat
    x, clipped = to_unit(loss, params.low, params.high)
    L_before = L_hat[arm]
    L_hat[arm] += x / p_k
    anchor = Anchor(state.x, state.S2, state.S3, state.S4)
    if params.n > 1:
        eta = 2.0 / math.sqrt(t)
        if anchor.S2 > 0.0:
            anchor = tsallis_moved(anchor, L_before, L_hat[arm])
        else:
            anchor = tsallis_cold(L_hat, eta)
        anchor = tsallis(L_hat, eta, anchor, state.p, state.lanes)
        mix(state.p, 1.0 / anchor.S2, 0.0, state.lane_sums)
    return State(
        t, state.clipped + clipped, anchor.x, anchor.S2, anchor.S3, anchor.S4,
        L_hat, state.p, state.lane_sums, state.lanes,
    )  # fmt: skip


@kernel
def scale(params: Params, state: State) -> float:
    """The range that it was told."""
    return params.high - params.low


def bound(n: int, T: int) -> float:
    """Zimmert & Seldin 2021, Theorem 1, for losses in [0, 1]."""
    return 4.0 * math.sqrt(n * T) + 1.0


SPEC = BanditSpec(
    name="TsallisINF",
    reference="Zimmert & Seldin 2021, Algorithm 1 (importance-weighted)",
    guarantee="expected regret 4 sqrt(n T) + 1 for losses in a known range of width 1",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
    bound=bound,
)


class TsallisINF(Learner):
    """Minimax-optimal bandit for losses in a known range.

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
    >>> from unbounded import TsallisINF
    >>> learner = TsallisINF(n_arms=3, loss_range=(0, 100), seed=0)
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
