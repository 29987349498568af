"""Half-lives: losses weighted by 2^(t / h), and thresholds that follow the scale of the moment.

All that a learner sums up has the weights of its rounds. Nothing grows: the weight g of a round is
in [1, 2), and after every h rounds, a *block*, all sums are halved, which is exact. Thresholds are
the m-th largest loss of this block or of the one before, as it was told, so that an outlier counts
for two blocks at the most. Symbols are those of docs/theory/forgetting.md, section 1.

A half-life may be a time, of TICKS ticks. Then weights change between rounds only (`passed`), a
block is a half-life of time, and one with too few losses for a threshold goes on.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from decimal import Decimal, localcontext
from functools import cache
from typing import Annotated, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import (
    LARGEST_EXPONENT,
    Count,
    Size,
    Values,
    Vector,
    close,
    require,
)
from unbounded.core.ceiling import above
from unbounded.core.scaled import LARGEST, frexp, ldexp
from unbounded.jit.kernel import kernel
from unbounded.validation import ArgumentValueError, checked_count, shown, warn

FALL = 4  # theta = 2^4: a scale that falls further is followed at once
MOST_HALF_LIFE = 2**30  # a clock that jumps by half-lives stays below 2^53
TICKS = 1024  # of a half-life that is a time
_LEAST_UNIT = -(2.0**50)  # of an exponent: it falls by one per block while all losses are the lower
NOTHING = -5000  # 2^-5000 of anything is 0; C's ldexp takes exponents of 32 bits

Weight = Annotated[float, Values(1.0, 2.0 + 1e-6)]
Unit = Annotated[int, Values(_LEAST_UNIT, LARGEST_EXPONENT, whole=True)]


class HalfLife(NamedTuple):
    """The pace of forgetting."""

    h: int  # rounds in which weights are halved; or ticks
    r: float  # 2^(1 / h), the ratio of the weights of two rounds; 1 where it is ticks that count
    decay: float  # 2^(-1 / h)


class Memory(NamedTuple):
    """Where the next round stands in its block."""

    pos: Count  # rounds of this block so far: 0 .. h - 1; or the tick of the next round
    g: Weight  # the weight of the next round, 2^(pos / h), or 2^(pos % h / h): in [1, 2)
    N: Size  # the sum of the weights of all rounds, the next one included

    def clock(self, half_life: HalfLife, t: int) -> int:
        """Return the clock of round ``t`` if no fall of the scale was followed."""
        return t - 1 if half_life.r > 1.0 else self.pos

    def check_for(self, half_life: HalfLife, t: int) -> None:
        """Reject weights that no ``t - 1`` rounds can have made."""
        h, most = half_life.h, float(t)
        if half_life.r > 1.0:
            require(self.pos == (t - 1) % h, "its block is at another round")
            most = min(most, 1.4427 * h + 2.0)
        require(close(self.g, 2.0 ** (self.pos % h / h)), "its round has another weight")
        require(self.g <= self.N <= self.g * most * (1.0 + 1e-6), "there are no such weights")


FIRST = Memory(0, 1.0, 1.0)


def checked_half_life(
    name: str, value: SupportsIndex, outliers: int = 0, n_arms: int = 1
) -> HalfLife:
    """Return the weights of a half-life in rounds; or raise a clear error.

    A block must have more losses than the ``outliers`` that are ignored in it. With less than one
    for each of ``n_arms``, there is a warning.
    """
    h = checked_count(name, value)
    if h <= outliers:
        raise ArgumentValueError(name, f"must exceed the number of outliers, {outliers}, got {h}")
    if h > MOST_HALF_LIFE:
        raise ArgumentValueError(name, f"must be at most 2**30, got {h}")
    if h < n_arms:
        warn(
            f"{name}={h} is below the number of arms, {n_arms}: an arm is forgotten before it is "
            f"played again; {30 * n_arms} or more is a good choice",
            UserWarning,
        )
    with localcontext() as exact:  # the same on every platform, unlike the C library's exp2
        exact.prec = 50
        ratio = Decimal(2) ** (Decimal(1) / h)
        return HalfLife(h, float(ratio), float(1 / ratio))


_TEXT = re.compile(r"([0-9]{1,14}(?:\.[0-9]{1,6})?) s")  # of a half-life that is a time


def in_time(name: str, value: object) -> str:
    """Return a half-life that is a time as text, "3600 s"; or raise a clear error."""
    if value == "auto":
        raise ArgumentValueError(name, "='auto' is for AdaINF; for costs, 1000 is a good first one")
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
    else:
        microseconds = int(Decimal(found[1]) * 10**6) if found else 0
    if microseconds < 10**6:
        raise ArgumentValueError(
            name, f"must be a number of rounds, or a time of at least 1 s, as timedelta(hours=1) "
            f"or '3600 s', got {shown(value)}"
        )  # fmt: skip
    return f"{Decimal(microseconds).scaleb(-6).normalize():f} s"


def rounds_or_time(
    name: str, value: SupportsIndex | timedelta | str, outliers: int = 0, n_arms: int = 1
) -> tuple[HalfLife, dict[str, str]]:
    """Return the weights of a half-life, and its setting as text if it is a time."""
    if isinstance(value, timedelta | str):
        return checked_half_life(name, TICKS)._replace(r=1.0), {name: in_time(name, value)}
    return checked_half_life(name, value, outliers, n_arms), {}


@cache
def _microseconds(half_life: str) -> int:
    return int(Decimal(half_life.removesuffix(" s")) * 10**6)


def tick(half_life: str, at: int) -> int:
    """Return the tick of a time in microseconds since 1970, which is exact."""
    return min(max(at, 0), 2**62) * TICKS // _microseconds(half_life)


@kernel
def advanced(memory: Memory, half_life: HalfLife) -> tuple[Memory, int]:
    """Go on to the next round; return also how many blocks have ended, so that sums are halved."""
    pos, g, N = memory.pos, memory.g, memory.N
    if half_life.r == 1.0:  # until ticks pass
        return Memory(pos, g, N + g), 0
    pos, g = pos + 1, g * half_life.r
    if pos == half_life.h:
        return Memory(0, 1.0, 0.5 * N + 1.0), 1
    return Memory(pos, g, N + g), 0


@kernel
def passed(memory: Memory, half_life: HalfLife, to: int) -> tuple[Memory, int]:
    """Let the ticks up to ``to`` pass, which is later; return also how many blocks have ended, as
    far as that makes a difference."""
    h, late = half_life.h, to % half_life.h
    ended = min(to // h - memory.pos // h, -NOTHING)
    g = 2.0 * decayed(half_life, h - late) if late > 0 else 1.0
    return Memory(to, g, renewed(memory.N, memory.g, g, ended)), ended


@kernel
def renewed(N: float, before: float, g: float, halvings: int) -> float:
    """Return the sum of the weights with another one of the next round, after ``halvings``."""
    return ldexp(max(N - before, 0.0), max(-halvings, NOTHING)) + g


@kernel
def decayed(half_life: HalfLife, late: int) -> float:
    """Return 2^(-late / h), the weight of an ask ``late`` rounds ago over that of now."""
    weight = 1.0
    if late > 0:
        rest, factor = late % half_life.h, half_life.decay
        while rest > 0:  # decay^rest, by squaring
            if rest % 2 == 1:
                weight *= factor
            factor *= factor
            rest //= 2
        weight = ldexp(weight, max(-(late // half_life.h), NOTHING))
    return weight


class Blocks(NamedTuple):
    """What losses are clipped at: C_t, the m-th largest of this block or of the last one."""

    at: float  # lower + C_t, one of the losses below, or ``lower``
    C: Size  # at - lower, in units of 2^e: at most ``peak``
    top: float  # lower + U_t: the largest ``at`` since a fall was followed
    peak: Annotated[float, Values(0.25, math.nextafter(1.0, 0.0))]  # the largest weighted C, or 0
    e: Unit  # of C, ``peak`` and all sums: it follows ``peak`` up and down
    now: Vector  # (K,) the largest losses of this block, descending; filled up with ``lower``
    before: Vector  # (K,) those of the block before

    def check_for(self, lower: float, m: int) -> None:
        """Reject a threshold that no losses can have made, with the rank ``m`` now."""
        for largest in (self.now, self.before):
            falling = np.all(largest[1:] <= largest[:-1])
            require(falling and largest[-1] >= lower, "there are no such largest losses")
        require(self.at == max(self.now[m - 1], self.before[m - 1]), "no loss of its rank")
        require(self.at <= self.top, "there is no such threshold")
        C, exponent = above(lower, self.at)
        fits = C == 0.0 == self.C or ldexp(C, exponent - self.e) == self.C
        require(fits and self.peak >= self.C, "a threshold does not fit its loss")
        U, exponent = above(lower, self.top)  # of which weights below 2 made the peak
        made = (U > 0.0) == (self.peak > 0.0) and ldexp(self.peak, self.e - exponent) <= 2.1 * U
        require(made, "there is no such unit")


def new_blocks(lower: float, K: int) -> Blocks:
    """Start with C_1 = 0, for ranks of at most ``K``."""
    return Blocks(lower, 0.0, lower, 0.0, 0, np.full(K, lower), np.full(K, lower))


@kernel
def height(blocks: Blocks, lower: float) -> float:
    """Return C_t as a float, at most the largest one: at - lower may overflow."""
    half = 0.5 * blocks.at - 0.5 * lower
    return LARGEST if half >= 0.5 * LARGEST else blocks.at - lower


@kernel
def clipped_at(blocks: Blocks, lower: float, loss: float) -> tuple[float, bool]:
    """Clip to [lower, lower + C_t] and subtract ``lower``, in units of 2^e; and whether it was
    clipped from above."""
    clipped = loss > blocks.at
    if clipped or blocks.C == 0.0:
        return blocks.C, clipped
    l = ldexp(max(loss, lower), -blocks.e) - ldexp(lower, -blocks.e)
    return min(max(l, 0.0), blocks.C), False


@kernel
def inserted(blocks: Blocks, loss: float, ended: int, lower: float) -> None:
    """Insert a loss into the list of this block; begin a new one where it has ``ended``."""
    now = blocks.now
    k = now.size - 1
    if loss > now[k]:
        while k > 0 and now[k - 1] < loss:
            now[k] = now[k - 1]
            k -= 1
        now[k] = loss
    if ended > 0:
        turn(blocks, lower)


@kernel
def turn(blocks: Blocks, lower: float) -> None:
    """Begin a new block."""
    now, before = blocks.now, blocks.before
    for k in range(now.size):
        before[k] = now[k]
        now[k] = lower


@kernel
def followed(
    blocks: Blocks, lower: float, m: int, g: float, ended: int, follows: bool
) -> tuple[Blocks, int, int]:
    """Set C_{t+1} from the lists, for the rank ``m`` and the weight ``g`` of the next round.

    Returns also d, by how many half-lives the past is to be forgotten at once because the scale
    has fallen, and the exponent of the power of two that all sums are multiplied by: one for each
    block that has ``ended``, d, and the new unit.
    """
    at, C, top, peak, e, now, before = blocks
    after, d = max(now[m - 1], before[m - 1]), 0
    if after == at and ended == 0 and (C == 0.0 or g * C < 1.0):  # the usual case
        return Blocks(at, C, top, max(peak, g * C), e, now, before), 0, 0
    mantissa, exponent = above(lower, after)
    if after > top:
        top = after
    elif follows and mantissa > 0.0 and after < top:
        most, unit = above(lower, top)
        d = unit - exponent + (1 if most > mantissa else 0)  # the least with 2^d C >= U
        if d > FALL:  # C < U / 16
            top = after
        else:
            d = 0
    old, old_unit = frexp(peak)  # the larger of the past and of g C sets the unit
    new, new_unit = frexp(g * mantissa)
    old_unit, new_unit = old_unit + e - ended - d, new_unit + exponent
    higher = new_unit > old_unit or (new_unit == old_unit and new > old)
    if new > 0.0 and (old == 0.0 or higher):
        old, old_unit = new, new_unit
    unit = e
    if old > 0.0 and (peak == 0.0 or old_unit > e or old_unit < e - 1):
        unit = old_unit
    C = ldexp(mantissa, exponent - unit)
    moved = Blocks(after, C, top, ldexp(old, old_unit - unit), unit, now, before)
    return moved, d, max(e - unit - ended - d, NOTHING) if peak > 0.0 else 0
