"""The arms as FTRL with the Shannon entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p_k is proportional to exp(-eta L_k). Few arms are kept as a
vector q that is summed and drawn from in O(n); from `MANY_ARMS` on, `core.lazy_shannon` draws
from exactly the same law without touching more than a few arms. Callers see no difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.simplex import lazy_shannon
from unbounded.core.simplex.ftrl import shannon
from unbounded.core.simplex.lanes import (
    LANES,
)
from unbounded.core.simplex.proposal import RECORD
from unbounded.core.simplex.sampling import fill_uniform, mix, sample

MANY_ARMS = 24  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

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
    head = np.zeros(lazy_shannon.HEAD if many else 0)
    if many:
        lazy_shannon.start(head, n)
    return Arms(
        L=np.zeros(n), q=q, lane_sums=lane_sums, lanes=np.zeros((4 if many else 1) * LANES),
        head=head, table=np.zeros(RECORD * n if many else 0),
    )  # fmt: skip


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    if arms.table.size > 0:
        return lazy_shannon.draw(arms.head, arms.table, word)
    k = sample(arms.q, arms.lane_sums, word)
    return k, arms.q[k]


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    if arms.table.size > 0:
        for k in range(q.size):
            q[k] = lazy_shannon.probability(arms.head, arms.table, k)
    else:
        q[:] = arms.q


@kernel
def add(arms: Arms, k: int, loss: float) -> None:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``.
    """
    if arms.table.size > 0:
        lazy_shannon.add(arms.head, arms.table, k, loss)
    else:
        arms.L[k] += loss


@kernel
def rescale(arms: Arms, factor: float) -> None:
    """Multiply the cumulative losses by a power of two."""
    if arms.table.size > 0:
        lazy_shannon.rescale(arms.head, arms.table, factor)
    else:
        for k in range(arms.L.size):
            arms.L[k] *= factor


@kernel
def solve(arms: Arms, eta: float, beta: float) -> None:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    if arms.table.size > 0:
        if not lazy_shannon.solve(arms.head, arms.L.size, eta, beta):
            lazy_shannon.anchor(arms.head, arms.table, eta, beta, arms.L, arms.q, arms.lanes)
    else:
        total = shannon(arms.L, eta, arms.q, arms.lanes)
        mix(arms.q, (1.0 - beta) / total, beta / arms.q.size, arms.lane_sums)
