"""Scale-free Banker-OMD with a log barrier (Huang, Dai & Huang 2023, Algorithm 4), no delays.

As read in the paper (PMLR 202); docs/theory/errata.md, O1, says how others differ. Losses far
outside of what was observed are skipped. Without delays the action scales
sigma_t = max(sqrt((3 + D_t) / ln(3 + D_t / B_t^2)) / sqrt(n ln T), 2 B_t) never decrease, and the
algorithm is FTRL with 1 / eta_t = sigma_t on the losses that were not skipped; D_t is B_t^2 plus
the sum of their squares, and B_{t+1} = max(B_t, 2 |l|). (A skipped round leaves its savings
available: read literally, the pseudo-code would lose them and restart from uniform, which the
analysis does not need.) B_1 = 1 and the 3 have the unit of a loss, so that the distribution does
change with the scale of the losses.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Count, Round, Size, Values, Vector, close, require
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
    clipped: Count  # skipped, in this algorithm
    B: Annotated[float, Values(1.0)]  # B_t, the paper's \\hat{L}_t: losses above it are skipped
    Q: Size  # sum of the squares of the losses that were not skipped: D_t - B_t^2
    sigma: float  # sigma_t
    lam: float  # the normalizer of p_t: where the next solve starts
    L_hat: Vector  # (n,) cumulative loss estimates
    law: Law  # p_t

    def check(self, params: Params) -> None:
        require(close(self.sigma, _sigma(params.n_log_T, self.B, self.Q)), "another sigma")
        check_lambda(self.lam, params.n)


@kernel
def _sigma(n_log_T: float, B: float, Q: float) -> float:
    D = B * B + Q  # D_t: round t itself, not yet observed, counts with B_t^2
    return max(math.sqrt((3.0 + D) / math.log(3.0 + D / (B * B)) / n_log_T), 2.0 * B)


def init(params: Params) -> State:
    """Start with B_1 = 1 and uniform p_1."""
    return State(
        t=1, clipped=0, B=1.0, Q=0.0, sigma=_sigma(params.n_log_T, 1.0, 0.0), lam=1.0,
        L_hat=np.zeros(params.n), law=new_law(params.n),
    )  # fmt: skip


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    Q, lam, L_hat = state.Q, state.lam, state.L_hat
    skipped = abs(loss) > state.B or loss < -0.5 * state.sigma  # sigma >= 2 B: redundant
    B = max(state.B, 2.0 * abs(loss))
    if not skipped:
        L_hat[arm] += loss / p_k
        Q += loss * loss
    sigma = _sigma(params.n_log_T, B, Q)
    if params.n > 1:
        lam = log_barrier_mixed(L_hat, 1.0 / sigma, lam, state.law)
    return State(state.t + 1, state.clipped + skipped, B, Q, sigma, lam, L_hat, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return B_t, the threshold above which a loss is skipped."""
    return state.B


class Banker(Learner):
    """Log-barrier bandit for losses of any sign that skips losses out of proportion.

    Notes
    -----
    ``clipped`` counts the losses that were skipped.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Huang, Dai & Huang 2023, Algorithm 4 (Banker-SFLBINF)",
        guarantee="expected regret of order l_inf sqrt(n T) times logarithms",
        delayed=False,
        largest_loss=1e150,
        examples=({"rounds": 2000},),
    )

    def __init__(self, n_arms: NumberOrNames, *, rounds: SupportsIndex, seed: Seed = None) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        n_log_T = n_arms * math.log(max(rounds, 2))  # T = 1 has no logarithm to divide by
        self._start(Params(n_arms, n_log_T), seed)
