"""The arms as FTRL with the Shannon entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p_k is proportional to exp(-eta L_k). Few arms are kept as a
`Law` that is solved for and drawn from in O(n); from `MANY_ARMS` on, `lazy_shannon` draws from
exactly the same law without touching more than a few arms. Callers see no difference, and compile
one of the two, as in `tsallis_arms`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.simplex import lazy, lazy_shannon, sampling
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.kernel import kernel

MANY_ARMS = 24  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    picture: Vector | None  # with many arms, what is drawn from (`lazy`)
    table: Vector | None  # with many arms, a record for each

    def check(self) -> None:
        """Refuse arms that do not fit together."""
        if self.picture is None or self.table is None:
            self.law.check()
        else:
            lazy_shannon.check(self.picture, self.table)


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = growing and n >= MANY_ARMS
    picture, table = lazy.new_lazy(n) if many else (None, None)
    return Arms(np.zeros(n), new_law(n), picture, table)


@kernel
def draw(arms: Arms, word: int) -> tuple[int, float]:
    """Draw an arm from q; return it and its probability."""
    return _draw(arms.law, arms.picture, arms.table, word)


@kernel
def _draw(law: Law, picture: Any, table: Any, word: int) -> tuple[int, float]:
    if table is None:
        return sampling.draw(law, word)
    return lazy_shannon.draw(picture, table, word)


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
            q[k] = lazy_shannon.probability(picture, table, k)


@kernel
def add(arms: Arms, k: int, loss: float) -> None:
    """Let the cumulative loss of arm ``k`` grow by ``loss`` >= 0; q changes with `solve` only.

    A negative ``loss`` needs ``growing=False``.
    """
    _add(arms.L, arms.picture, arms.table, k, loss)


@kernel
def _add(L: Vector, picture: Any, table: Any, k: int, loss: float) -> None:
    if table is None:
        L[k] += loss
    else:
        lazy_shannon.add(picture, table, k, loss)


@kernel
def rescale(arms: Arms, factor: float) -> None:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor != 1.0:
        _rescale(arms.L, arms.picture, arms.table, factor)


@kernel
def _rescale(L: Vector, picture: Any, table: Any, factor: float) -> None:
    if table is None:
        for k in range(L.size):
            L[k] *= factor
    else:
        lazy.rescale(picture, table, factor)


@kernel
def solve(arms: Arms, eta: float, beta: float) -> None:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    L, law, picture, table = arms
    _solve(L, law, picture, table, eta, beta)


@kernel
def _solve(L: Vector, law: Law, picture: Any, table: Any, eta: float, beta: float) -> None:
    if table is None:
        shannon_mixed(L, eta, beta, law)
    elif not lazy_shannon.solve(picture, L.size, eta, beta):
        lazy_shannon.anchor(picture, table, eta, beta, L, law.q, law.room)
