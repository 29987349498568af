"""Sums over many arms whose order is fixed in the source, so that they vectorise *and* repeat.

A plain running sum has to add in sequence, which no compiler may vectorise without changing the
result. Here entry ``i`` goes to lane ``i % LANES``, each lane is summed by itself (elementwise,
hence vectorised), and the lanes are folded in halves at the end. Rows of LANES entries are taken
as slices: with computed indices the compiler keeps checks for negative ones and does not
vectorise.
"""

from __future__ import annotations

from unbounded.core.arrays import Vector
from unbounded.jit.kernel import kernel

LANES = 32


@kernel
def fold(lanes: Vector) -> float:
    """Sum the lanes by halves; destroys them."""
    width = LANES // 2
    while width > 0:
        for j in range(width):
            lanes[j] += lanes[j + width]
        width //= 2
    return lanes[0]
