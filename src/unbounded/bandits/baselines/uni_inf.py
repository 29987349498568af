"""uniINF: parameter-free bandit for heavy-tailed losses (ICLR 2025), reconstructed.

FTRL with a log barrier and 1 / eta_t = S_t. With C_t = S_t / (4 (1 - p_k)), the estimator skips a
loss of |l| >= C_t; every loss, clipped to [-C_t, C_t], enters
S_{t+1}^2 = S_t^2 + clip(l)^2 (1 - p_k)^2 / (n ln T). Only the bounds were checked
against the paper. S_1 = 4 has the unit of a loss, so that the distribution does change with the
scale of the losses.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Count, Round, Values, Vector
from unbounded.core.simplex.ftrl import check_lambda, log_barrier_mixed
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int
    n_log_T: float


class State(NamedTuple):
    t: Round
    clipped: Count  # skipped, in the estimator
    S: Annotated[float, Values(4.0)]  # S_t = 1 / eta_t
    lam: float  # the normalizer of p_t: where the next solve starts
    L_hat: Vector  # (n,) cumulative loss estimates
    law: Law  # p_t

    def check(self, params: Params) -> None:
        check_lambda(self.lam, params.n)


def init(params: Params) -> State:
    """Start with S_1 = 4 and uniform p_1."""
    return State(t=1, clipped=0, S=4.0, lam=1.0, L_hat=np.zeros(params.n), law=new_law(params.n))


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    S, lam, L_hat = state.S, state.lam, state.L_hat
    skipped = False
    if params.n > 1:
        rest = max(0.0, 1.0 - p_k)
        # |l| >= C_t is 4 |l| rest >= S, and |clip(l)| rest is at most S / 4: rest may be 0.
        skipped = 4.0 * abs(loss) * rest >= S
        if not skipped:
            L_hat[arm] += loss / p_k
        step = min(abs(loss) * rest, 0.25 * S)
        S = math.sqrt(S * S + step * step / params.n_log_T)
        lam = log_barrier_mixed(L_hat, 1.0 / S, lam, state.law)
    return State(state.t + 1, state.clipped + skipped, S, lam, L_hat, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return S_t."""
    return state.S


class UniINF(Learner):
    """Log-barrier bandit for heavy-tailed losses, with no parameter of the tail.

    Notes
    -----
    ``clipped`` counts the losses that were left out of the estimates.
    """

    spec = BanditSpec.of(
        __name__,
        reference="uniINF, ICLR 2025 (reconstructed)",
        guarantee="expected regret of order sigma n^(1 - 1/a) T^(1/a) times logarithms where "
        "losses have an a-th moment sigma^a, under truncated non-negativity",
        delayed=False,
        largest_loss=1e150,
        examples=({"rounds": 2000},),
    )

    def __init__(self, n_arms: NumberOrNames, *, rounds: SupportsIndex, seed: Seed = None) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        n_log_T = n_arms * math.log(max(rounds, 2))  # T = 1 has no logarithm to divide by
        self._start(Params(n_arms, n_log_T), seed)
