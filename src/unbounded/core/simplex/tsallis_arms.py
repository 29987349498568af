"""The arms as FTRL with the 1/2-Tsallis entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p = argmin <L, p> - 4 sum sqrt(p) / eta. Few arms are kept as a
`Law` that is solved for and drawn from in O(n); from `MANY_ARMS` on, `lazy_tsallis` draws from
exactly the same law without touching more than a few arms. Callers see no difference.

Whoever has few arms compiles nothing of the other: where ``table`` is None, Numba leaves out what
only others do. It sees that of arguments, not of fields: hence the kernels with an underscore.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.simplex import lazy, lazy_tsallis, sampling
from unbounded.core.simplex.ftrl import (
    NO_ANCHOR,
    Anchor,
    tsallis_cold,
    tsallis_mixed,
    tsallis_moved,
)
from unbounded.core.simplex.proposal import LOSS, RECORD
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.core.state_validation import require_growth
from unbounded.jit.kernel import kernel

MANY_ARMS = 64  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    anchor: Anchor  # where the next solve starts
    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    picture: Vector | None  # with many arms, what is drawn from (`lazy`)
    table: Vector | None  # with many arms, a record for each

    def check_for(self, t: int) -> None:
        """Refuse arms that do not fit together, or not to ``t`` losses below 1."""
        L = self.L
        if self.picture is None or self.table is None:
            self.law.check()
        else:
            L = self.table[LOSS::RECORD]
            lazy_tsallis.check(self.picture, self.table)
        self.anchor.check_for(L)
        require_growth(L, t)


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = growing and n >= MANY_ARMS
    picture, table = lazy_tsallis.new_tsallis(n) if many else (None, None)
    return Arms(NO_ANCHOR, np.zeros(n), new_law(n), picture, table)


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    return _draw(arms.law, arms.picture, arms.table, word)


@kernel
def _draw(law: Law, picture: Any, table: Any, word: int) -> tuple[int, float]:
    if table is None:
        return sampling.draw(law, word)
    return lazy_tsallis.draw(picture, table, word)


@kernel
def fill(arms: Arms, q: Vector) -> None:
    """Fill ``q`` with the whole distribution."""
    _fill(arms.law, arms.picture, arms.table, q)


@kernel
def _fill(law: Law, picture: Any, table: Any, q: Vector) -> None:
    if table is None:
        sampling.fill(law, q)
    else:
        for k in range(q.size):
            q[k] = lazy_tsallis.probability(picture, table, k)


@kernel
def add(arms: Arms, k: int, loss: float) -> Arms:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``.
    """
    before, after = _add(arms.L, arms.picture, arms.table, k, loss)
    anchor = arms.anchor
    if loss < 0.0:
        anchor = NO_ANCHOR
    elif anchor.S2 > 0.0:
        anchor = tsallis_moved(anchor, before, after)
    return Arms(anchor, arms.L, arms.law, arms.picture, arms.table)


@kernel
def _add(L: Vector, picture: Any, table: Any, k: int, loss: float) -> tuple[float, float]:
    if table is None:
        before = L[k]
        after = before + loss
        L[k] = after
        return before, after
    return lazy_tsallis.add(picture, table, k, loss)


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor == 1.0:
        return arms
    _rescale(arms.L, arms.picture, arms.table, factor)
    return afresh(arms)


@kernel
def _rescale(L: Vector, picture: Any, table: Any, factor: float) -> None:
    if table is None:
        for k in range(L.size):
            L[k] *= factor
    else:
        lazy.rescale(picture, table, factor)


@kernel
def afresh(arms: Arms) -> Arms:
    """The same arms, whose next solve depends on nothing but their losses; not with many arms."""
    return Arms(NO_ANCHOR, arms.L, arms.law, arms.picture, arms.table)


@kernel
def solve(arms: Arms, eta: float, beta: float) -> Arms:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    anchor, L, law, picture, table = arms
    return Arms(_solve(anchor, L, law, picture, table, eta, beta), L, law, picture, table)


@kernel
def _solve(
    anchor: Anchor, L: Vector, law: Law, picture: Any, table: Any, eta: float, beta: float
) -> Anchor:
    if table is None:
        if anchor.S2 == 0.0:
            anchor = tsallis_cold(L, eta)
        return tsallis_mixed(L, eta, anchor, beta, law)
    fresh, found = lazy_tsallis.solve(picture, L.size, eta, beta, anchor)
    if not fresh:
        found = lazy_tsallis.anchor(picture, table, eta, beta, anchor, L, law.q, law.room)
    return found
