"""SOLO FTRL, full information (Orabona & Pal 2018), on the simplex with the entropy.

FTRL whose regularizer is c (ln n + sum w ln w) times the root of the sum of squared norms of the
losses so far: w_t = softmax(-L / (c N)), N^2 = sum_s max_k l_{s,k}^2. c = sqrt(2.75 / ln n)
minimizes the theorem's leading term. Reconstructed, with the theorem, from secondary sources
(docs/theory/errata.md, O2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded.core.arrays import Count, Round, Size, Vector
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int
    c: float


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    N: Size  # root of the sum of squares
    L: Vector  # (n,) cumulative losses
    law: Law  # w_t


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, losses: Vector) -> State:
    """Learn from the losses of all arms."""
    L, N = state.L, state.N
    norm = 0.0
    for i in range(params.n):
        L[i] += losses[i]
        norm = max(norm, abs(losses[i]))
    largest = max(N, norm)
    if largest > 0.0 and params.n > 1:
        unit = math.frexp(largest)[1]  # squares of losses would leave the range of floats
        a, b = math.ldexp(N, -unit), math.ldexp(norm, -unit)
        N = math.ldexp(math.sqrt(a * a + b * b), unit)
        eta = min(1.0 / (params.c * N), 1e308)  # subnormal N
        shannon_mixed(L, eta, 0.0, state.law)
    return State(state.t + 1, 0, N, L, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return the root of the sum of squared norms."""
    return state.N


def bound(n: int, T: int) -> float:
    """Orabona & Pal 2018: (f(u) + 2.75 / c) sqrt(T) + 3.5 min(sqrt(T - 1) / c, 2)."""
    if n == 1:
        return 0.0
    c = math.sqrt(2.75 / math.log(n))
    main = (c * math.log(n) + 2.75 / c) * math.sqrt(T)
    return main + 3.5 * min(math.sqrt(T - 1) / c, 2.0)


class SOLOFTRL(Learner):
    """Scale-free FTRL where the losses of all arms are seen."""

    spec = BanditSpec.of(
        __name__,
        reference="Orabona & Pal 2018, SOLO FTRL with the entropy on the simplex",
        guarantee="regret 3.32 sqrt(T ln n) + 7 for losses of absolute value at most 1, not known",
        feedback="full",
        delayed=False,
        scale_free=True,
        largest_loss=1e290,
        bound=bound,
        bound_unit="scale",
    )

    def __init__(self, n_arms: NumberOrNames, *, seed: Seed = None) -> None:
        n_arms = checked_count("n_arms", n_arms)
        c = math.sqrt(2.75 / math.log(n_arms)) if n_arms > 1 else 1.0
        self._start(Params(n_arms, c), seed)
