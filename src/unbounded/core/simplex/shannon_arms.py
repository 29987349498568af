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
from unbounded.core.simplex.lazy import NOT_LAZY, Lazy, in_use
from unbounded.core.simplex.sampling import Law, new_law

MANY_ARMS = 24  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    many: Lazy  # with many arms: the losses and the distribution


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = lazy_shannon.new(n) if growing and n >= MANY_ARMS else NOT_LAZY
    return Arms(L=np.zeros(n), law=new_law(n), many=many)


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    if in_use(arms.many):
        return lazy_shannon.draw(arms.many, word)
    return sampling.draw(arms.law, word)


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    if in_use(arms.many):
        for k in range(q.size):
            q[k] = lazy_shannon.probability(arms.many, k)
    else:
        q[:] = arms.law.q


@kernel
def add(arms: Arms, k: int, loss: float) -> None:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``.
    """
    if in_use(arms.many):
        lazy_shannon.add(arms.many, k, loss)
    else:
        arms.L[k] += loss


@kernel
def rescale(arms: Arms, factor: float) -> None:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor != 1.0:
        lazy.rescale(arms.many, arms.L, factor)


@kernel
def solve(arms: Arms, eta: float, beta: float) -> None:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    if in_use(arms.many):
        if not lazy_shannon.solve(arms.many, arms.L.size, eta, beta):
            lazy_shannon.anchor(arms.many, eta, beta, arms.L, arms.law.q, arms.law.room)
    else:
        shannon_mixed(arms.L, eta, beta, arms.law)
