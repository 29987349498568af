"""AdaTINF: bandit for heavy-tailed losses of unknown tail (Huang, Dai & Huang 2022, Algorithm 3).

FTRL with Psi = -2 sum sqrt(p) and 1 / eta_t = lambda sqrt(t), where lambda = 2^J. A loss above
r_t = (1 - 2^(-1/3)) sqrt(p_k) / eta_t is skipped. The cost of the round, c_t = 2 eta_t l^2 /
sqrt(p_k), or |l| if it was skipped, is added up in S. When S > lambda sqrt(n (T + 1)), J becomes
the larger of J + 1 and ceil(log2(c_t / sqrt(n (T + 1)))) + 1, and S starts again from c_t.
Reconstructed from secondary sources, not checked against the paper's text, with |l| for skipped
losses of any sign.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, SupportsIndex

from unbounded.core.arrays import Count, Round, Size, Values, Vector, require
from unbounded.core.simplex.ftrl import power_entropy
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count

_THETA = 1.0 - 2.0 ** (-1.0 / 3.0)
_MOST_DOUBLINGS = 600  # of lambda, for losses of up to 1e150
_MOST = 1e200  # a sum of losses that are not skipped, each over its probability


class Params(NamedTuple):
    n: int
    budget: float  # sqrt(n (T + 1))


class State(NamedTuple):
    t: Round
    clipped: Count  # skipped
    J: Annotated[int, Values(0, _MOST_DOUBLINGS)]  # lambda = 2^J; never falls
    S: Size  # sum of c_t since J changed, that round included; >= 0
    L_hat: Annotated[Vector, Values(-_MOST, _MOST)]  # (n,) cumulative loss estimates
    law: Law  # p_t

    def check(self, params: Params) -> None:
        require(math.ldexp(params.budget, self.J) >= self.S, "lambda would have grown")


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    n, t, L_hat, J = params.n, state.t, state.L_hat, state.J
    weight = math.ldexp(math.sqrt(t), J)  # 1 / eta_t
    root = math.sqrt(p_k)
    skipped = abs(loss) > _THETA * weight * root  # r_t
    if skipped:
        c = abs(loss)
    else:
        c = 2.0 * loss * loss / (weight * root)
        L_hat[arm] += loss / p_k
    S = state.S + c
    if math.ldexp(params.budget, J) < S:
        J = max(J + 1, math.frexp(c / params.budget)[1] + 1)  # frexp: ceil(log2), or 1 + log2
        S = c
    if n > 1:
        power_entropy(L_hat, 1.0 / math.ldexp(math.sqrt(t + 1), J), 2.0, state.law)
    return State(t + 1, state.clipped + skipped, J, S, L_hat, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return lambda."""
    return math.ldexp(1.0, state.J)


class AdaTINF(Learner):
    """Tsallis-entropy bandit for heavy-tailed losses, with no parameter of the tail.

    Notes
    -----
    ``clipped`` counts the losses that were left out of the estimates.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Huang, Dai & Huang 2022, Algorithm 3 (from secondary sources)",
        guarantee="expected regret of order sigma n^(1 - 1/a) T^(1/a) where losses have an a-th "
        "moment sigma^a, under truncated non-negativity",
        largest_loss=1e150,
        examples=({"rounds": 2000},),
    )

    def __init__(self, n_arms: NumberOrNames, *, rounds: SupportsIndex, seed: Seed = None) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        self._start(Params(n_arms, math.sqrt(n_arms * (rounds + 1.0))), seed)
