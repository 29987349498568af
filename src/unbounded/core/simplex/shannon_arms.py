"""The arms as FTRL with the Shannon entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p_k is proportional to exp(-eta L_k). Few arms are kept as a
`Law` that is solved for and drawn from in O(n); from `MANY_ARMS` on, `lazy_shannon` draws from
exactly the same law without touching more than a few arms. Callers see no difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel
from unbounded.core.arrays import Vector
from unbounded.core.simplex import lazy, lazy_shannon, sampling
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law, new_law

MANY_ARMS = 24  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    picture: Vector  # with many arms, what is drawn from (`lazy`); else empty
    table: Vector  # with many arms, a record for each; else empty

    def check(self) -> None:
        """Refuse arms that do not fit together."""
        if self.table.size > 0:
            lazy_shannon.check(self.picture, self.table)
        else:
            self.law.check()


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = growing and n >= MANY_ARMS
    picture, table = lazy.new_lazy(n) if many else (np.zeros(0), np.zeros(0))
    return Arms(np.zeros(n), new_law(n), picture, table)


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    if arms.table.size > 0:
        return lazy_shannon.draw(arms.picture, arms.table, word)
    return sampling.draw(arms.law, word)


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    if arms.table.size > 0:
        for k in range(q.size):
            q[k] = lazy_shannon.probability(arms.picture, arms.table, k)
    else:
        sampling.fill(arms.law, q)


@kernel
def add(arms: Arms, k: int, loss: float) -> None:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``.
    """
    if arms.table.size > 0:
        lazy_shannon.add(arms.picture, arms.table, k, loss)
    else:
        arms.L[k] += loss


@kernel
def rescale(arms: Arms, factor: float) -> None:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor == 1.0:
        return
    if arms.table.size > 0:
        lazy.rescale(arms.picture, arms.table, factor)
    else:
        for k in range(arms.L.size):
            arms.L[k] *= factor


@kernel
def solve(arms: Arms, eta: float, beta: float) -> None:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    L, law, picture, table = arms
    if table.size > 0:
        if not lazy_shannon.solve(picture, L.size, eta, beta):
            lazy_shannon.anchor(picture, table, eta, beta, L, law.q, law.room)
    else:
        shannon_mixed(L, eta, beta, law)
