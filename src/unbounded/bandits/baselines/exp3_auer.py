"""Exp3 in its original form (Auer, Cesa-Bianchi, Freund & Schapire 2002, section 3).

For gains x in [0, 1]: p = (1 - gamma) w / W + gamma / n and w_k *= exp(gamma x / (n p_k)), with
gamma = min(1, sqrt(n ln n / ((e - 1) T))). Not checked against the paper's text: the update is the
one that River, pymab and SMPyBandits implement (docs/results/peers.md), gamma and the bound are
reconstructed.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count, checked_part, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float
    gamma: float


class State(NamedTuple):
    t: Round
    clipped: Count
    L_hat: Vector  # (n,) minus the cumulative reward estimates
    law: Law  # p_t


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    n, gamma, L_hat = params.n, params.gamma, state.L_hat
    x, clipped = to_unit(loss, params.low, params.high)
    L_hat[arm] -= (1.0 - x) / p_k  # w = exp(-(gamma / n) L_hat); 1 - x is the gain
    shannon_mixed(L_hat, gamma / n, gamma, state.law)
    return State(state.t + 1, state.clipped + clipped, L_hat, state.law)


def bound(n: int, T: int) -> float:
    """Auer et al. 2002, Corollary 3.2 with G_max <= T, for gains in [0, 1]."""
    return 2.0 * math.sqrt(math.e - 1.0) * math.sqrt(n * T * math.log(n))


class Exp3Auer(Learner):
    """Exponential weights with explicit exploration, for losses in a known range.

    Parameters
    ----------
    rounds : int, optional
        How many rounds will be played; sets ``gamma``.
    gamma : float, optional
        Instead of ``rounds``: the share of uniform exploration, in (0, 1].
    """

    spec = BanditSpec.of(
        __name__,
        reference="Auer, Cesa-Bianchi, Freund & Schapire 2002, section 3",
        guarantee="expected regret 2.63 sqrt(n T ln n) for losses in a known range of width 1",
        bound=bound,
        examples=({"rounds": 2000}, {"gamma": 0.1}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex | None = None,
        gamma: float | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        rounds = None if rounds is None else checked_count("rounds", rounds)
        loss_range = checked_range("loss_range", loss_range)
        gamma = None if gamma is None else checked_part("gamma", gamma)
        if (rounds is None) == (gamma is None):
            raise TypeError("pass either rounds or gamma")
        if rounds is not None:
            share = min(1.0, math.sqrt(n_arms * math.log(n_arms) / ((math.e - 1.0) * rounds)))
        elif gamma is not None:
            share = gamma
        self._start(Params(n_arms, *loss_range, share), seed)
