"""Exponential weights on known losses, and how much a learning rate loses by not being infinite.

``eta = inf`` is legal everywhere and means follow the leader.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Vector
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law, blend, least
from unbounded.jit.kernel import kernel


@kernel
def hedge(L: Vector, eta: float, w: Law) -> None:
    """Make ``w`` proportional to exp(-eta L_i); with eta = inf, uniform on argmin L."""
    if not math.isinf(eta):
        shannon_mixed(L, eta, 0.0, w)
        return
    smallest = least(L)
    leaders = 0
    for i in range(L.size):
        w.q[i] = 1.0 if L[i] == smallest else 0.0
        leaders += L[i] == smallest
    blend(w, 1.0 / leaders, 0.0)


@kernel
def mixability_gap(L: Vector, eta: float, w: Vector, losses: Vector) -> float:
    """<w, l> + (1/eta) ln sum_i w_i exp(-eta l_i), not below 0, for the w of `hedge`.

    The weights are taken from ``L`` again, in logarithms: one that underflowed in ``w`` matters
    where its arm is the only good one in this round.
    """
    n = L.size
    L_min = L[0]
    l_min = losses[0]
    next_min = L[0] + losses[0]
    for i in range(n):
        L_min = min(L_min, L[i])
        l_min = min(l_min, losses[i])
        next_min = min(next_min, L[i] + losses[i])
    hedge_loss = 0.0  # above l_min
    for i in range(n):
        hedge_loss += w[i] * (losses[i] - l_min)
    if math.isinf(eta):
        return max(0.0, hedge_loss - ((next_min - L_min) - l_min))
    top = -math.inf
    for i in range(n):
        top = max(top, -(L[i] - L_min) - (losses[i] - l_min))
    before = after = 0.0
    for i in range(n):
        before += math.exp(-eta * (L[i] - L_min))
        after += math.exp(-eta * ((L[i] - L_min) + (losses[i] - l_min) + top))
    mix_loss = -top - (math.log(after) - math.log(before)) / eta  # above l_min
    return max(0.0, hedge_loss - mix_loss)


@kernel
def ada_hedge(n: int, L: Vector, D: float, losses: Vector, w: Law) -> float:
    """A round of AdaHedge with ``n > 1`` arms: ``L`` gets the losses, ``w`` the next weights.

    ``D`` is the sum of the mixability gaps, eta = ln n / D; returned is the next one. An arm with
    infinite ``L`` is none: it is not counted in ``n`` and has no weight, and its loss, which must
    be finite, does not matter.
    """
    D += mixability_gap(L, _eta(n, D), w.q, losses)
    for i in range(L.size):
        L[i] += losses[i]
    hedge(L, _eta(n, D), w)
    return D


@kernel
def _eta(n: int, D: float) -> float:
    return math.log(n) / D if D > 0.0 else math.inf
