"""Losses and weights in units of a power of two, so that a common factor 2^k changes no bit."""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import PAIR, horizon
from unbounded.core.occupancy.solver.outcome import ROUGH, SOLVED, UNSOLVED, Outcome
from unbounded.core.occupancy.solver.work import KL, SLACK, Work
from unbounded.jit.kernel import kernel, subroutine

_ROUNDING = 1e-13  # no gap below this, relative to the largest weight, is asked for


class Units(NamedTuple):
    """The unit 2^e, and the weights' range in it."""

    e: int
    w_min: float
    w_max: float
    placeholder: bool  # no scale was seen yet: the weights stand for any (erratum E16)


@subroutine
def normalise(lay: Integers, L: Vector, w: Vector, W: Work) -> Units:
    """W.L, W.w: losses and weights in units of 2^e, the largest weight in [1/2, 1).

    Scaling is exact and comes first; then each layer's least loss is subtracted. Pairs that W.L
    has infinity for (`reach.mark`) keep it.
    """
    H = horizon(lay)
    top = 0.0
    for h in range(H):
        top = max(top, w[h])
    placeholder = not top > 0.0
    e = 0
    if not placeholder:
        _, e = math.frexp(top)
    w_min = 1.0
    w_max = 0.0
    W.L[0] = 0.0
    for h in range(1, H + 1):
        W.w[h] = 1.0 if placeholder else math.ldexp(w[h - 1], -e)
        w_min = min(w_min, W.w[h])
        w_max = max(w_max, W.w[h])
        least = math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.L[p] != math.inf:
                W.L[p] = 0.0 if placeholder else math.ldexp(L[p], -e)
                least = min(least, W.L[p])
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            W.L[p] -= least
    W.w[0] = W.w[1]
    return Units(e, w_min, w_max, placeholder)


@kernel
def wanted_gap(units: Units, tol: float) -> float:
    """The gap at which a program counts as solved, in units of 2^e."""
    return max(tol * units.w_min, _ROUNDING * units.w_max)


@kernel
def conclude(
    units: Units, tol: float, gap: float, steps: int, certificates: int, iterations: int,
    method: int, W: Work,
) -> Outcome:  # fmt: skip
    """The outcome of a solve whose best point, of this ``gap`` in units of 2^e, is in ``W``."""
    status = UNSOLVED
    if gap <= wanted_gap(units, tol):
        status = SOLVED
    elif gap <= tol * units.w_max:
        status = ROUGH
    return Outcome(
        math.ldexp(gap, units.e), gap / units.w_min, gap / units.w_max, steps, certificates,
        iterations, method, status, W.parts[KL] / units.w_max, W.parts[SLACK] / units.w_max,
    )  # fmt: skip
