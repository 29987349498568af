"""Tsallis-INF with doubling restarts: the obvious way to deal with an unknown scale.

Tsallis-INF on [-R, R], where R is twice the first loss other than 0; when a loss exceeds R, R
becomes twice that loss and everything that was learned is thrown away. A control for SCB, which
does the same without forgetting.
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
from unbounded.core.simplex.ftrl import Anchor, tsallis, tsallis_cold, tsallis_moved
from unbounded.core.simplex.lanes import (
    LANES,
)
from unbounded.core.simplex.sampling import fill_uniform, mix, sample
from unbounded.play.bandit_learner import Learner
from unbounded.play.contract import BanditSpec
from unbounded.play.seeds import Seed


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: int
    clipped: int  # losses that exceeded R
    age: int  # rounds since the last restart
    R: float  # in units of 2^e; 0 before the first loss other than 0
    e: int
    x: float  # the normaliser of p_t and its power sums: where the next solve starts
    S2: float
    S3: float
    S4: float
    L_hat: Vector  # (n,) cumulative estimates of (loss + R) / (2 R) since the last restart
    p: Vector  # (n,) p_t
    lane_sums: Vector  # of p, for sampling
    lanes: Vector  # room for sums


def init(params: Params) -> State:
    """p_1 uniform."""
    n = params.n
    p, lane_sums = np.empty(n), np.zeros(LANES)
    fill_uniform(p, lane_sums)
    return State(
        t=1, clipped=0, age=0, R=0.0, e=0, x=0.0, S2=0.0, S3=0.0, S4=0.0,
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
    L_hat, age, R, e = state.L_hat, state.age, state.R, state.e
    value = math.ldexp(loss, -e)
    exceeds = abs(value) > R
    anchor = Anchor(state.x, state.S2, state.S3, state.S4)
    if exceeds:
        R, exponent = math.frexp(abs(loss))
        e, age = exponent + 1, 0
        L_hat[:] = 0.0
        anchor = Anchor(0.0, 0.0, 0.0, 0.0)
        fill_uniform(state.p, state.lane_sums)
    elif R > 0.0 and params.n > 1:
        age += 1
        L_before = L_hat[arm]
        L_hat[arm] += 0.5 * (value / R + 1.0) / p_k
        eta = 2.0 / math.sqrt(age + 1)
        if anchor.S2 > 0.0:
            anchor = tsallis_moved(anchor, L_before, L_hat[arm])
        else:
            anchor = tsallis_cold(L_hat, eta)
        anchor = tsallis(L_hat, eta, anchor, state.p, state.lanes)
        mix(state.p, 1.0 / anchor.S2, 0.0, state.lane_sums)
    return State(
        state.t + 1, state.clipped + exceeds, age, R, e,
        anchor.x, anchor.S2, anchor.S3, anchor.S4,
        L_hat, state.p, state.lane_sums, state.lanes,
    )  # fmt: skip


@kernel
def scale(params: Params, state: State) -> float:
    """R."""
    return math.ldexp(state.R, state.e)


SPEC = BanditSpec(
    name="DoublingTsallisINF",
    reference="folklore; Tsallis-INF of Zimmert & Seldin 2021",
    guarantee="none that holds against adversaries: it never explores an arm on purpose",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
    scale_free=True,
)


class DoublingTsallisINF(Learner):
    """Tsallis-INF that doubles its range and starts again when a loss exceeds it.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import DoublingTsallisINF
    >>> learner = DoublingTsallisINF(n_arms=3, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[90, 10, 80][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = SPEC

    def __init__(self, n_arms: SupportsIndex, *, seed: Seed = None) -> None:
        params = Params(checked_count("n_arms", n_arms))
        self._start(params, {"n_arms": params.n}, seed)
