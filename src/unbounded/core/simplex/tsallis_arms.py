"""The arms as FTRL with the 1/2-Tsallis entropy sees them, for estimates that mostly grow.

q = (1 - beta) p + beta / n, where p = argmin <L, p> - 4 sum sqrt(p) / eta. Few arms are kept as a
`Law` that is solved for and drawn from in O(n); from `MANY_ARMS` on, the ``lazy_`` kernels draw
from exactly the same law without touching more than a few arms. Callers see no difference.

Whoever has few arms compiles nothing of the other: where ``table`` is None, Numba leaves out what
only others do. It sees that of arguments, not of fields: hence the kernels with an underscore.

**Many arms.** Estimates L_k only grow, one per round, and eta falls slowly. So a picture of the
arms is taken now and then, in O(n): an *anchor*. Between anchors

- sums over all arms come from a power series. With g = min L - c at the anchor for a center c, and
  u_k = g / (L_k - c) <= 1, sum_k (L_k - x)^-2 = g^-2 sum_j (j + 1) M_j z^j, z = (x - c) / g, where
  M_j = sum_k u_k^(j+2) is corrected in O(1) when one L_k changes;
- an arm is drawn by its weight at the anchor and accepted with a probability that makes the law
  exactly p: the ratio of p_k to that weight is bounded, because no L_k has fallen.

A new anchor is due when |z| > REACH, where the rest of the series is no longer rounding error;
when less than ACCEPTED of the proposals would be accepted; and after so many changes that their
rounding errors might be seen. docs/theory/many-arms.md derives it and bounds how often that is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import ROUNDING, Vector, close, require, require_growth
from unbounded.core.random import uniform_at
from unbounded.core.simplex import ftrl, lazy
from unbounded.core.simplex.ftrl import NO_ANCHOR, Anchor
from unbounded.core.simplex.lazy import ETA_S, FACTOR, FLOOR, LOSS, MOMENTS, RECORD, WEIGHT
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.interpreter import interpreted, quietly
from unbounded.jit.kernel import kernel, subroutine

MANY_ARMS = 64  # measured: benchmarks/many_arms.py


class Arms(NamedTuple):
    """Cumulative losses, and the distribution that follows from them."""

    anchor: Anchor  # where the next solve starts
    L: Vector  # (n,) cumulative losses; with many arms, room for an anchor
    law: Law  # q; with many arms, room for an anchor
    picture: Vector | None  # with many arms, what is drawn from (`lazy`)
    table: Vector | None  # with many arms, a record for each

    def check_for(self, t: int) -> None:
        """Reject arms that do not fit together, or not to ``t`` losses below 1."""
        L = self.L
        if self.picture is None or self.table is None:
            self.law.check()
        else:
            L = self.table[LOSS::RECORD]
            lazy_check(self.picture, self.table)
        self.anchor.check_for(L)
        require_growth(L, t)


def new_arms(n: int, *, growing: bool = True) -> Arms:
    """No losses yet, and the uniform distribution.

    If estimates may be negative (``growing=False``), every arm is touched every round.
    """
    many = growing and n >= MANY_ARMS
    picture, table = lazy_new(n) if many else (None, None)
    return Arms(NO_ANCHOR, np.zeros(n), new_law(n), picture, table)


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
        anchor = ftrl.tsallis_moved(anchor, before, after)
    return Arms(anchor, arms.L, arms.law, arms.picture, arms.table)


@kernel
def _add(L: Vector, picture: Any, table: Any, k: int, loss: float) -> tuple[float, float]:
    if table is None:
        before = L[k]
        after = before + loss
        L[k] = after
        return before, after
    return lazy_add(picture, table, k, loss)


@kernel
def charge(arms: Arms, asleep: Vector, loss: float) -> Arms:
    """Let the cumulative losses of all arms that were ``asleep`` grow by ``loss`` >= 0."""
    for k in range(arms.L.size):
        if asleep[k] != 0.0:
            arms = add(arms, k, loss)
    return arms


@kernel
def rescale(arms: Arms, factor: float) -> Arms:
    """Multiply the cumulative losses by a power of two, often 1."""
    if factor == 1.0:
        return arms
    lazy.rescale(arms.L, arms.picture, arms.table, factor)
    return afresh(arms)


@kernel
def fade(arms: Arms, factor: float) -> Arms:
    """As `rescale`, in every half-life: with many arms the picture goes on in the new unit."""
    if factor == 1.0:
        return arms
    return _fade(arms, arms.picture, arms.table, factor)


@kernel
def _fade(arms: Arms, picture: Any, table: Any, factor: float) -> Arms:
    if table is None:
        return rescale(arms, factor)
    if picture[ETA_S] == 0.0 or not _LEAST_FACTOR <= factor <= 1.0:
        return rescale(arms, factor)
    lazy_fade(picture, table, factor)
    x, S2, S3, S4 = arms.anchor
    per = 1.0 / factor
    anchor = Anchor(x * factor, S2 * per * per, S3 * per * per * per, S4 * per * per * per * per)
    return Arms(anchor, arms.L, arms.law, picture, table)


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
            anchor = ftrl.tsallis_cold(L, eta)
        return ftrl.tsallis_mixed(L, eta, anchor, beta, law)
    fresh, found = lazy_solve(picture, L.size, eta, beta, anchor)
    if not fresh:
        found = lazy_anchor(picture, table, eta, beta, anchor, L, law.q, law.room)
    return found


def with_arms(arms: Arms, keep: Vector, eta: float, *, growing: bool = True) -> Arms:
    """Return the arms after some came or went: new arm i was arm keep[i], or is new if that is -1.

    Estimates less the least one are kept. New arms begin where their probabilities are about
    1 / (m + 1), 1 / (m + 2), ..., m the number of arms that are kept (docs/theory/sleeping.md). An
    ``eta`` of 0 means that nothing was learned yet.
    """
    fresh = new_arms(keep.size, growing=growing)
    if eta == 0.0 or keep.size == 1:
        return fresh
    losses = losses_with(arms.L if arms.table is None else arms.table[LOSS::RECORD], keep, eta)
    if fresh.table is None:
        fresh.L[:] = losses
    else:
        fresh.table[LOSS::RECORD] = losses
    solved: Arms = quietly(solve)(fresh, eta, 0.0)
    return solved


def losses_with(L: Vector, keep: Vector, eta: float) -> Vector:
    """Return the estimates of the arms after some came or went."""
    old = keep >= 0
    kept = L[keep[old].astype(np.int64)]
    kept = kept - kept.min()
    m = kept.size
    law = new_law(m)
    anchor = interpreted(ftrl.tsallis_cold)(kept, eta)
    interpreted(ftrl.tsallis_mixed)(kept, eta, anchor, 0.0, law)
    best = int(law.q.argmax())
    x = kept[best] - 2.0 / (eta * math.sqrt(law.q[best]))
    losses = np.empty(keep.size)
    losses[old] = kept
    losses[~old] = x + (2.0 / eta) * np.sqrt(np.arange(m + 1.0, keep.size + 1.0))
    return losses


REACH = 0.2  # the series then leaves out 5e-16 of the sum
LEAN = 0.1  # the center stands this far ahead, in z, where x is drifting
_EXPANDED = 1e-8  # an error of S2 whose square is rounding error
_NEAR = 0.01  # an error whose fifth power does not matter to the first of two steps
_MOST_STEPS = 20
_LEAST_FACTOR = 2.0**-8  # beyond which the picture would be too old anyway

# Of the picture: c, g and 1 / g of the series; x and min L - x at the anchor; x now, and the bound
# of a proposal.
CENTER, GAP, PER_GAP, X_S, ROOM_S, X, SQUARE = range(7)

_S2 = lazy.constant([j + 1 for j in range(lazy.TERMS)])
_S3 = lazy.constant([(j + 1) * (j + 2) / 2 for j in range(12)])  # these two only guide the steps
_S4 = lazy.constant([(j + 1) * (j + 2) * (j + 3) / 6 for j in range(8)])


def lazy_new(n: int) -> tuple[Vector, Vector]:
    """No losses yet."""
    picture, table = lazy.new_lazy(n)
    picture[X] = -1.0
    return picture, table


def lazy_check(picture: Vector, table: Vector) -> None:
    """Reject a picture, and a table, from which the arms would not be drawn by their law."""
    L, weight = table[LOSS::RECORD], table[WEIGHT::RECORD]
    if not lazy.is_anchored(picture, table):
        require(picture[X] == -1.0, "no anchor")
        return
    c, g, x, room_s = picture[[CENTER, GAP, X, ROOM_S]]
    require(g > 0.0 and close(picture[PER_GAP] * g, 1.0) and room_s > 0.0, "no such anchor")
    ahead, d = L - c, L - x
    require(np.all(ahead >= g * (1.0 - ROUNDING)) and np.all(d > 0.0), "losses below the anchor")
    u = g / ahead
    lazy.check_moments(picture, u * u, u)
    room = min(room_s, room_s - (x - picture[X_S]))
    require(close(picture[SQUARE], room * room), "proposals are not accepted as they should be")
    require(close(weight.sum(), (0.5 * room_s * picture[ETA_S]) ** 2), "weights of another rate")
    accepted = picture[SQUARE] / (d * d)
    require(np.all(accepted <= weight * (1.0 + ROUNDING)), "proposals that bound nothing")
    enough = 0.5 * lazy.ACCEPTED * weight.sum()
    require(accepted.sum() >= enough, "proposals that are never accepted")


@subroutine
def lazy_fade(picture: Vector, table: Vector, factor: float) -> None:
    """Multiply the cumulative losses, and what is measured by them, by a power of two."""
    for k in range(0, table.size, RECORD):
        table[k + LOSS] *= factor
    for i in (CENTER, GAP, X_S, ROOM_S, X):
        picture[i] *= factor
    for i in (PER_GAP, ETA_S):
        picture[i] /= factor
    for i in (SQUARE, FACTOR):
        picture[i] *= factor * factor


@kernel
def lazy_add(picture: Vector, table: Vector, k: int, amount: float) -> tuple[float, float]:
    """Let L_k grow by ``amount`` and correct the moments; return L_k before and after."""
    before, after = lazy.grow(table, k, amount)
    if picture[ETA_S] > 0.0:
        u = picture[GAP] / (before - picture[CENTER])
        v = picture[GAP] / (after - picture[CENTER])
        lazy.exchange(picture[MOMENTS:], u * u, u, v * v, v)
        picture[lazy.CHANGES] += 1.0
    return before, after


@kernel
def lazy_solve(
    picture: Vector, n: int, eta: float, beta: float, now: Anchor
) -> tuple[bool, Anchor]:
    """Find x for this ``eta`` by Halley's method, as `ftrl.tsallis` does, on the series.

    ``now`` holds x and its power sums before the step. Returns False if a `lazy_anchor` is due.
    """
    M = picture[MOMENTS:]
    fresh = lazy.usable(picture, n)
    x, S2, S3, S4 = now.x, now.S2, now.S3, now.S4
    if fresh:
        i, target = picture[PER_GAP], 4.0 / (eta * eta)
        x += predicted_step(S2, S3, S4, eta, S2 * target - 1.0)
        fresh = False
        for _ in range(_MOST_STEPS):
            z = (x - picture[CENTER]) * i
            if abs(z) > REACH:
                break
            S2 = lazy.series(M, _S2, z) * (i * i)
            S3 = lazy.series(M[1:], _S3, z) * (i * i * i)
            S4 = lazy.series(M[2:], _S4, z) * (i * i * i * i)
            error = S2 * target - 1.0
            if abs(error) <= _EXPANDED:  # one step of Newton's on S2 itself, taken with it
                x -= 0.5 * error * (S2 / S3)
                S2 = 0.25 * eta * eta
                fresh = True
                break
            x += predicted_step(S2, S3, S4, eta, error)
        room = min(picture[ROOM_S], picture[ROOM_S] - (x - picture[X_S]))
        accepted = eta * room  # its square, in units of that at the anchor
        whole = picture[ETA_S] * picture[ROOM_S]
        fresh = fresh and accepted * accepted >= lazy.ACCEPTED * (whole * whole)
        picture[SQUARE] = room * room
    if fresh:
        picture[X] = x
        lazy.settle(picture, n, beta, S2)
    return fresh, Anchor(x, S2, S3, S4)


@kernel
def predicted_step(S2: float, S3: float, S4: float, eta: float, error: float) -> float:
    """Halley's step of x, given the relative error of S2.

    The error is small from one round to the next: then sqrt(1 + error) can be expanded, and a
    root and two divisions that wait for each other are saved.
    """
    if abs(error) > _NEAR:
        return ftrl.halley_step(S2, S3, S4, eta)
    inverse = 1.0 / (S2 * S3)
    root = 0.5 * error * ((1.0 - 0.25 * error) + (error * error) * (0.125 - 0.078125 * error))
    newton = -S2 * S2 * inverse * root
    return newton * (1.0 - 1.5 * newton * (S2 * S4 - S3 * S3) * inverse)


@subroutine
def lazy_anchor(
    picture: Vector, table: Vector, eta: float, beta: float, now: Anchor,
    L: Vector, p: Vector, lanes: Vector,
) -> Anchor:  # fmt: skip
    """Solve over all the arms, and take the picture; ``L`` and ``p`` are room for n numbers."""
    n = L.size
    smallest = table[LOSS]
    for k in range(n):
        L[k] = table[RECORD * k + LOSS]
        smallest = min(smallest, L[k])
    falling = picture[ETA_S] == 0.0 or now.x < picture[X_S]
    warm = now if picture[ETA_S] > 0.0 else ftrl.tsallis_cold(L, eta)
    found = ftrl.tsallis(L, eta, warm, p, lanes)
    x = found.x
    room = smallest - x
    g = room / (1.0 - LEAN if falling else 1.0 + LEAN)
    c = smallest - g
    unit = lazy.quantum(n)
    for k in range(n):
        table[RECORD * k + WEIGHT] = lazy.round_up(room * room * p[k], unit)
    for k in range(n):
        u = g / (L[k] - c)
        L[k] = u
        p[k] = u * u
    lazy.gather(picture[MOMENTS:], p, L, lanes)
    lazy.tabulate(table)
    picture[CENTER] = c
    picture[GAP] = g
    picture[PER_GAP] = 1.0 / g
    picture[X_S] = x
    picture[ROOM_S] = room
    picture[X] = x
    picture[SQUARE] = room * room
    lazy.taken(picture, eta)
    lazy.settle(picture, n, beta, found.S2)
    return found


@kernel
def lazy_draw(picture: Vector, table: Vector, word: int) -> tuple[int, float]:
    """Return an arm drawn from (1 - beta) p + beta / n, and its probability."""
    k = lazy.explored(picture, table.size // RECORD, word)
    if k < 0:
        x = picture[X]
        stream = np.uint64(word)
        for trial in range(lazy.MOST_TRIALS):
            k = lazy.propose(table, stream, 3 * trial)
            d = table[RECORD * k + LOSS] - x
            weight = table[RECORD * k + WEIGHT]
            if uniform_at(stream, 3 * trial + 2) * weight * (d * d) < picture[SQUARE]:
                break
    return k, lazy_probability(picture, table, k)


@kernel
def lazy_probability(picture: Vector, table: Vector, k: int) -> float:
    """Of arm ``k``."""
    d = 1.0 / (table[RECORD * k + LOSS] - picture[X])
    return picture[FACTOR] * (d * d) + picture[FLOOR]


draw, fill = lazy.drawn_by(lazy_draw, lazy_probability)
