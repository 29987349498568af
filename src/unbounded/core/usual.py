"""The usual loss, the median of the last RECENT ones, and a cap in units of it.

Only comparisons choose it, so that it is scale-free, and a changed scale is seen after RECENT / 2
losses. A cap in these units keeps what is said by a time-out, and bounds what one can do.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Vector, require
from unbounded.jit.kernel import kernel

RECENT = 64


class Usual(NamedTuple):
    """The last losses, by age and by size; None for learners without a cap."""

    recent: Vector | None  # (RECENT,) loss s at s % RECENT; filled up with inf
    ordered: Vector | None  # (RECENT,) the same, ascending

    def check_for(self, lower: float, t: int) -> None:
        """Reject losses that no ``t - 1`` rounds can have had."""
        if self.recent is not None and self.ordered is not None:
            seen = min(t - 1, RECENT)
            require(np.array_equal(np.sort(self.recent), self.ordered), "no such recent losses")
            require(np.all(np.isfinite(self.recent[:seen])), "there were no so many losses")
            require(np.all(self.recent[seen:] == np.inf), "there were no so many losses")
            require(np.all(self.recent >= lower), "a loss is below the lower bound")


def new_usual(capped: bool) -> Usual:
    """Start without losses."""
    return Usual(np.full(RECENT, np.inf), np.full(RECENT, np.inf)) if capped else Usual(None, None)


@kernel
def cut(usual: Usual, lower: float, cap: float, t: int, loss: float) -> float:
    """Return a loss of at least ``lower``, cut at ``cap`` times the usual one above ``lower``.

    ``t`` is the number of the loss, from 1 on. Nothing is cut while the usual loss is ``lower``.
    """
    return _cut(usual.recent, usual.ordered, lower, cap, t, loss)


@kernel
def _cut(recent: Any, ordered: Any, lower: float, cap: float, t: int, loss: float) -> float:
    loss = max(loss, lower)
    if recent is None:
        return loss
    most, seen = math.inf, min(t - 1, RECENT)
    if seen > 0:
        above = ordered[seen // 2] - lower
        most = lower + cap * above if above > 0.0 else math.inf
    _exchange(ordered, recent[(t - 1) % RECENT], loss)
    recent[(t - 1) % RECENT] = loss
    return min(loss, most)


@kernel
def _exchange(ordered: Vector, old: float, new: float) -> None:
    """Put ``new`` in the place of ``old`` in an ascending list."""
    k = 0
    while ordered[k] < old:
        k += 1
    while k + 1 < ordered.size and ordered[k + 1] < new:
        ordered[k] = ordered[k + 1]
        k += 1
    while k > 0 and ordered[k - 1] > new:
        ordered[k] = ordered[k - 1]
        k -= 1
    ordered[k] = new
