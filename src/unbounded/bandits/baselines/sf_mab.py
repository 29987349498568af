"""SF-MAB: scale-free bandit with a log barrier (Putta & Agrawal 2022, Algorithm 1).

FTRL with F(p) = -sum ln p_i and a learning rate from the stability that was actually paid, mixed
with uniform exploration of a fixed or an adaptive share. The bounds follow the norms of the losses.
The constants 1 in eta_t and 2n in gamma_t have the unit of a loss, so that q_t does change with
the scale of the losses. Formulas as read in the paper (PMLR 167).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from unbounded.core.arrays import Count, Distribution, Round, Scratch, Size, Vector, require
from unbounded.core.simplex.ftrl import check_lambda, log_barrier
from unbounded.core.simplex.sampling import Law, blend, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count, checked_option

FIXED, ADAPTIVE = 0, 1


class Params(NamedTuple):
    n: int
    exploration: int


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    M: Size  # sum of the stability terms
    Gam: Size  # sum of Gamma_s, for adaptive exploration
    lam: float  # the normalizer of p_t: where the next solve starts
    L_hat: Vector  # (n,) cumulative loss estimates
    p: Distribution  # (n,) p_t
    theta: Scratch  # (n,) room for the stability term
    law: Law  # p'_t, mixed

    def check(self, params: Params) -> None:
        require(np.all(self.p > 0.0), "p has zeros")
        check_lambda(self.lam, params.n)


def init(params: Params) -> State:
    """Start with eta_0 = n, gamma_0 = 1/2 and uniform p_1."""
    n, law = params.n, new_law(params.n)
    return State(
        t=1, clipped=0, M=0.0, Gam=0.0, lam=1.0,
        L_hat=np.zeros(n), p=law.q.copy(), theta=np.empty(n), law=law,
    )  # fmt: skip


@kernel
def _share(params: Params, t: int, Gam: float) -> float:
    """Return gamma_t, which round t + 1 uses."""
    if t == 0:
        return 0.5
    if params.exploration == ADAPTIVE:
        return params.n / (2.0 * params.n + Gam)
    return min(0.5, math.sqrt(params.n / t))


@kernel
def _stability(
    p: Vector, eta: float, arm: int, l_hat: float, theta: Vector, r: Vector, lanes: Vector
) -> float:
    """Return max_r <l_hat, p - r> - Breg_F(r, p) / eta.

    The maximizer has 1 / r_i = 1 / p_i + eta l_hat_i + lambda.
    """
    for i in range(p.size):
        theta[i] = 1.0 / p[i]
    theta[arm] += eta * l_hat
    _, total = log_barrier(theta, 1.0, 1.0, r, lanes)
    divergence = 0.0
    for i in range(p.size):
        ratio = r[i] / (total * p[i])
        u = (r[i] / total - p[i]) / p[i]  # ratio - 1, without cancellation
        divergence += u - (math.log1p(u) if abs(u) < 0.5 else math.log(ratio))
    return l_hat * (p[arm] - r[arm] / total) - divergence / eta


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``q_k``."""
    n, t, L_hat, q, room = params.n, state.t, state.L_hat, state.law.q, state.law.room
    M, Gam, lam = state.M, state.Gam, state.lam
    if n > 1:
        l_hat = loss / q_k
        eta = n / (1.0 + M)  # eta_{t-1}: p_t was solved with it
        M += max(0.0, _stability(state.p, eta, arm, l_hat, state.theta, q, room))
        Gam += _share(params, t - 1, Gam) * abs(l_hat)  # Gamma_t, with gamma_{t-1}
        L_hat[arm] += l_hat
        lam, total = log_barrier(L_hat, n / (1.0 + M), lam, state.p, room)  # p_{t+1}, eta_t
        for i in range(n):
            state.p[i] /= total
            q[i] = state.p[i]
        gamma = _share(params, t, Gam)
        blend(state.law, 1.0 - gamma, gamma / n)
    return State(t + 1, 0, M, Gam, lam, L_hat, state.p, state.theta, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return 1 / eta_{t-1}, of the solve for p_t."""
    return (1.0 + state.M) / params.n


class SFMAB(Learner):
    """Log-barrier bandit for losses of any sign whose rates follow the losses that were seen.

    Parameters
    ----------
    exploration : {"fixed", "adaptive"}
        Whether the share of uniform exploration is sqrt(n / t) or follows the losses.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Putta & Agrawal 2022, Algorithm 1",
        guarantee="expected regret of order sqrt(n L_2) + L_inf sqrt(n T), or L_inf sqrt(n L_1) "
        "with adaptive exploration, times logarithms; L_1, L_2: sums of the norms of the losses",
        delayed=False,
        largest_loss=1e150,
        examples=({}, {"exploration": "adaptive"}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        exploration: Literal["fixed", "adaptive"] = "fixed",
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        option = checked_option("exploration", exploration, ("fixed", "adaptive"))
        self._start(Params(n_arms, option), seed)
