"""UMAB-NN: bandit for non-negative losses of any size (Chen & Zhang 2023), reconstructed.

FTRL with a log barrier and 1 / eta_t = sqrt(l_max^2 + sum_{s<t} l_s^2 / n) / 4, where l_max is the
largest loss observed before round t; no exploration and no clipping. Not checked against the
paper's text: this follows the structure of UMAB-G and the argument that for a non-negative
estimate the stability of a round is at most min(l, eta l^2 / 2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Count, Round, Size, Vector
from unbounded.core.simplex.ftrl import check_lambda, log_barrier_mixed
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: Round
    clipped: Count  # losses below 0, taken as 0
    l_max: Size  # the largest loss observed
    Q: Size  # sum of squared losses, in units of l_max^2: cannot overflow
    lam: float  # the normalizer of p_t: where the next solve starts
    L_hat: Vector  # (n,) cumulative loss estimates
    law: Law  # p_t

    def check(self, params: Params) -> None:
        check_lambda(self.lam, params.n)


def init(params: Params) -> State:
    """Start with p_1 uniform."""
    return State(
        t=1, clipped=0, l_max=0.0, Q=0.0, lam=1.0, L_hat=np.zeros(params.n), law=new_law(params.n)
    )


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    n, l_max, Q, lam, L_hat = params.n, state.l_max, state.Q, state.lam, state.L_hat
    l_k = max(0.0, loss)
    if l_k > l_max:  # a new unit of Q
        share = l_max / l_k
        Q *= share * share
        l_max = l_k
    if l_max > 0.0 and n > 1:
        share = l_k / l_max
        Q += share * share
        L_hat[arm] += l_k / p_k
        # eta_{t+1}; the minimum is for subnormal l_max
        eta = min(4.0 / (l_max * math.sqrt(1.0 + Q / n)), 1e308)
        lam = log_barrier_mixed(L_hat, eta, lam, state.law)
    return State(state.t + 1, state.clipped + (loss < 0.0), l_max, Q, lam, L_hat, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return the largest loss observed."""
    return state.l_max


class UMABNN(Learner):
    """Log-barrier bandit for non-negative losses of any size.

    Notes
    -----
    A negative loss is taken as 0, and counted in ``clipped``.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Chen & Zhang 2023, UMAB-NN (reconstructed)",
        guarantee="expected regret of order l_inf sqrt(n T log T) for non-negative losses",
        scale_free=True,
        largest_loss=1e290,
    )

    def __init__(self, n_arms: NumberOrNames, *, seed: Seed = None) -> None:
        n_arms = checked_count("n_arms", n_arms)
        self._start(Params(n_arms), seed)
