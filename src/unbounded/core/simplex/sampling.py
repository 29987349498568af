"""Distributions over the arms: mixing with the uniform one, and sampling from a random word."""

from __future__ import annotations

from unbounded._jit import kernel
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.simplex.lanes import (
    LANES,
)


@kernel
def uniform(word: int) -> float:
    """Turn 64 random bits into the float in [0, 1) that ``Generator.random`` would give."""
    return float(word >> 11) * 2.0**-53


@kernel
def mix(q: Vector, a: float, b: float, lane_sums: Vector) -> None:
    """Replace ``q`` by ``a * q + b`` and prepare ``lane_sums`` for `sample`."""
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
def fill_uniform(q: Vector, lane_sums: Vector) -> None:
    """Make ``q`` the uniform distribution, whatever it held (0 * nan would be nan)."""
    q[:] = 1.0
    mix(q, 1.0 / q.size, 0.0, lane_sums)


@kernel
def sample(q: Vector, lane_sums: Vector, word: int) -> int:
    """Draw an arm from ``q`` by inversion, with the uniform made of ``word``.

    With many arms the inversion goes first over the sums of the lanes and then inside one lane:
    ``LANES + n / LANES`` additions instead of ``n``.
    """
    u = uniform(word)
    n = q.size
    if n < LANES:
        return _invert(q, 0, 1, u)
    lane = _invert(lane_sums, 0, 1, u)
    before = 0.0
    for j in range(lane):
        before += lane_sums[j]
    return _invert(q, lane, LANES, u - before)


@kernel
def _invert(weights: Vector, first: int, step: int, u: float) -> int:
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
