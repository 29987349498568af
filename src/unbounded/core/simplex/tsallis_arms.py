"""The arms as FTRL with the 1/2-Tsallis entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p = argmin <L, p> - 4 sum sqrt(p) / eta. Few arms are kept as a
`Law` that is solved for and drawn from in O(n); from `MANY_ARMS` on, `lazy_tsallis` draws from
exactly the same law without touching more than a few arms. Callers see no difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded._jit import kernel
from unbounded.core.arrays import Vector
from unbounded.core.simplex import lazy, lazy_tsallis, sampling
from unbounded.core.simplex.ftrl import (
    NO_ANCHOR,
    Anchor,
    tsallis_cold,
    tsallis_mixed,
    tsallis_moved,
)
from unbounded.core.simplex.lazy import NOT_LAZY, Lazy, in_use
from unbounded.core.simplex.sampling import Law, new_law

MANY_ARMS = 64  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    anchor: Anchor  # where the next solve starts
    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    many: Lazy  # with many arms: the losses and the distribution


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = lazy_tsallis.new(n) if growing and n >= MANY_ARMS else NOT_LAZY
    return Arms(anchor=NO_ANCHOR, L=np.zeros(n), law=new_law(n), many=many)


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    if in_use(arms.many):
        return lazy_tsallis.draw(arms.many, word)
    return sampling.draw(arms.law, word)


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    if in_use(arms.many):
        for k in range(q.size):
            q[k] = lazy_tsallis.probability(arms.many, k)
    else:
        q[:] = arms.law.q


@kernel
def add(arms: Arms, k: int, loss: float) -> Arms:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``.
    """
    if in_use(arms.many):
        before, after = lazy_tsallis.add(arms.many, k, loss)
    else:
        before = arms.L[k]
        after = before + loss
        arms.L[k] = after
    anchor = arms.anchor
    if loss < 0.0:
        anchor = NO_ANCHOR
    elif anchor.S2 > 0.0:
        anchor = tsallis_moved(anchor, before, after)
    return Arms(anchor, arms.L, arms.law, arms.many)


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor == 1.0:
        return arms
    lazy.rescale(arms.many, arms.L, factor)
    return Arms(NO_ANCHOR, arms.L, arms.law, arms.many)


@kernel
def solve(arms: Arms, eta: float, beta: float) -> Arms:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    anchor, L, law, many = arms.anchor, arms.L, arms.law, arms.many
    if in_use(many):
        fresh, found = lazy_tsallis.solve(many, L.size, eta, beta, anchor)
        if not fresh:
            found = lazy_tsallis.anchor(many, eta, beta, anchor, L, law.q, law.room)
        anchor = found
    else:
        if anchor.S2 == 0.0:
            anchor = tsallis_cold(L, eta)
        anchor = tsallis_mixed(L, eta, anchor, beta, law)
    return Arms(anchor, L, law, many)
