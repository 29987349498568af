"""Bookkeeping of a simulated play: cumulative losses, extremes and regret.

Sums are multiplied by a unit, 1 until a loss exceeds 2^900 and 2^-200 from then on, so that
regret can be formed even where a sum of losses exceeds the range of float64.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded._jit import kernel
from unbounded.core.lanes import LANES, Vector, fold, fold_max

# Slots of the book. EXPECTED holds *half* the sum of <q_t, l_t>: where every loss is the largest
# float, a q that sums to 1 + 1e-16 must not overflow. The lanes follow after the named slots.
ARM, UNIT, PLAYED, EXPECTED, LOW, HIGH = range(6)
_LANES_AT = 6
_HUGE = 2.0**900
_SMALL_UNIT = 2.0**-200


def new_book() -> Vector:
    """An empty book."""
    book = np.zeros(_LANES_AT + 3 * LANES)
    book[ARM] = -1
    book[UNIT] = 1.0
    book[LOW] = math.inf
    book[HIGH] = -math.inf
    return book


@kernel
def tally(
    book: Vector, cumulative: Vector, losses: Vector, q: Vector, looks: bool, arm: int
) -> None:
    """Enter one round: the ``losses`` of all arms, the distribution ``q`` and the arm played."""
    unit = book[UNIT]
    half = 0.5 * unit
    low = book[LOW]
    high = book[HIGH]
    expected = 0.0
    n = losses.size
    whole = n - n % LANES if n >= LANES else 0
    if whole > 0:
        lanes = book[_LANES_AT:]
        for j in range(LANES):
            lanes[j] = 0.0
            lanes[LANES + j] = -low
            lanes[2 * LANES + j] = high
        for base in range(0, whole, LANES):
            for j in range(LANES):
                loss = losses[base + j]
                cumulative[base + j] += loss * unit
                lanes[LANES + j] = max(lanes[LANES + j], -loss)
                lanes[2 * LANES + j] = max(lanes[2 * LANES + j], loss)
        if looks:
            for base in range(0, whole, LANES):
                for j in range(LANES):
                    lanes[j] += q[base + j] * (losses[base + j] * half)
            expected = fold(lanes, 0)
        low = -fold_max(lanes, LANES)
        high = fold_max(lanes, 2 * LANES)
    for k in range(whole, n):
        loss = losses[k]
        cumulative[k] += loss * unit
        low = min(low, loss)
        high = max(high, loss)
        if looks:
            expected += q[k] * (loss * half)
    book[LOW] = low
    book[HIGH] = high
    book[PLAYED] += losses[arm] * unit
    book[EXPECTED] += expected
    if unit == 1.0 and max(high, -low) > _HUGE:
        # One round above 2^900 cannot have overflowed yet: what stood before is below half an
        # ulp of the largest float.
        book[UNIT] = _SMALL_UNIT
        book[PLAYED] *= _SMALL_UNIT
        book[EXPECTED] *= _SMALL_UNIT
        for k in range(n):
            cumulative[k] *= _SMALL_UNIT
