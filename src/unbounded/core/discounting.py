"""Half-lives: losses weighted by 2^(t / h), and thresholds that follow the scale of the moment.

All that a learner sums up has the weights of its rounds. Nothing grows: the weight g of a round is
in [1, 2), and after every h rounds, a *block*, all sums are halved, which is exact. Thresholds are
the m-th largest loss of this block or of the one before, as it was told, so that an outlier counts
for two blocks at the most. Symbols are those of docs/theory/forgetting.md, section 1.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
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
from unbounded.core.scaled import LARGEST, ldexp
from unbounded.jit.kernel import kernel
from unbounded.validation import ArgumentValueError, checked_count, warn

FALL = 4  # theta = 2^4: a scale that falls further is followed at once
MOST_HALF_LIFE = 2**30  # a clock that jumps by half-lives stays below 2^53
_LEAST_UNIT = -(2.0**50)  # of an exponent: it falls by one per block while all losses are the lower
_NOTHING = -5000  # 2^-5000 of anything is 0; C's ldexp takes exponents of 32 bits

Weight = Annotated[float, Values(1.0, 2.0 + 1e-6)]
Unit = Annotated[int, Values(_LEAST_UNIT, LARGEST_EXPONENT, whole=True)]


class HalfLife(NamedTuple):
    """The pace of forgetting."""

    h: int  # rounds in which weights are halved
    r: float  # 2^(1 / h), the ratio of the weights of two rounds
    decay: float  # 2^(-1 / h)


class Memory(NamedTuple):
    """Where the next round stands in its block."""

    pos: Count  # rounds of this block so far: 0 .. h - 1
    g: Weight  # the weight of the next round, r^pos: in [1, 2)
    N: Size  # the sum of the weights of all rounds, the next one included

    def check_for(self, half_life: HalfLife, t: int) -> None:
        """Reject weights that no ``t - 1`` rounds can have made."""
        h = half_life.h
        require(self.pos == (t - 1) % h, "its block is at another round")
        require(close(self.g, 2.0 ** (self.pos / h)), "its round has another weight")
        require(self.g <= self.N <= self.g * min(t, 1.4427 * h + 2.0) * (1.0 + 1e-6),
                "there are no such weights")  # fmt: skip


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


@kernel
def advanced(memory: Memory, half_life: HalfLife) -> tuple[Memory, bool]:
    """Go on to the next round; return also whether a block has ended, so that sums are halved."""
    pos, g, N = memory.pos + 1, memory.g * half_life.r, memory.N
    ended = pos == half_life.h
    if ended:
        pos, g, N = 0, 1.0, 0.5 * N
    return Memory(pos, g, N + g), ended


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
        weight = ldexp(weight, max(-(late // half_life.h), _NOTHING))
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
def inserted(blocks: Blocks, loss: float, ended: bool, lower: float) -> None:
    """Insert a loss into the list of this block; begin a new one where it has ``ended``."""
    now, before = blocks.now, blocks.before
    k = now.size - 1
    if loss > now[k]:
        while k > 0 and now[k - 1] < loss:
            now[k] = now[k - 1]
            k -= 1
        now[k] = loss
    if ended:
        for k in range(now.size):
            before[k] = now[k]
            now[k] = lower


@kernel
def followed(
    blocks: Blocks, lower: float, m: int, g: float, ended: bool, follows: bool
) -> tuple[Blocks, int, int]:
    """Set C_{t+1} from the lists, for the rank ``m`` and the weight ``g`` of the next round.

    Returns also d, by how many half-lives the past is to be forgotten at once because the scale
    has fallen, and the exponent of the power of two that all sums are multiplied by: one for the
    end of a block, d, and the new unit.
    """
    at, C, top, peak, e, now, before = blocks
    after, d, halvings = max(now[m - 1], before[m - 1]), 0, 1 if ended else 0
    if after == at and not ended and (C == 0.0 or g * C < 1.0):  # the usual case
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
    old, old_unit = math.frexp(peak)  # the larger of the past and of g C sets the unit
    new, new_unit = math.frexp(g * mantissa)
    old_unit, new_unit = old_unit + e - halvings - d, new_unit + exponent
    higher = new_unit > old_unit or (new_unit == old_unit and new > old)
    if new > 0.0 and (old == 0.0 or higher):
        old, old_unit = new, new_unit
    unit = e
    if old > 0.0 and (peak == 0.0 or old_unit > e or old_unit < e - 1):
        unit = old_unit
    C = ldexp(mantissa, exponent - unit)
    moved = Blocks(after, C, top, ldexp(old, old_unit - unit), unit, now, before)
    return moved, d, max(e - unit - halvings - d, _NOTHING) if peak > 0.0 else 0
