"""Half-lives in MDPs, for losses only: weights of episodes, and thresholds of each layer.

As in `core.discounting`, with one weight for all layers: regret adds up over the layers of an
episode. A fall of the scale is followed when the largest threshold of all layers falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import (
    Count,
    Exponent,
    Exponents,
    Mantissa,
    Mantissas,
    Scratch,
    Vector,
    require,
)
from unbounded.core.ceiling import above
from unbounded.core.discounting import FALL, FIRST, Blocks, Memory, clipped_at, inserted
from unbounded.core.scaled import ldexp
from unbounded.jit.kernel import kernel, subroutine

_MOST_QUIET = 5000  # halvings: they make every float 0


class Fading(NamedTuple):
    """Where the next episode stands, and what is still to be halved."""

    memory: Memory  # in episodes; N counts those before a fall that was followed less
    top: Mantissa  # U_t 2^-top_e: the largest threshold of any layer since a fall was followed
    top_e: Exponent
    quiet: Count  # blocks that ended since all thresholds are 0: sums have no unit to fall to


NEW = Fading(FIRST, 0.0, 0, 0)


@kernel
def faded(fading: Fading, memory: Memory, ended: int, C: Vector, e: Vector) -> tuple[Fading, int]:
    """Go on to the episode of ``memory``, whose thresholds are C 2^e.

    Returns also how often all sums are to be halved: once for the end of a block, and d times where
    the scale has fallen more than 16-fold.
    """
    top, top_e, quiet = fading.top, fading.top_e, fading.quiet + ended
    largest, largest_e = 0.0, 0
    for h in range(C.size):
        if C[h] > 0.0 and _above(C[h], int(e[h]), largest, largest_e):
            largest, largest_e = C[h], int(e[h])
    if largest == 0.0:
        return Fading(memory, top, top_e, min(quiet, _MOST_QUIET)), 0
    d = 0
    if not _above(largest, largest_e, top, top_e):
        d = top_e - largest_e + (1 if top > largest else 0)  # the least with 2^d C >= U
    if d > FALL or _above(largest, largest_e, top, top_e):
        top, top_e = largest, largest_e
    if d <= FALL:
        return Fading(memory, top, top_e, 0), quiet
    N = memory.g + ldexp(memory.N - memory.g, -d)
    return Fading(Memory(memory.pos, memory.g, N), top, top_e, 0), quiet + d


@kernel
def _above(C: float, e: int, other: float, other_e: int) -> bool:
    """Whether the mantissa and exponent of a number above 0 are larger than the others."""
    return other == 0.0 or e > other_e or (e == other_e and other < C)


class RecentCeilings(NamedTuple):
    """A threshold per layer, the m-th largest loss of this block or of the last one."""

    at: Vector  # layers: lower + C_h
    C: Mantissas  # layers
    e: Exponents  # layers
    now: Vector  # m per layer: the largest losses of this block, descending
    before: Vector  # m per layer: those of the block before
    l: Scratch  # layers: the clipped last losses, in units of 2^e_before
    C_before: Scratch  # layers: C when they were clipped, in units of 2^e_before
    e_before: Scratch  # layers

    def check_for(self, lower: Vector) -> None:
        """Reject thresholds that no losses can have made."""
        m = self.now.size // lower.size
        for h, least in enumerate(lower):
            at, C, e = float(self.at[h]), float(self.C[h]), int(self.e[h])
            now, before = (some[h * m : (h + 1) * m] for some in (self.now, self.before))
            Blocks(at, C, at, C, e, now, before).check_for(float(least), m)


def new_recent_ceilings(lower: Vector, m: int) -> RecentCeilings:
    """Start with C_1 = 0 in every layer, for the rank ``m``."""
    C, e, l, C_before, e_before = np.zeros((5, lower.size))
    lists = np.repeat(lower, m), np.repeat(lower, m)
    return RecentCeilings(lower.copy(), C, e, *lists, l, C_before, e_before)


@subroutine
def clip_each_recent(
    ceilings: RecentCeilings, lower: Vector, losses: Vector, ended: int
) -> tuple[int, bool]:
    """Clip one loss of each layer, in place; a block may have ``ended`` with it.

    Returns how many were clipped, and if any C has changed.
    """
    m = ceilings.now.size // losses.size
    count = 0
    changed = False
    for h in range(losses.size):
        at, C, e = ceilings.at[h], ceilings.C[h], int(ceilings.e[h])
        now, before = ceilings.now[h * m : (h + 1) * m], ceilings.before[h * m : (h + 1) * m]
        blocks = Blocks(at, C, at, C, e, now, before)
        l, clipped = clipped_at(blocks, lower[h], losses[h])
        inserted(blocks, losses[h], ended, lower[h])
        ceilings.l[h] = l
        ceilings.C_before[h] = C
        ceilings.e_before[h] = e
        count += clipped
        after = max(now[m - 1], before[m - 1])
        if after != at:
            changed = True
            C, e = above(lower[h], after)
            ceilings.at[h] = after
            ceilings.C[h] = C
            ceilings.e[h] = e
    return count, changed


def check_fading(fading: Fading, C: Vector, e: Vector) -> None:
    """Reject a largest threshold that these do not fit."""
    largest = float(np.max(np.ldexp(C, e.astype(np.int64) - fading.top_e)))
    fits = largest == 0.0 or 2.0**-FALL * fading.top <= largest <= fading.top
    require(fits and (largest == 0.0 or fading.quiet == 0), "there is no such largest threshold")
