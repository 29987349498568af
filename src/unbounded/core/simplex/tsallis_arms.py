"""The arms as FTRL with the 1/2-Tsallis entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p = argmin <L, p> - 4 sum sqrt(p) / eta. Few arms are kept as a
vector q that is solved for and drawn from in O(n); from `MANY_ARMS` on, `core.lazy_tsallis` draws
from exactly the same law without touching more than a few arms. Callers see no difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.simplex import lazy_tsallis
from unbounded.core.simplex.ftrl import Anchor, tsallis_cold, tsallis_mixed, tsallis_moved
from unbounded.core.simplex.lanes import (
    LANES,
)
from unbounded.core.simplex.proposal import RECORD
from unbounded.core.simplex.sampling import fill_uniform, sample

MANY_ARMS = 64  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    x: float  # the normaliser of p and its power sums: where the next solve starts
    S2: float
    S3: float
    S4: float
    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    q: Vector  # (n,) the distribution; with many arms, room for an anchor
    lane_sums: Vector  # of q, for sampling
    lanes: Vector  # room for sums
    head: Vector  # with many arms: the anchor and
    table: Vector  # a record for each arm


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    q, lane_sums = np.empty(n), np.zeros(LANES)
    many = growing and n >= MANY_ARMS
    fill_uniform(q, lane_sums)
    head = np.zeros(lazy_tsallis.HEAD if many else 0)
    if many:
        lazy_tsallis.start(head, n)
    return Arms(
        x=0.0, S2=0.0, S3=0.0, S4=0.0, L=np.zeros(n), q=q, lane_sums=lane_sums,
        lanes=np.zeros((4 if many else 3) * LANES), head=head,
        table=np.zeros(RECORD * n if many else 0),
    )  # fmt: skip


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    if arms.table.size > 0:
        return lazy_tsallis.draw(arms.head, arms.table, word)
    k = sample(arms.q, arms.lane_sums, word)
    return k, arms.q[k]


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    if arms.table.size > 0:
        for k in range(q.size):
            q[k] = lazy_tsallis.probability(arms.head, arms.table, k)
    else:
        q[:] = arms.q


@kernel
def add(arms: Arms, k: int, loss: float) -> Arms:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``, and `unsettled` after it.
    """
    if arms.table.size > 0:
        before, after = lazy_tsallis.add(arms.head, arms.table, k, loss)
    else:
        before = arms.L[k]
        after = before + loss
        arms.L[k] = after
    if arms.S2 > 0.0:
        return _at(arms, tsallis_moved(_anchor(arms), before, after))
    return arms


@kernel
def unsettled(arms: Arms) -> Arms:
    """Have the next solve start afresh: after an estimate that is negative."""
    return _at(arms, Anchor(arms.x, 0.0, 0.0, 0.0))


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the cumulative losses by a power of two."""
    if arms.table.size > 0:
        lazy_tsallis.rescale(arms.head, arms.table, factor)
    else:
        for k in range(arms.L.size):
            arms.L[k] *= factor
    return unsettled(arms)


@kernel
def solve(arms: Arms, eta: float, beta: float) -> Arms:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    anchor = _anchor(arms)
    if arms.table.size > 0:
        fresh, found = lazy_tsallis.solve(arms.head, arms.L.size, eta, beta, anchor)
        if not fresh:
            found = lazy_tsallis.anchor(
                arms.head, arms.table, eta, beta, anchor, arms.L, arms.q, arms.lanes
            )
        anchor = found
    else:
        if anchor.S2 == 0.0:
            anchor = tsallis_cold(arms.L, eta)
        anchor = tsallis_mixed(arms.L, eta, anchor, beta, arms.q, arms.lane_sums, arms.lanes)
    return _at(arms, anchor)


@kernel
def _anchor(arms: Arms) -> Anchor:
    return Anchor(arms.x, arms.S2, arms.S3, arms.S4)


@kernel
def _at(arms: Arms, anchor: Anchor) -> Arms:
    return Arms(
        anchor.x, anchor.S2, anchor.S3, anchor.S4,
        arms.L, arms.q, arms.lane_sums, arms.lanes, arms.head, arms.table,
    )  # fmt: skip
