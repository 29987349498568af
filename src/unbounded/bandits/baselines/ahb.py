"""AHB: AdaHedge for bandits with extra exploration (Hadiji & Stoltz 2023, Algorithm 1).

Exponential weights with eta = ln n / S, S the sum of AdaHedge's mixability gaps, on payoffs
y = -loss less the mean of one pull of each arm. Strongly scale-free and translation-invariant; its
bound has a factor sqrt(ln n) more than SCB's. Here q is AdaHedge's distribution and p the one that
is played. Read in the paper (JMLR 24(13), (8) and Theorem 7), and compared with its authors' code,
which departs from it (docs/results/peers.md).
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from unbounded.core.arrays import (
    ROUNDING,
    Count,
    Distribution,
    Exponent,
    Round,
    Size,
    Values,
    Vector,
)
from unbounded.core.clipping import rescale
from unbounded.core.scaled import capped
from unbounded.core.simplex.ftrl import shannon
from unbounded.core.simplex.sampling import Law, blend, new_law, put_all_on
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_constant, checked_count

_MOST = 2.0**200  # of estimates in units of 2^e


class Params(NamedTuple):
    n: int
    exploration: float  # c: gamma_t = min(1/2, sqrt(c n ln n / t)); the paper has 5/2


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    e: Exponent  # payoffs, center, S and L_hat are in units of 2^e, above every |payoff| so far
    seen: bool  # whether a payoff other than 0 was seen
    center: Annotated[float, Values(-1.0 - ROUNDING, 1.0 + ROUNDING)]  # mean of the first n payoffs
    S: Size  # cumulative mixability gap
    L_hat: Annotated[Vector, Values(-_MOST, _MOST)]  # (n,) minus the cumulative payoff estimates
    q: Distribution  # (n,) AdaHedge's distribution
    law: Law  # p_t, what is played: q and extra exploration


def init(params: Params) -> State:
    """Start with arm 0, which round 1 pulls."""
    n, law = params.n, new_law(params.n)
    q = law.q.copy()
    put_all_on(law, 0)
    return State(
        t=1, clipped=0, e=0, seen=False, center=0.0, S=0.0, L_hat=np.zeros(n), q=q, law=law
    )


@kernel
def _mixability_gap(q_k: float, x: float, eta: float) -> float:
    """Return -q x + ln(1 - q + q e^{eta x}) / eta, for x on one arm; its limit if eta = inf."""
    if math.isinf(eta):
        return max(0.0, x) - q_k * x
    if eta * x > 1.0:
        after = q_k + (1.0 - q_k) * math.exp(-eta * x)
        if after == 0.0:  # an arm that only exploration draws: what it gains changes nothing
            return 0.0
        return x + math.log(after) / eta - q_k * x
    mean = q_k * math.expm1(eta * x)
    if eta == 0.0 or mean <= -1.0:  # of one arm; or of an arm that is certain and gains nothing
        return 0.0
    return math.log1p(mean) / eta - q_k * x


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    n, t, e, seen, center, S = params.n, state.t, state.e, state.seen, state.center, state.S
    q, p, L_hat = state.q, state.law.q, state.L_hat
    exponent = math.frexp(abs(loss))[1]
    if loss != 0.0 and (not seen or exponent > e):  # the largest so far sets the unit
        if seen:
            factor = math.ldexp(1.0, e - exponent)
            rescale(L_hat, e, exponent)
            center *= factor
            S *= factor
        e, seen = exponent, True
    y = -math.ldexp(loss, -e)
    if t <= n:  # round t pulled arm t - 1
        center += y / n
    else:
        x = (y - center) / p_k
        eta = math.log(n) / S if S > 0.0 else math.inf
        S += max(0.0, _mixability_gap(q[arm], x, eta))  # with q, not p
        L_hat[arm] -= x
    t += 1
    if t <= n:
        put_all_on(state.law, t - 1)
    else:
        eta = min(math.log(n) / S, 1e308) if S > 0.0 else 0.0  # subnormal S
        total = shannon(L_hat, eta, q, state.law.room)  # S = 0: L_hat = 0, q uniform
        gamma = min(0.5, math.sqrt(params.exploration * n * math.log(n) / t))
        for k in range(n):
            q[k] /= total
            p[k] = q[k]
        blend(state.law, 1.0 - gamma, gamma / n)
    return State(t, 0, e, seen, center, S, L_hat, q, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return S = ln n / eta, the sum of the mixability gaps."""
    return capped(state.S, state.e)


def bound(n: int, T: int) -> float:
    """Add up the three terms of Hadiji & Stoltz 2023, Theorem 7, at alpha = 1/2, for a range of 1.

    For large T that is at most 9.33 sqrt(n T ln n); the 7 that is printed does not follow
    (docs/theory/errata.md, O4).
    """
    if n == 1:
        return 0.0
    log_n = math.log(n)
    gamma_T = min(0.5, math.sqrt(2.5 * n * log_n / T))
    explored = 2.0 * math.sqrt(2.5 * n * T * log_n)
    return 3.0 * math.sqrt(n * T * log_n) + 5.0 * n * log_n / gamma_T + explored + n


class AHB(Learner):
    """AdaHedge for bandits: scale-free and translation-invariant.

    Parameters
    ----------
    exploration : float
        c in the share of extra exploration, gamma_t = min(1/2, sqrt(c n ln n / t)); 5/2 is the
        paper's.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Hadiji & Stoltz 2023, Algorithm 1",
        guarantee="expected regret O(range sqrt(n T ln n))",
        delayed=False,  # the first n pulls count the asks, and the gap needs q_t
        scale_free=True,
        translation_invariant=True,
        bound=bound,
    )

    def __init__(
        self, n_arms: NumberOrNames, *, exploration: float = 2.5, seed: Seed = None
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        exploration = checked_constant("exploration", exploration)
        self._start(Params(n_arms, exploration), seed)
