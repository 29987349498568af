"""The arms as FTRL with the Shannon entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p_k is proportional to exp(-eta L_k). Few arms are kept as a
`Law` that is solved for and drawn from in O(n); from `MANY_ARMS` on, the ``lazy_`` kernels draw
from exactly the same law without touching more than a few arms. Callers see no difference, and
compile one of the two, as in `tsallis_arms`.

**Many arms.** As in `tsallis_arms`, an anchor is taken now and then in O(n), for estimates L_k that
only grow and a rate that only falls. With lam_k = eta_s (L_k - min L) at the anchor's rate eta_s
and eps = 1 - eta / eta_s,

- sum_k exp(-eta (L_k - min L)) = sum_j (eps^j / j!) M_j, M_j = sum_k exp(-lam_k) lam_k^j, all of
  it positive, and M_j is corrected in O(1) when one L_k changes;
- an arm is drawn in proportion to exp(-(1 - width) lam_k) at the anchor, which bounds
  exp(-eta (L_k - min L)) for as long as eps <= width, and accepted by the ratio.

The width is chosen at the anchor, from the moments, so that these proposals have at most ENVELOPE
times the mass of what they bound. docs/theory/many-arms.md derives it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import ROUNDING, Vector, close, require
from unbounded.core.random import uniform_at
from unbounded.core.simplex import lazy
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.lazy import ETA_S, FACTOR, FLOOR, LOSS, MOMENTS, RECORD, WEIGHT
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.interpreter import quietly
from unbounded.jit.kernel import kernel, subroutine

MANY_ARMS = 24  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    picture: Vector | None  # with many arms, what is drawn from (`lazy`)
    table: Vector | None  # with many arms, a record for each

    def check(self) -> None:
        """Reject arms that do not fit together."""
        if self.picture is None or self.table is None:
            self.law.check()
        else:
            lazy_check(self.picture, self.table)


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = growing and n >= MANY_ARMS
    picture, table = lazy.new_lazy(n) if many else (None, None)
    return Arms(np.zeros(n), new_law(n), picture, table)


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
        lazy_add(picture, table, k, loss)


@kernel
def charge(arms: Arms, asleep: Vector, loss: float) -> None:
    """Let the cumulative losses of all arms that were ``asleep`` grow by ``loss`` >= 0."""
    for k in range(arms.L.size):
        if asleep[k] != 0.0:
            add(arms, k, loss)


@kernel
def fill_available(arms: Arms, eta: float, side: Vector, q: Vector) -> None:
    """Fill ``q`` with p at the rate ``eta``, restricted to the arms where ``side`` is 1.

    Computed from the losses: the probabilities of all of these arms may have vanished.
    """
    _fill_available(arms.L, arms.table, eta, side, q)


@kernel
def _fill_available(L: Vector, table: Any, eta: float, side: Vector, q: Vector) -> None:
    smallest = math.inf
    for k in range(q.size):
        q[k] = L[k] if table is None else table[RECORD * k + LOSS]
        if side[k] != 0.0:
            smallest = min(smallest, q[k])
    total = 0.0
    for k in range(q.size):
        q[k] = math.exp(-eta * (q[k] - smallest)) if side[k] != 0.0 else 0.0
        total += q[k]
    for k in range(q.size):
        q[k] /= total


@kernel
def rescale(arms: Arms, factor: float) -> None:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor != 1.0:
        lazy.rescale(arms.L, arms.picture, arms.table, factor)


@kernel
def solve(arms: Arms, eta: float, beta: float) -> None:
    """Make q the distribution for these losses, this rate and this share of exploration."""
    L, law, picture, table = arms
    _solve(L, law, picture, table, eta, beta)


@kernel
def _solve(L: Vector, law: Law, picture: Any, table: Any, eta: float, beta: float) -> None:
    if table is None:
        shannon_mixed(L, eta, beta, law)
    elif not lazy_solve(picture, L.size, eta, beta):
        lazy_anchor(picture, table, eta, beta, L, law.q, law.room)


def with_arms(
    arms: Arms, keep: Vector, eta: float, beta: float = 0.0, *, growing: bool = True
) -> Arms:
    """Return the arms after some came or went, as in `tsallis_arms`.

    The probabilities of those that are kept keep their ratios; a new one has their mean.
    """
    old = keep >= 0
    fresh = new_arms(keep.size, growing=growing)
    if eta == 0.0 or keep.size == 1:
        return fresh
    L = arms.L if arms.table is None else arms.table[LOSS::RECORD]
    kept = L[keep[old].astype(np.int64)]
    kept = kept - kept.min()
    mean = sum(math.exp(-eta * loss) for loss in kept.tolist()) / kept.size
    losses = np.empty(keep.size)
    losses[old] = kept
    losses[~old] = -math.log(mean) / eta
    if fresh.table is None:
        fresh.L[:] = losses
    else:
        fresh.table[LOSS::RECORD] = losses
    quietly(solve)(fresh, eta, beta)
    return fresh


ENVELOPE = 1.5
_LEFT_OUT = 1e-15  # of the sum, by the series

ETA, L_0, WIDTH, MASS = range(4)  # of the picture: the rate now; the anchor

_INVERSE_FACTORIALS = lazy.constant([1.0 / math.factorial(j) for j in range(lazy.TERMS)])


def lazy_check(picture: Vector, table: Vector) -> None:
    """Reject a picture, and a table, from which the arms would not be drawn by their law."""
    L, weight = table[LOSS::RECORD], table[WEIGHT::RECORD]
    if not lazy.is_anchored(picture, table):
        return
    eta, eta_s, width, least = picture[[ETA, ETA_S, WIDTH, L_0]]
    require(0.0 < eta <= eta_s and 0.0 < width < 1.0, "there is no such rate")
    require(1.0 - eta / eta_s <= width * (1.0 + ROUNDING), "the rate is below its anchor's")
    require(np.all(least <= L), "losses below the anchor")
    with np.errstate(over="ignore", under="ignore"):
        u = eta_s * (L - least)
        a = np.exp(-u)
        lazy.check_moments(picture, a, np.where(a > 0.0, u, 0.0))
        accepted = np.exp(-eta * (L - least))
    require(close(picture[MASS], weight.sum()), "weights of another mass")
    require(np.all(accepted <= weight * (1.0 + ROUNDING)), "proposals that bound nothing")
    enough = 0.5 * lazy.ACCEPTED * weight.sum()
    require(accepted.sum() >= enough, "proposals that are never accepted")


@kernel
def lazy_add(picture: Vector, table: Vector, k: int, amount: float) -> None:
    """Let L_k grow by ``amount`` and correct the moments."""
    before, after = lazy.grow(table, k, amount)
    if picture[ETA_S] > 0.0:
        u = picture[ETA_S] * (before - picture[L_0])
        v = picture[ETA_S] * (after - picture[L_0])
        a, b = math.exp(-u), math.exp(-v)
        lazy.exchange(picture[MOMENTS:], a, u if a > 0.0 else 0.0, b, v if b > 0.0 else 0.0)
        picture[lazy.CHANGES] += 1.0


@kernel
def lazy_solve(picture: Vector, n: int, eta: float, beta: float) -> bool:
    """Find the normalizer for this ``eta``; return False if a `lazy_anchor` is due."""
    if not lazy.usable(picture, n):
        return False
    eps = 1.0 - eta / picture[ETA_S]
    total = lazy.series(picture[MOMENTS:], _INVERSE_FACTORIALS, eps)
    picture[ETA] = eta
    lazy.settle(picture, n, beta, total)
    return eps <= picture[WIDTH] and total >= lazy.ACCEPTED * picture[MASS]


@subroutine
def lazy_anchor(
    picture: Vector, table: Vector, eta: float, beta: float, lam: Vector, p: Vector, lanes: Vector
) -> None:
    """Sum over all the arms, and take the picture; ``lam`` and ``p`` are room for n numbers."""
    n, M = lam.size, picture[MOMENTS:]
    smallest = table[LOSS]
    for k in range(n):
        lam[k] = table[RECORD * k + LOSS]
        smallest = min(smallest, lam[k])
    for k in range(n):
        u = eta * (lam[k] - smallest)
        p[k] = math.exp(-u)
        lam[k] = u if p[k] > 0.0 else 0.0
        table[RECORD * k + WEIGHT] = p[k]
    lazy.gather(M, p, lam, lanes)
    width = math.exp(math.log(_LEFT_OUT / n) / lazy.TERMS)
    while lazy.series(M, _INVERSE_FACTORIALS, width) > ENVELOPE * M[0]:
        width *= 0.5
    unit = lazy.quantum(n)
    for k in range(n):
        weight = table[RECORD * k + WEIGHT] * math.exp(width * lam[k])
        table[RECORD * k + WEIGHT] = lazy.round_up(weight, unit)
    picture[MASS] = lazy.tabulate(table)
    picture[L_0] = smallest
    picture[WIDTH] = width
    picture[ETA] = eta
    lazy.taken(picture, eta)
    lazy.settle(picture, n, beta, M[0])


@kernel
def lazy_draw(picture: Vector, table: Vector, word: int) -> tuple[int, float]:
    """Return an arm drawn from (1 - beta) p + beta / n, and its probability."""
    k = lazy.explored(picture, table.size // RECORD, word)
    if k >= 0:
        return k, lazy_probability(picture, table, k)
    eta, smallest = picture[ETA], picture[L_0]
    stream = np.uint64(word)
    weight = 0.0
    for trial in range(lazy.MOST_TRIALS):
        k = lazy.propose(table, stream, 3 * trial)
        weight = math.exp(-eta * (table[RECORD * k + LOSS] - smallest))
        if uniform_at(stream, 3 * trial + 2) * table[RECORD * k + WEIGHT] < weight:
            break
    return k, picture[FACTOR] * weight + picture[FLOOR]


@kernel
def lazy_probability(picture: Vector, table: Vector, k: int) -> float:
    """Of arm ``k``."""
    weight = math.exp(-picture[ETA] * (table[RECORD * k + LOSS] - picture[L_0]))
    return picture[FACTOR] * weight + picture[FLOOR]


draw, fill = lazy.drawn_by(lazy_draw, lazy_probability)
