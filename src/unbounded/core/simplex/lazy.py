"""What the lazy samplers share: moments, proposals, and a picture of many arms taken at an anchor.

`tsallis_arms` and `shannon_arms` say what is in the picture, when it is too old, and how an arm
that it proposes is accepted. docs/theory/many-arms.md derives both.

*Moments* are power sums M_j = sum_k a_k u_k^j, j < TERMS, that follow a change of one term in
O(TERMS).

*Proposals* draw arms in O(1) from frozen weights, to be accepted or rejected by current ones. Every
arm has one record of four floats, so that a draw touches one or two cache lines: its cumulative
loss, its frozen weight, and its part of an alias table (Walker 1977). The weights are rounded *up*
to whole multiples of a quantum. The table is then made in exact integer arithmetic, without
rounding errors that would pile up over n arms, and what it draws from is known exactly; rejection
divides the same weights out again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unbounded.core.arrays import ROUNDING, Vector, close, require, require_numbers
from unbounded.core.random import Word, uniform_at, word_at
from unbounded.core.simplex import sampling
from unbounded.core.simplex.sampling import LANES, Law, fold, uniform
from unbounded.jit.kernel import kernel, subroutine

TERMS = 24
ROOM = TERMS + 4  # with zeros behind, so that series may start at M_1 or M_2
_CHUNK = 16 * LANES  # arms whose powers stay in the first cache

RECORD = 4
LOSS, WEIGHT, CUT, ALIAS = range(RECORD)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

ACCEPTED = 0.4  # of the proposals; an anchor is due when it would be less
MOST_TRIALS = 10_000  # at ACCEPTED = 0.4 never reached: 0.6^10000
_FEWEST_CHANGES = 65_536  # whose rounding errors add up to less than 1e-11 at worst

# The picture: a sampler's own numbers; the rate at the anchor (0: there is none), the changes since
# and the number of anchors; q_k = FACTOR * weight_k + FLOOR, of which BETA is uniform; the moments.
# It is one vector, because a call takes longer with every array that it passes.
OWN = 7
ETA_S, CHANGES, ANCHORS, FACTOR, FLOOR, BETA, MOMENTS = range(OWN, OWN + 7)


@subroutine
def gather(M: Vector, a: Vector, u: Vector, lanes: Vector) -> None:
    """Fill ``M`` from all the terms; destroys ``a``. ``lanes`` has room for 4 LANES."""
    M[:] = 0.0
    n = a.size
    whole = n - n % LANES
    sums0, sums1 = lanes[:LANES], lanes[LANES : 2 * LANES]
    sums2, sums3 = lanes[2 * LANES : 3 * LANES], lanes[3 * LANES : 4 * LANES]
    for start in range(0, whole, _CHUNK):
        stop = min(start + _CHUNK, whole)
        for j in range(0, TERMS, 4):
            lanes[: 4 * LANES] = 0.0
            for base in range(start, stop, LANES):
                power, value = a[base : base + LANES], u[base : base + LANES]
                for i in range(LANES):
                    p, v = power[i], value[i]
                    sums0[i] += p
                    p *= v
                    sums1[i] += p
                    p *= v
                    sums2[i] += p
                    p *= v
                    sums3[i] += p
                    power[i] = p * v
            M[j] += fold(sums0)
            M[j + 1] += fold(sums1)
            M[j + 2] += fold(sums2)
            M[j + 3] += fold(sums3)
    for i in range(whole, n):
        exchange(M, 0.0, 0.0, a[i], u[i])


@kernel
def exchange(M: Vector, a: float, u: float, b: float, v: float) -> None:
    """Take the term a u^j out of ``M`` and put b v^j into it."""
    uu, vv = u * u, v * v
    u4, v4 = uu * uu, vv * vv
    a0, a1, a2, a3 = a, a * u, a * uu, a * u * uu  # four chains: a product waits for the last
    b0, b1, b2, b3 = b, b * v, b * vv, b * v * vv
    for j in range(0, TERMS, 4):
        M[j] += b0 - a0
        M[j + 1] += b1 - a1
        M[j + 2] += b2 - a2
        M[j + 3] += b3 - a3
        a0 *= u4
        a1 *= u4
        a2 *= u4
        a3 *= u4
        b0 *= v4
        b1 *= v4
        b2 *= v4
        b3 *= v4


@kernel
def series(M: Vector, coefficients: Vector, z: float) -> float:
    """sum_j coefficients_j M_j z^j over the coefficients, whose number is a multiple of four.

    Every fourth term makes a chain of its own (Estrin), so that no product waits for long.
    """
    zz = z * z
    z4 = zz * zz
    s0 = s1 = s2 = s3 = 0.0
    for j in range(coefficients.size - 4, -1, -4):
        s0 = s0 * z4 + coefficients[j] * M[j]
        s1 = s1 * z4 + coefficients[j + 1] * M[j + 1]
        s2 = s2 * z4 + coefficients[j + 2] * M[j + 2]
        s3 = s3 * z4 + coefficients[j + 3] * M[j + 3]
    return (s0 + s1 * z) + (s2 + s3 * z) * zz


def constant(values: object) -> Vector:
    """Coefficients for `series`, which kernels take in as constants."""
    return np.array(values, dtype=np.float64)


def check_table(table: Vector) -> None:
    """Reject a table that does not draw by its weights."""
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


def new_lazy(n: int) -> tuple[Vector, Vector]:
    """Return picture and table with no losses and no anchor yet: the uniform distribution."""
    picture, table = np.zeros(MOMENTS + ROOM), np.zeros(RECORD * n)
    picture[BETA] = 1.0
    picture[FLOOR] = 1.0 / n
    return picture, table


def is_anchored(picture: Vector, table: Vector) -> bool:
    """Return whether a picture has been taken; reject one that cannot be of any arms."""
    n = table.size // RECORD
    beta = picture[BETA]
    require(0.0 <= beta <= 1.0 and close(picture[FLOOR], beta / n), "no such exploration")
    require(not np.any(picture[MOMENTS + TERMS :]), "there are no such moments")
    if picture[ETA_S] == 0.0:  # never: a change of the unit is followed by an anchor at once
        require(beta == 1.0 and picture[FACTOR] == 0.0 and not np.any(table), "no anchor")
        return False
    require(picture[ETA_S] > 0.0 and picture[CHANGES] >= 0.0, "there is no such anchor")
    check_table(table)
    return True


def check_moments(picture: Vector, a: Vector, u: Vector) -> None:
    """Reject moments that are not those of the terms ``a u^j``."""
    M = picture[MOMENTS : MOMENTS + TERMS]
    for j in range(TERMS):
        true = np.sum(a * u**j)
        require(abs(M[j] - true) <= ROUNDING * max(true, 1.0), "its moments are others")


@kernel
def grow(table: Vector, k: int, amount: float) -> tuple[float, float]:
    """Let L_k grow by ``amount``; return it before and after."""
    before = table[RECORD * k + LOSS]
    after = before + amount
    table[RECORD * k + LOSS] = after
    return before, after


@kernel
def rescale(L: Vector, picture: Any, table: Any, factor: float) -> None:
    """Change the unit of the losses; with many arms, the next solve anchors anew."""
    if table is None:
        for k in range(L.size):
            L[k] *= factor
    else:
        _rescale_table(picture, table, factor)


@subroutine
def _rescale_table(picture: Vector, table: Vector, factor: float) -> None:
    for k in range(0, table.size, RECORD):
        table[k + LOSS] *= factor
    picture[ETA_S] = 0.0


@kernel
def usable(picture: Vector, n: int) -> bool:
    """Return whether there is a picture that rounding errors have not spoilt."""
    return picture[ETA_S] > 0.0 and picture[CHANGES] < max(n, _FEWEST_CHANGES)


@kernel
def taken(picture: Vector, eta: float) -> None:
    """Note that the picture is of now."""
    picture[ETA_S] = eta
    picture[CHANGES] = 0.0
    picture[ANCHORS] += 1.0


@kernel
def settle(picture: Vector, n: int, beta: float, total: float) -> None:
    """Let the weights, which sum to ``total``, be normalized and mixed with the uniform."""
    picture[FACTOR] = (1.0 - beta) / total
    picture[FLOOR] = beta / n
    picture[BETA] = beta


def drawn_by(lazy_draw: Any, lazy_probability: Any) -> tuple[Any, Any]:
    """Make ``draw`` and ``fill`` of arms that are few, or many and drawn by these kernels."""

    @kernel
    def draw_either(law: Law, picture: Any, table: Any, word: int) -> tuple[int, float]:
        if table is None:
            return sampling.draw(law, word)
        return lazy_draw(picture, table, word)

    @kernel
    def draw(arms: Any, word: int) -> tuple[int, float]:
        """Draw an arm from q; return it and its probability."""
        return draw_either(arms.law, arms.picture, arms.table, word)

    @kernel
    def fill_either(law: Law, picture: Any, table: Any, q: Vector) -> None:
        if table is None:
            sampling.fill(law, q)
        else:
            for k in range(q.size):
                q[k] = lazy_probability(picture, table, k)

    @kernel
    def fill(arms: Any, q: Vector) -> None:
        """Fill ``q`` with the whole distribution."""
        fill_either(arms.law, arms.picture, arms.table, q)

    return draw, fill


@kernel
def explored(picture: Vector, n: int, word: int) -> int:
    """With probability beta an arm drawn uniformly, else -1."""
    if uniform(word) < picture[BETA]:
        return below(word_at(np.uint64(word), 0), n)
    return -1
