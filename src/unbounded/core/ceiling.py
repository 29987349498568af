"""One-sided clipping: losses of at least ``lower``, clipped at the m-th largest observed so far.

The comparator's clipping error is then at most 0, and the learner's is the sum of the m largest
losses that it observed (docs/theory/one-sided.md, Lemma 6). Losses are stored and compared as
floats in their own unit. C_t, the m-th largest less ``lower``, and the clipped losses are in units
of 2^e, where e is the exponent of the largest C so far. So any finite float64 is a legal loss,
nothing overflows, and multiplying every loss (and ``lower``) by a power of two changes ``e`` and
nothing else. A learner multiplies what it stores in units of 2^e by `unit_factor` of the ceilings
before and after a loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded.core import arrays
from unbounded.core.arrays import Exponent, Exponents, Mantissa, Mantissas, Scratch, Size, Vector
from unbounded.core.scaled import LARGEST
from unbounded.jit.kernel import kernel, subroutine
from unbounded.validation import ArgumentTypeError, checked_finite


class Ceiling(NamedTuple):
    """What losses are clipped at: C_t, the m_t-th largest observed loss, less ``lower``."""

    at: float  # lower + C_t, the m_t-th largest observed loss: one of ``largest``
    C: Size  # at - lower, in units of 2^e: in [0, 1), at most C_max
    C_max: Mantissa  # the largest C so far, in units of 2^e: in [0.5, 1), or 0 if all were 0
    e: Exponent  # the exponent of the largest C so far; 0 while C_max = 0. Never falls after that
    largest: Vector  # (K,) the K largest observed losses, descending; filled up with ``lower``

    def check_for(self, lower: float, m: int) -> None:
        """Reject a threshold that no losses can have made, with the rank ``m`` now."""
        falling = np.all(self.largest[1:] <= self.largest[:-1])
        arrays.require(falling and self.largest[-1] >= lower, "there are no such largest losses")
        arrays.require(self.at == self.largest[m - 1], "a threshold is not the loss of its rank")
        arrays.require(self.C_max >= self.C, "there is no such threshold")
        C, exponent = above(lower, self.at)
        arrays.require(self.C_max * 2.0 >= C, "it has no such unit")  # C > 0 needs C_max >= 0.5
        fits = exponent <= self.e and math.ldexp(C, exponent - self.e) == self.C
        arrays.require(C == self.C == 0.0 or fits, "a threshold does not fit its loss")


def new_ceiling(lower: float, K: int) -> Ceiling:
    """Start with C_1 = 0, for ranks of at most ``K``."""
    return Ceiling(lower, 0.0, 0.0, 0, np.full(K, lower))


@kernel
def clip_above(
    ceiling: Ceiling, lower: float, rank: int, loss: float
) -> tuple[float, bool, Ceiling]:
    """Clip to [lower, lower + C_t] and subtract ``lower``; then set C_{t+1}.

    ``rank`` is m_{t+1}. Returns l^c in units of the old 2^e, whether it was clipped from above, and
    the next ceiling. A loss below ``lower`` counts as ``lower``.
    """
    at, C, C_max, e, largest = ceiling
    loss = max(loss, lower)
    clipped = loss > at  # in the unit of the losses: in units of 2^e, a loss may overflow
    l = C if clipped else min(math.ldexp(loss, -e) - math.ldexp(lower, -e), C)
    k = largest.size - 1  # insert the loss into the sorted list
    if loss > largest[k]:
        while k > 0 and largest[k - 1] < loss:
            largest[k] = largest[k - 1]
            k -= 1
        largest[k] = loss
    if largest[rank - 1] != at:  # C rises with a large loss, and may fall as the rank grows
        at = float(largest[rank - 1])
        C, exponent = above(lower, at)
        if C > 0.0 and (C_max == 0.0 or exponent > e):  # a new unit
            C_max, e = C, exponent
        else:
            C = math.ldexp(C, exponent - e)
            C_max = max(C_max, C)
    return l, clipped, Ceiling(at, C, C_max, e, largest)


@kernel
def above(lower: float, at: float) -> tuple[float, int]:
    """Return at - lower as a mantissa and an exponent."""
    unit = math.frexp(max(abs(at), abs(lower)))[1]  # at - lower may overflow; in units it can't
    C, exponent = math.frexp(math.ldexp(at, -unit) - math.ldexp(lower, -unit))
    return C, exponent + unit


@kernel
def height(ceiling: Ceiling, lower: float) -> float:
    """Return C_t as a float, at most the largest one: at - lower may overflow."""
    half = 0.5 * ceiling.at - 0.5 * lower
    return LARGEST if half >= 0.5 * LARGEST else ceiling.at - lower


@kernel
def unit_factor(before: Ceiling, after: Ceiling) -> float:
    """Return the factor that takes values from the unit of ``before`` to that of ``after``."""
    if before.e != after.e and before.C_max > 0.0:  # until then there is nothing but zeros
        return math.ldexp(1.0, before.e - after.e)
    return 1.0


class Ceilings(NamedTuple):
    """A ceiling per layer, all of one rank m, and the clipped last losses."""

    at: Vector  # layers
    C: Mantissas  # layers; as the rank is constant, it is the largest so far
    e: Exponents  # layers
    largest: Vector  # m per layer
    l: Scratch  # layers: l^c, in units of 2^e_before
    C_before: Scratch  # layers: C when they were clipped, in units of 2^e_before
    e_before: Scratch  # layers

    def check_for(self, lower: Vector) -> None:
        """Reject thresholds that no losses can have made."""
        m = self.largest.size // lower.size
        for h, least in enumerate(lower):
            C, largest = float(self.C[h]), self.largest[h * m : (h + 1) * m]
            Ceiling(float(self.at[h]), C, C, int(self.e[h]), largest).check_for(least, m)


def new_ceilings(lower: Vector, m: int) -> Ceilings:
    """Start with C_1 = 0 in every layer, for the rank ``m``."""
    C, e, l, C_before, e_before = np.zeros((5, lower.size))
    return Ceilings(lower.copy(), C, e, np.repeat(lower, m), l, C_before, e_before)


@subroutine
def clip_each_above(ceilings: Ceilings, lower: Vector, losses: Vector) -> tuple[int, bool]:
    """Clip one loss by each ceiling, in place; return how many were clipped, and if any C rose."""
    m = ceilings.largest.size // losses.size
    count = 0
    rose = False
    for h in range(losses.size):
        C, e = ceilings.C[h], int(ceilings.e[h])
        before = Ceiling(ceilings.at[h], C, C, e, ceilings.largest[h * m : (h + 1) * m])
        l, clipped, after = clip_above(before, lower[h], m, losses[h])
        ceilings.l[h] = l
        ceilings.C_before[h] = C
        ceilings.e_before[h] = e
        ceilings.at[h] = after.at
        ceilings.C[h] = after.C
        ceilings.e[h] = after.e
        count += clipped
        rose = rose or after.at != before.at
    return count, rose


def checked_lower(lower: float | None, best_reward: float | None) -> float:
    """Return the lower bound on the losses, from either argument; or raise a clear error."""
    if lower is not None and best_reward is not None:
        raise ArgumentTypeError("best_reward", "is -lower: pass one of them, not both")
    if best_reward is not None:
        return 0.0 - checked_finite("best_reward", best_reward)  # 0, not -0
    return 0.0 if lower is None else checked_finite("lower", lower)
