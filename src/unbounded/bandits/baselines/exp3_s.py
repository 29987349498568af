"""Exp3.S: Exp3 for a best arm that changes (Auer, Cesa-Bianchi, Freund & Schapire 2002, section 8).

For gains x in [0, 1]: p = (1 - gamma) w / W + gamma / n with W = sum_i w_i, and each weight becomes
w_j exp(gamma x_hat_j / n) + e alpha W / n. So no arm is ever far from being tried again. With
alpha = 1 / T and gamma = min(1, sqrt(n (S ln(n T) + e) / ((e - 1) T))), regret is bounded against
every sequence of arms with at most S - 1 switches. Not checked against the paper's text: the update
is the well-known one, tuning and bound follow from n (S ln(n / alpha) + e alpha T) / gamma
+ (e - 1) gamma T, the paper's Theorem 8.1 as quoted elsewhere. Here S is ``switches`` + 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

from unbounded.core.arrays import Count, Distribution, Round
from unbounded.core.clipping import to_unit
from unbounded.core.simplex.ftrl import total
from unbounded.core.simplex.sampling import Law, blend
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float
    gamma: float
    alpha: float


class State(NamedTuple):
    t: Round
    clipped: Count
    w: Distribution  # (n,) the weights over their sum; positive
    law: Law  # p_t


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    n, gamma, w, law = params.n, params.gamma, state.w, state.law
    x, clipped = to_unit(loss, params.low, params.high)
    p_k = max(p_k, gamma / n)  # only in the log of another policy it can be less
    w[arm] *= math.exp(gamma * (1.0 - x) / (n * p_k))  # at most e
    share = math.e * params.alpha / n  # e alpha W / n, where W = 1 before this round
    for i in range(n):
        w[i] += share
    inverse = 1.0 / total(w, law.room)
    for i in range(n):
        w[i] *= inverse
    assign(law.q, w)
    blend(law, 1.0 - gamma, gamma / n)
    return State(state.t + 1, state.clipped + clipped, w, law)


def bound(n: int, T: int, switches: int = 0) -> float:
    """Auer et al. 2002, Corollary 8.3, for gains in [0, 1]."""
    hardness = (switches + 1) * math.log(n * T) + math.e
    return 2.0 * math.sqrt((math.e - 1.0) * n * T * hardness)


class Exp3S(Learner):
    """Exponential weights that follow a changing best arm, for losses in a known range.

    Parameters
    ----------
    switches : int
        How often the best arm may change in that time.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Auer, Cesa-Bianchi, Freund & Schapire 2002, section 8",
        guarantee="expected regret 2.63 sqrt(n T (S ln(n T) + e)) against sequences of arms with "
        "S - 1 switches, for losses in a known range of width 1",
        bound=bound,
        examples=({"rounds": 2000}, {"rounds": 2000, "switches": 3}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex,
        switches: SupportsIndex = 0,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        switches = checked_count("switches", switches, least=0)
        loss_range = checked_range("loss_range", loss_range)
        hardness = (switches + 1) * math.log(n_arms * rounds) + math.e
        gamma = min(1.0, math.sqrt(n_arms * hardness / ((math.e - 1.0) * rounds)))
        self._start(Params(n_arms, *loss_range, gamma, 1.0 / rounds), seed)
