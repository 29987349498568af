"""Bookkeeping of a simulated play: cumulative losses and extremes, of which regret is made.

Sums are multiplied by a unit, 1 until a loss exceeds 2^900 and 2^-200 from then on, so that
regret can be formed even where a sum of losses exceeds the range of float64.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import Matrix, Vector
from unbounded.core.simplex.sampling import LANES, fold
from unbounded.jit.kernel import counting_kernel as kernel

# Slots of the book. EXPECTED holds *half* the sum of <q_t, l_t>: where every loss is the largest
# float, a q that sums to 1 + 1e-16 must not overflow. Lanes follow after them.
ARM, UNIT, PLAYED, EXPECTED, LOW, HIGH = range(6)
_LANES_AT = 6
_HUGE = 2.0**900
_SMALL_UNIT = 2.0**-200


def new_book() -> Vector:
    """Return an empty book."""
    book = np.zeros(_LANES_AT + LANES)
    book[ARM] = -1
    book[UNIT] = 1.0
    book[LOW] = math.inf
    book[HIGH] = -math.inf
    return book


@kernel
def tally(book: Vector, cumulative: Vector, losses: Matrix) -> None:
    """Enter the losses of all arms in one or more rounds, an array of shape (rounds, n)."""
    _extremes(book, losses.reshape(losses.size))
    if book[UNIT] == 1.0 and max(book[HIGH], -book[LOW]) > _HUGE:
        book[UNIT] = _SMALL_UNIT
        book[PLAYED] *= _SMALL_UNIT
        book[EXPECTED] *= _SMALL_UNIT
        cumulative *= _SMALL_UNIT
    unit = book[UNIT]
    for r in range(losses.shape[0]):
        row = losses[r]
        for k in range(cumulative.size):
            cumulative[k] += row[k] * unit


@kernel
def tally_some(book: Vector, cumulative: Vector, losses: Vector) -> None:
    """Enter the losses of a few arms, with one sum for each."""
    for i in range(losses.size):
        loss = losses[i]
        if loss < book[LOW] or loss > book[HIGH]:
            book[LOW] = min(book[LOW], loss)
            book[HIGH] = max(book[HIGH], loss)
            if book[UNIT] == 1.0 and abs(loss) > _HUGE:
                book[UNIT] = _SMALL_UNIT
                cumulative *= _SMALL_UNIT
        cumulative[i] += loss * book[UNIT]


@kernel
def tally_played(book: Vector, loss: float) -> None:
    """Enter the loss of the arm that was played."""
    book[PLAYED] += loss * book[UNIT]


@kernel
def tally_expected(book: Vector, q: Vector, losses: Vector) -> None:
    """Enter <q_t, l_t>."""
    half = 0.5 * book[UNIT]
    expected = 0.0
    n = losses.size
    whole = n - n % LANES
    if whole > 0:
        sums = book[_LANES_AT:]
        sums[:] = 0.0
        for base in range(0, whole, LANES):
            row, weights = losses[base : base + LANES], q[base : base + LANES]
            for j in range(LANES):
                sums[j] += weights[j] * (row[j] * half)
        expected = fold(sums)
    for k in range(whole, n):
        expected += q[k] * (losses[k] * half)
    book[EXPECTED] += expected


@kernel
def _extremes(book: Vector, losses: Vector) -> None:
    low0 = low1 = low2 = low3 = book[LOW]  # four at a time: a maximum waits for the one before it
    high0 = high1 = high2 = high3 = book[HIGH]
    n = losses.size
    for i in range(0, n - 3, 4):
        a, b, c, d = losses[i], losses[i + 1], losses[i + 2], losses[i + 3]
        low0 = a if a < low0 else low0
        low1 = b if b < low1 else low1
        low2 = c if c < low2 else low2
        low3 = d if d < low3 else low3
        high0 = a if a > high0 else high0
        high1 = b if b > high1 else high1
        high2 = c if c > high2 else high2
        high3 = d if d > high3 else high3
    for i in range(n - n % 4, n):
        low0 = min(low0, losses[i])
        high0 = max(high0, losses[i])
    book[LOW] = min(min(low0, low1), min(low2, low3))
    book[HIGH] = max(max(high0, high1), max(high2, high3))
