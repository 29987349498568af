"""Drawing arms in O(1) from frozen weights, to be accepted or rejected by current ones.

Every arm has one record of four floats, so that a draw touches one or two cache lines: its
cumulative loss, its frozen weight, and its part of an alias table (Walker 1977). The weights are
rounded *up* to whole multiples of a quantum. The table is then made in exact integer arithmetic,
without rounding errors that would pile up over n arms, and what it draws from is known exactly;
rejection divides the same weights out again.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.random import Word, uniform_at, word_at
from unbounded.core.state_validation import ROUNDING, require, require_numbers
from unbounded.jit.kernel import kernel, subroutine

RECORD = 4
LOSS, WEIGHT, CUT, ALIAS = range(RECORD)


_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def check_table(table: Vector) -> None:
    """Refuse a table that does not draw by its weights."""
    n = table.size // RECORD
    weight, cut, alias = (table[column::RECORD] for column in (WEIGHT, CUT, ALIAS))
    units = weight / quantum(n)
    legal = (units > 0.0) & (weight <= 1.0) & (units == np.floor(units))
    require(np.all(legal), "there are no such weights")
    require(np.all((cut >= 0.0) & (cut <= 1.0)), "its alias table has no such chances")
    require_numbers(alias, n, "aliases")
    drawn = cut + np.bincount(alias.astype(np.int64), 1.0 - cut, minlength=n)
    require(
        np.all(abs(drawn - n * weight / weight.sum()) <= ROUNDING * np.maximum(1.0, drawn)),
        "its alias table does not draw by its weights",
    )


@kernel
def quantum(n: int) -> float:
    """The unit of the weights, which are at most 1: 2 n weights of 1 must fit into an int64."""
    return math.ldexp(1.0, -min(52, 61 - math.frexp(float(n))[1]))


@kernel
def round_up(weight: float, unit: float) -> float:
    """The least multiple of ``unit`` that is positive and not below ``weight``; at most 1."""
    return min(1.0, max(1.0, math.ceil(weight / unit)) * unit)


@subroutine
def tabulate(table: Vector) -> float:
    """Fill the alias table from the weights; return the sum of the weights.

    One sweep with two fingers, one at the light arms (below the mean) and one at the heavy: what
    a heavy arm has above the mean fills up the light ones, each with the alias of that heavy arm.
    """
    n = table.size // RECORD
    units = 1.0 / quantum(n)
    mean = 0  # of the weights, in units of quantum / n
    for k in range(n):
        mean += int(table[RECORD * k + WEIGHT] * units)
    share = 1.0 / float(mean)
    light = _next(table, 0, units, mean, False)
    heavy = _next(table, 0, units, mean, True)
    left = _weight(table, heavy, units) if heavy < n else mean
    while heavy < n:
        if left > mean:
            table[RECORD * light + CUT] = float(_weight(table, light, units)) * share
            table[RECORD * light + ALIAS] = heavy
            left -= mean - _weight(table, light, units)
            light = _next(table, light + 1, units, mean, False)
        else:
            following = _next(table, heavy + 1, units, mean, True)
            table[RECORD * heavy + CUT] = float(left) * share
            table[RECORD * heavy + ALIAS] = following if following < n else heavy
            if following < n:
                left += _weight(table, following, units) - mean
            heavy = following
    while light < n:  # these have the mean exactly
        table[RECORD * light + CUT] = 1.0
        table[RECORD * light + ALIAS] = light
        light = _next(table, light + 1, units, mean, False)
    return float(mean) / units


@kernel
def _weight(table: Vector, k: int, units: float) -> int:
    return int(table[RECORD * k + WEIGHT] * units) * (table.size // RECORD)


@kernel
def _next(table: Vector, k: int, units: float, mean: int, heavy: bool) -> int:
    while k < table.size // RECORD and (_weight(table, k, units) > mean) != heavy:
        k += 1
    return k


@kernel
def below(word: Word, n: int) -> int:
    """A number in 0 .. n - 1 from 64 random bits: the upper half of ``word * n``, n < 2^32."""
    wide, low = np.uint64(n), word & _LOW_HALF
    return int(np.int64(((word >> _HALF) * wide + ((low * wide) >> _HALF)) >> _HALF))


@kernel
def propose(table: Vector, word: Word, j: int) -> int:
    """An arm drawn by its frozen weight, from numbers j and j + 1 of the stream of ``word``."""
    k = below(word_at(word, j), table.size // RECORD)
    alias = int(table[RECORD * k + ALIAS])  # before the comparison: a branch would be guesswork
    return k if uniform_at(word, j + 1) < table[RECORD * k + CUT] else alias
