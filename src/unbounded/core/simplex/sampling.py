"""Distributions over the arms: mixing with the uniform one, and sampling from a random word.

Sums over many arms have an order that is fixed in the source, so that they vectorise *and* repeat.
A plain running sum has to add in sequence, which no compiler may vectorise without changing the
result. Here entry ``i`` goes to lane ``i % LANES``, each lane is summed by itself (elementwise,
hence vectorised), and the lanes are folded in halves at the end. Rows of LANES entries are taken
as slices: with computed indices the compiler keeps checks for negative ones and does not vectorise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import ROUNDING, Scratch, Vector, require, require_distribution
from unbounded.jit.kernel import assign, kernel

LANES = 32
ROOM = 4 * LANES  # of the solver that needs most


@kernel
def fold(lanes: Vector) -> float:
    """Sum the lanes by halves; destroys them."""
    width = LANES // 2
    while width > 0:
        for j in range(width):
            lanes[j] += lanes[j + width]
        width //= 2
    return lanes[0]


@kernel
def least(values: Vector) -> float:
    """Return the smallest of ``values``."""
    smallest = values[0]
    for i in range(1, values.size):
        smallest = min(smallest, values[i])
    return smallest


class Law(NamedTuple):
    """A distribution over the arms, with what it takes to draw from it and to solve for it."""

    q: Vector  # (n,) the probabilities
    lane_sums: Vector  # of q, for sampling
    room: Scratch  # for the sums of a solver

    def check(self) -> None:
        """Reject what cannot be drawn from."""
        require_distribution(self.q, "q")
        if self.q.size >= LANES:
            padded = np.append(self.q, np.zeros(-self.q.size % LANES))
            sums = padded.reshape(-1, LANES).sum(axis=0)
            require(np.all(abs(self.lane_sums - sums) <= ROUNDING), "q and its sums differ")


def new_law(n: int) -> Law:
    """Return the uniform distribution over ``n`` arms."""
    law = Law(q=np.full(n, 1.0 / n), lane_sums=np.zeros(LANES), room=np.zeros(ROOM))
    if n >= LANES:  # added up one after the other, as `mix` does
        rows, rest = divmod(n, LANES)
        sums = np.cumsum(np.full(rows + 1, 1.0 / n))
        law.lane_sums[:rest], law.lane_sums[rest:] = sums[rows], sums[rows - 1]
    return law


@kernel
def make_uniform(law: Law) -> None:
    """Make ``law`` the uniform distribution, whatever it held (0 * nan would be nan)."""
    law.q[:] = 1.0
    blend(law, 1.0 / law.q.size, 0.0)


@kernel
def put_all_on(law: Law, k: int) -> None:
    """Make arm ``k`` certain."""
    law.q[:] = 0.0
    law.q[k] = 1.0
    blend(law, 1.0, 0.0)


@kernel
def fill(law: Law, q: Vector) -> None:
    """Fill ``q`` with the probabilities."""
    assign(q, law.q)


@kernel
def blend(law: Law, a: float, b: float) -> None:
    """Replace q by ``a * q + b``, which must be a distribution."""
    mix(law.q, a, b, law.lane_sums)


@kernel
def mix(q: Vector, a: float, b: float, lane_sums: Vector) -> None:
    """Replace ``q`` by ``a * q + b`` and fill ``lane_sums``, from which many arms are drawn."""
    n = q.size
    if n < LANES:
        for i in range(n):
            q[i] = a * q[i] + b
        return
    lane_sums[:] = 0.0
    whole = n - n % LANES
    for base in range(0, whole, LANES):
        row = q[base : base + LANES]
        for j in range(LANES):
            value = a * row[j] + b
            row[j] = value
            lane_sums[j] += value
    for i in range(whole, n):
        value = a * q[i] + b
        q[i] = value
        lane_sums[i - whole] += value


@kernel
def uniform(word: int) -> float:
    """Turn 64 random bits into the float in [0, 1) that ``Generator.random`` would give."""
    return float(word >> 11) * 2.0**-53


@kernel
def draw(law: Law, word: int) -> tuple[int, float]:
    """Draw an arm by inversion, with the uniform made of ``word``; return it and its probability.

    With many arms the inversion goes first over the sums of the lanes and then inside one lane:
    ``LANES + n / LANES`` additions instead of ``n``.
    """
    q, u = law.q, uniform(word)
    if q.size < LANES:
        k = invert(q, 0, 1, u)
    else:
        lane = invert(law.lane_sums, 0, 1, u)
        before = 0.0
        for j in range(lane):
            before += law.lane_sums[j]
        k = invert(q, lane, LANES, u - before)
    return k, q[k]


@kernel
def invert(weights: Vector, first: int, step: int, u: float) -> int:
    """Return the first index of ``first``, ``first + step``, ... at which the sum exceeds ``u``."""
    cumulative = 0.0
    for i in range(first, weights.size, step):
        cumulative += weights[i]
        if u < cumulative:
            return i
    last = first  # u fell past the last sum by rounding
    for i in range(first, weights.size, step):
        if weights[i] > 0.0:
            last = i
    return last
