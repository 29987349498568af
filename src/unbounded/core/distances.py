"""Distances of losses from a center, of whatever size, and the largest ones of two blocks.

Distances of finite losses reach from 2^-2100 (from a lifted center) to 2^1025, more than a float
does, so that they are mantissas and exponents. A *block* is one half-life (`core.discounting`).
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from unbounded.core.arrays import Mantissa, Mantissas, Values, Vector, require
from unbounded.core.discounting import FALL, NOTHING, Unit
from unbounded.core.scaled import frexp, ldexp
from unbounded.jit.kernel import kernel, subroutine

_EXPONENT = Values(-2200.0, 1100.0, whole=True)


class Distance(NamedTuple):
    """size 2^e; the exponent of 0 is 0."""

    size: Mantissa  # in [0.5, 1), or 0
    e: Annotated[int, _EXPONENT]

    def check(self) -> None:
        """Reject a 0 with an exponent."""
        require(self.size > 0.0 or self.e == 0, "there is no such distance")


NONE = Distance(0.0, 0)


@kernel
def exceeds(x: Distance, y: Distance) -> bool:
    """Tell whether x > y."""
    if x.size == 0.0 or y.size == 0.0:
        return x.size > y.size
    return x.e > y.e or (x.e == y.e and x.size > y.size)


@kernel
def larger(x: Distance, y: Distance) -> Distance:
    """Return max(x, y)."""
    return x if exceeds(x, y) else y


@kernel
def smaller(x: Distance, y: Distance) -> Distance:
    """Return min(x, y)."""
    return y if exceeds(x, y) else x


class Largest(NamedTuple):
    """The K largest distances of this block, then those of the block before, both descending."""

    sizes: Mantissas  # (2 K,); filled up with 0
    exponents: Annotated[Vector, _EXPONENT]  # (2 K,)

    def counts(self) -> tuple[int, int]:
        """Return how many there are of this block, and of the one before; reject disorder."""
        K, counts = self.sizes.size // 2, []
        for part in (slice(K), slice(K, None)):
            pairs = list(zip(self.exponents[part], self.sizes[part], strict=True))
            seen = [pair for pair in pairs if pair[1] > 0.0]
            none = [(0.0, 0.0)] * (K - len(seen))
            require(pairs == sorted(seen, reverse=True) + none, "distances are in no order")
            counts.append(len(seen))
        return counts[0], counts[1]


def new_largest(K: int) -> Largest:
    """Start without distances."""
    return Largest(np.zeros(2 * K), np.zeros(2 * K))


@kernel
def of_rank(largest: Largest, m: int) -> Distance:
    """Return the m-th largest of this block or of the one before, whichever is larger; or 0."""
    sizes, exponents = largest
    k, j = m - 1, sizes.size // 2 + m - 1
    return larger(Distance(sizes[k], int(exponents[k])), Distance(sizes[j], int(exponents[j])))


@kernel
def insert(largest: Largest, x: Distance) -> None:
    """Insert a distance into the list of this block."""
    sizes, exponents = largest
    k = sizes.size // 2 - 1
    if exceeds(x, Distance(sizes[k], int(exponents[k]))):
        while k > 0 and exceeds(x, Distance(sizes[k - 1], int(exponents[k - 1]))):
            sizes[k], exponents[k] = sizes[k - 1], exponents[k - 1]
            k -= 1
        sizes[k], exponents[k] = x.size, x.e


@kernel
def has(largest: Largest, m: int) -> bool:
    """Tell whether there are ``m`` distances in this block."""
    return largest.sizes[m - 1] > 0.0


@subroutine
def turn(largest: Largest) -> None:
    """Begin a new block."""
    sizes, exponents = largest
    K = sizes.size // 2
    for k in range(K):
        sizes[K + k], exponents[K + k] = sizes[k], exponents[k]
        sizes[k] = exponents[k] = 0.0


class Reach(NamedTuple):
    """The largest distances of two blocks, C; and the unit of weighted ones, which follows C."""

    now: Distance  # the largest one of this block
    before: Distance  # that of the block before
    top: Distance  # U: the largest C since a fall was followed
    peak: Annotated[float, Values(0.25, math.nextafter(1.0, 0.0))]  # the largest weighted one, or 0
    e: Unit  # of ``peak`` and of all sums: it follows ``peak`` up and down

    def check(self) -> None:
        """Reject distances that do not fit together."""
        for part in (self.now, self.before, self.top):
            part.check()
        C = larger(self.now, self.before)
        require(not exceeds(C, self.top) and (C.size == 0.0 or halvings(self.top, C) <= FALL),
                "there is no such scale")  # fmt: skip
        require(self.peak > 0.0 or self.e == 0, "it has no such unit")


NEVER = Reach(NONE, NONE, NONE, 0.0, 0)


@kernel
def halvings(x: Distance, y: Distance) -> int:
    """Return the least d with 2^d y >= x, for y > 0."""
    return x.e - y.e + (1 if x.size > y.size else 0)


@kernel
def weighed(reach: Reach, v: Distance, weight: float) -> tuple[Reach, float, float]:
    """Include a distance; return also weight v, in units of the new 2^e, and the factor that takes
    sums to that unit."""
    now, before, top, peak, e = reach
    now = larger(v, now)
    l, unit = frexp(weight * v.size)
    unit += v.e
    factor = 1.0
    if l > 0.0 and (peak == 0.0 or unit > e):  # the largest so far: it sets the unit
        factor = ldexp(1.0, max(e - unit, NOTHING)) if peak > 0.0 else 1.0
        peak, e = l, unit
    else:
        l = ldexp(l, unit - e)
        peak = max(peak, l)
    return Reach(now, before, top, peak, e), l, factor


@subroutine
def followed(reach: Reach, ended: int, turns: bool) -> tuple[Reach, int, int]:
    """Set C for the next round, where a new block may begin (``turns``).

    Returns also d, by how many half-lives the past is to be forgotten at once because C has fallen,
    and the exponent of the power of two that all sums are multiplied by: one for each block that
    has ``ended``, d, and the new unit.
    """
    now, before, top, peak, e = reach
    if turns:
        now, before = NONE, now
    C, d = larger(now, before), 0
    if exceeds(C, top):
        top = C
    elif C.size > 0.0:
        d = halvings(top, C)
        if d > FALL:  # C < U / 16
            top = C
        else:
            d = 0
    lost = d + ended
    if lost == 0 or peak == 0.0:
        return Reach(now, before, top, peak, e), d, 0
    old, unit = frexp(peak)
    unit += e - lost
    if unit >= e - 1:  # peak >= 1/4
        return Reach(now, before, top, ldexp(peak, -lost), e), d, -lost
    return Reach(now, before, top, old, unit), d, e - unit - lost
