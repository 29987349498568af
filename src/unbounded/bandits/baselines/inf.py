"""INF with a polynomial potential (Audibert & Bubeck 2010, theorem 11).

The first bandit whose regret has no logarithm. For gains y in [0, 1], p_i = psi(V_i - C) with
psi(x) = (eta / -x)^2 + gamma / n, eta = sqrt(5 T), gamma = min(1/2, sqrt(3 n / T)), V_k += y / p_k,
and C > max V such that p sums to 1. The first part of psi sums to 1 - gamma, so it is 1 - gamma
times the 1/2-Tsallis solution for L = -V with learning rate 2 sqrt(1 - gamma) / eta. Constants and
bound as read in the paper (JMLR 11).
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex.ftrl import Anchor, check_start, tsallis_cold, tsallis_mixed
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float
    eta: float  # of the Tsallis solve, 2 sqrt(1 - gamma) / sqrt(5 T): not the paper's eta
    gamma: float


class State(NamedTuple):
    t: Round
    clipped: Count
    x: float  # the normalizer of p_t: where the next solve starts
    L_hat: Vector  # (n,) minus V
    law: Law  # p_t

    def check(self, params: Params) -> None:
        check_start(self.x, self.L_hat, params.eta)


def init(params: Params) -> State:
    """Start with p_1 uniform."""
    L_hat = np.zeros(params.n)
    x = tsallis_cold(L_hat, params.eta).x
    return State(t=1, clipped=0, x=x, L_hat=L_hat, law=new_law(params.n))


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    loss_01, clipped = to_unit(loss, params.low, params.high)
    x, L_hat = state.x, state.L_hat
    L_hat[arm] -= (1.0 - loss_01) / p_k  # V_k += y / p_k
    if params.n > 1:
        start = Anchor(min(x, L_hat[arm] - 2.0 / params.eta), 0.0, 0.0, 0.0)
        x = tsallis_mixed(L_hat, params.eta, start, params.gamma, state.law).x
    return State(state.t + 1, state.clipped + clipped, x, L_hat, state.law)


def bound(n: int, T: int) -> float:
    """Audibert & Bubeck 2010, theorem 11, for gains in [0, 1]."""
    return 8.0 * math.sqrt(n * T)


class INF(Learner):
    """Implicitly normalized forecaster: minimax-optimal for a known range and known length."""

    spec = BanditSpec.of(
        __name__,
        reference="Audibert & Bubeck 2010, theorem 11",
        guarantee="expected regret 8 sqrt(n T) for losses in a known range of width 1",
        bound=bound,
        examples=({"rounds": 2000},),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        loss_range = checked_range("loss_range", loss_range)
        gamma = min(0.5, math.sqrt(3.0 * n_arms / rounds))
        eta = 2.0 * math.sqrt(1.0 - gamma) / math.sqrt(5.0 * rounds)
        self._start(Params(n_arms, *loss_range, eta, gamma), seed)
