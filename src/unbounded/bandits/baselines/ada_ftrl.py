"""AdaFTRL, full information (Orabona & Pal 2018), on the simplex with the entropy.

FTRL with the regularizer D_{t-1} f(w), f(w) = c (ln n + sum w ln w), where
D_t = D_{t-1} (1 + B_{f*}(-L_t / D_{t-1}, -L_{t-1} / D_{t-1})). For this f the Bregman term is the
mixability gap at eta = 1 / (c D_{t-1}), so that c = 1 / ln n makes AdaHedge. Not checked
against the paper's text; the bound is derived here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded.core.arrays import Count, Round, Size, Vector
from unbounded.core.simplex.hedge import hedge, mixability_gap
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_constant, checked_count


class Params(NamedTuple):
    n: int
    c: float


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    D: Size  # sum of the mixability gaps
    L: Vector  # (n,) cumulative losses
    law: Law  # w_t


@kernel
def _eta(c: float, D: float) -> float:
    return 1.0 / (c * D) if D > 0.0 else math.inf


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, losses: Vector) -> State:
    """Learn from the losses of all arms."""
    n, L, D = params.n, state.L, state.D
    if n > 1:
        D += mixability_gap(L, _eta(params.c, D), state.law.q, losses)
        for i in range(n):
            L[i] += losses[i]
        hedge(L, _eta(params.c, D), state.law)
    return State(state.t + 1, 0, D, L, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return the sum of the mixability gaps."""
    return state.D


def bound(n: int, T: int) -> float:
    """For c = 1 and losses of range 1 in every round.

    The gap d of a round of range s is at most s and at most s^2 eta / 8, eta = 1 / (c D), so that
    D_T^2 grows by 2 D d + d^2 <= (1 / (4 c) + 1) s^2 per round; and regret <= D_T (c ln n + 1).
    """
    return (1.0 + math.log(n)) * math.sqrt(1.25 * T)


class AdaFTRL(Learner):
    """FTRL that tunes itself by what it has paid, where the losses of all arms are seen.

    Parameters
    ----------
    strength : float
        Multiplies the entropy; 1 / ln n gives `AdaHedge`.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Orabona & Pal 2018, AdaFTRL with the entropy on the simplex (reconstructed)",
        guarantee="regret 1.12 (1 + ln n) sqrt(T) for losses whose range, not known, is 1",
        feedback="full",
        delayed=False,
        scale_free=True,
        translation_invariant=True,
        largest_loss=1e290,
        bound=bound,
    )

    def __init__(self, n_arms: NumberOrNames, *, strength: float = 1.0, seed: Seed = None) -> None:
        n_arms = checked_count("n_arms", n_arms)
        strength = checked_constant("strength", strength)
        self._start(Params(n_arms, strength), seed)
