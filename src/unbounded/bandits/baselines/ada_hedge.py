"""AdaHedge, full information (de Rooij, van Erven, Grunwald & Koolen 2014, figure 1).

Exponential weights with eta_t = ln n / D_{t-1}, D the sum of the mixability gaps that were paid. As
read in the paper (JMLR 15).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded.core.arrays import Count, Round, Size, Vector
from unbounded.core.simplex.hedge import ada_hedge
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    D: Size  # sum of the mixability gaps
    L: Vector  # (n,) cumulative losses
    law: Law  # w_t


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, losses: Vector) -> State:
    """Learn from the losses of all arms."""
    n, D = params.n, state.D
    if n > 1:
        D = ada_hedge(n, state.L, D, losses, state.law)
    return State(state.t + 1, 0, D, state.L, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return the sum of the mixability gaps."""
    return state.D


def bound(n: int, T: int) -> float:
    """De Rooij et al. 2014, Theorem 8 with losses of range 1 in every round."""
    return math.sqrt(T * math.log(n)) + 4.0 / 3.0 * math.log(n) + 2.0


class AdaHedge(Learner):
    """Exponential weights that tune themselves, where the losses of all arms are seen."""

    spec = BanditSpec.of(
        __name__,
        reference="de Rooij, van Erven, Grunwald & Koolen 2014, figure 1",
        guarantee="regret sqrt(T ln n) + 4/3 ln n + 2 for losses whose range, not known, is 1",
        feedback="full",
        delayed=False,
        scale_free=True,
        translation_invariant=True,
        largest_loss=1e290,
        bound=bound,
    )

    def __init__(self, n_arms: NumberOrNames, *, seed: Seed = None) -> None:
        n_arms = checked_count("n_arms", n_arms)
        self._start(Params(n_arms), seed)
