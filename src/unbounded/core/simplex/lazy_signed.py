"""p_k = (2 S / (L_k - x))^2 for many arms whose estimates L_k rise and fall, one per round.

As in `tsallis_arms`, a picture of all arms is taken now and then, in O(n), and sums over them come
from power series in z = (x - c) / g, with u_k = g / (L_k - c) <= 1. What falls is dealt with so:

- arms with L_k - c < g, for which the series would not converge, are *leaders*: their terms are
  added one by one. An anchor makes leaders of the few arms that are ahead of all others, and leaves
  the others room to fall by a fifth of their distance before they become leaders too;
- the weights u_k^2 that arms are proposed by follow every change (`tree`), so that they bound
  p_k whatever an estimate does: g^2 / (L_k - x)^2 <= u_k^2 / (1 - max(z, 0))^2;
- leaders are drawn by their own probabilities.

Estimates are differences to the least one at the anchor: none is large beside S that matters.
docs/theory/many-arms.md derives it.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.random import uniform_at, word_at
from unbounded.core.simplex import lazy, sampling
from unbounded.core.simplex.ftrl import Anchor, tsallis
from unbounded.core.simplex.lazy import CHANGES, FACTOR, FLOOR, MOMENTS
from unbounded.core.simplex.signed_picture import (
    ARM,
    BOUND,
    CENTER,
    COUNT,
    CUBES,
    FASTEST,
    GAP,
    HEAVY,
    LIMIT,
    LIST,
    LOSS,
    NEAR,
    PER_GAP,
    ROOM_TO_FALL,
    ROOT,
    S2,
    S3,
    S4,
    S_S,
    X_S,
    X,
    append,
    crossed,
    exchange_one,
    find,
    move,
    near_gap,
    slot_of,
    weight_of,
)
from unbounded.core.simplex.tree import TREE, follow, grow, heaviest, lowest, pick
from unbounded.core.simplex.tsallis_arms import REACH, predicted_step
from unbounded.jit.kernel import kernel, subroutine

_FIRST = 24  # leaders at an anchor, at most
_FARTHEST = 60  # doublings in the search for them
_LEAN = 0.15  # the center stands this far ahead, in z: x mostly falls, as S grows
_LEAN_WIDE = 0.25
_MOST_SHARE = 0.5  # of an arm that is no leader
_FEWEST_CHANGES = 65_536  # whose rounding errors add up to less than 1e-11 at worst
_S3 = lazy.constant([(j + 1) * (j + 2) / 2 for j in range(lazy.TERMS)])


@kernel
def root(picture: Vector, M: Vector, S: float, k: int) -> float:
    """sqrt(p_k)."""
    return 2.0 * S / (M[k] - picture[X])


@kernel
def probability(picture: Vector, M: Vector, k: int) -> float:
    """Of arm ``k``, exploration included."""
    h = picture[GAP] / (M[k] - picture[X])
    return picture[FACTOR] * (h * h) + picture[FLOOR]


@kernel
def draw(picture: Vector, tree: Vector, M: Vector, word: int) -> tuple[int, float]:
    """Return an arm drawn from (1 - beta) p + beta / n, and its probability."""
    n = M.size
    k = lazy.explored(picture, n, word)
    if k < 0:
        stream = np.uint64(word)
        heavy, bound = picture[HEAVY], picture[BOUND] / heaviest(n)
        for trial in range(lazy.MOST_TRIALS):
            u = uniform_at(stream, 3 * trial) * (heavy + bound * tree[1])
            if u < heavy:
                k = _leader(picture, u)
                break
            k = pick(tree, n, word_at(stream, 3 * trial + 1))
            h = picture[GAP] / (M[k] - picture[X])
            if uniform_at(stream, 3 * trial + 2) * (bound * tree[n + k]) < h * h:
                break
    return k, probability(picture, M, k)


@kernel
def _leader(picture: Vector, u: float) -> int:
    """Return the leader whose part of the cumulative weights ``u`` falls into."""
    last = int(picture[COUNT]) - 1
    for j in range(last):
        u -= picture[ROOT + j] * picture[ROOT + j]
        if u < 0.0:
            return int(picture[ARM + j])
    return int(picture[ARM + last])


@kernel
def add(picture: Vector, tree: Vector, M: Vector, S: float, k: int, x: float) -> tuple[bool, float]:
    """Add ``x`` to the estimate of arm ``k``, and return the gap (`signed_arms.add`).

    Returns whether that was possible: if not, no estimate has changed, and the picture is spoilt.
    """
    n = M.size
    g, now, before = picture[GAP], picture[X], M[k]
    after = before + x
    h = g / (before - now)
    unit = 2.0 * S * picture[PER_GAP]
    r = unit * h
    z = x * (0.5 / S) * r
    slot = slot_of(picture, k) if tree[n + k] == 0.0 else -1
    if slot < 0 and r * r > _MOST_SHARE:  # its cube would be subtracted from little more
        return False, 0.0
    room = 1.0 if slot < 0 else ROOM_TO_FALL
    if abs(z) <= NEAR:
        cubes = picture[CUBES] - (h * h * h if slot < 0 else 0.0)
        for j in range(int(picture[COUNT])):
            if j != slot:
                cubes += picture[ROOT + j] * picture[ROOT + j] * picture[ROOT + j]
        gap = near_gap(z, r, cubes * (unit * unit * unit), 2.0 * S / (lowest(tree, n) - now))
        new = h / (1.0 + z)
        picture[S2] += new * new - h * h
        picture[S3] += new * new * new - h * h * h
        picture[S4] += new * new * new * new - h * h * h * h
    else:
        if slot < 0:
            u = g / (before - picture[CENTER])
            exchange_one(picture, u, 0.0)
            slot = append(picture, k, after)
        picture[LOSS + slot] = after
        start = now if x > 0.0 else min(now, after - 2.0 * S)
        if not find(picture, S, start):
            return False, 0.0
        tau = (picture[X] - now) * (0.5 / S)
        longer = (after - picture[X]) / (before - now)  # 1 + z - tau r, where much may cancel
        own = r * (longer - 1.0) * ((longer - 1.0) / longer)
        gap = own + tau * tau * (unit * unit * unit) * crossed(picture, now, slot)
    move(picture, tree, k, slot, before, after, room)
    M[k] = after
    follow(tree, M, k)
    return True, 2.0 * S * gap


@kernel
def solve(picture: Vector, tree: Vector, S: float, beta: float) -> bool:
    """Find x for the new S; return whether that was possible. If not, an `anchor` is due."""
    n = tree.size // TREE
    spoilt = picture[CHANGES] > max(n, _FEWEST_CHANGES) * picture[MOMENTS]
    if spoilt or picture[S_S] == 0.0 or FASTEST * picture[S_S] < S:
        return False
    unit = 2.0 * S * picture[PER_GAP]
    error = picture[S2] * (unit * unit) - 1.0
    step = predicted_step(picture[S2], picture[S3], picture[S4], 2.0 / unit, error)
    if not find(picture, S, picture[X] + step * picture[GAP]):
        return False
    return _settled(picture, tree, S, beta)


@kernel
def _settled(picture: Vector, tree: Vector, S: float, beta: float) -> bool:
    """Prepare what is drawn from; return whether enough of the proposals will be accepted."""
    n = tree.size // TREE
    g, x = picture[GAP], picture[X]
    z = (x - picture[CENTER]) * picture[PER_GAP]
    heavy = 0.0
    for j in range(int(picture[COUNT])):
        h = g / (picture[LOSS + j] - x)
        picture[ROOT + j] = h
        heavy += h * h
    picture[HEAVY] = heavy
    picture[BOUND] = 1.0 if z <= 0.0 else 1.0 / ((1.0 - z) * (1.0 - z))
    picture[CUBES] = lazy.series(picture[MOMENTS + 1 :], _S3, z)
    unit = 2.0 * S * picture[PER_GAP]
    total = 1.0 / (unit * unit)
    lazy.settle(picture, n, beta, total)
    return total >= lazy.ACCEPTED * (heavy + picture[BOUND] * (tree[1] / heaviest(n)))


@kernel
def _of_rank(p: Vector, largest: Vector) -> float:
    """Return the largest of ``p`` but ``largest.size - 1``, or 0; ``largest`` is room for them."""
    largest[:] = 0.0
    last = largest.size - 1
    for value in p:
        if value > largest[last]:
            k = last
            while k > 0 and largest[k - 1] < value:
                largest[k] = largest[k - 1]
                k -= 1
            largest[k] = value
    return largest[last]


@subroutine
def anchor(
    picture: Vector, tree: Vector, M: Vector, S: float, beta: float,
    m: Vector, p: Vector, lanes: Vector, limit: float,
) -> None:  # fmt: skip
    """Solve over all the arms, and take the picture, for z up to ``limit``; ``m`` and ``p`` are
    room for n numbers."""
    n, lean = M.size, _LEAN if limit == REACH else _LEAN_WIDE
    base = sampling.least(M)
    inverse = 0.5 / S
    for i in range(n):
        M[i] -= base
        m[i] = M[i] * inverse
    start = min(-1.0, max(-math.sqrt(n), (picture[X] - base) * inverse))
    found = tsallis(m, 2.0, Anchor(start, 0.0, 0.0, 0.0), p, lanes)
    nearest, cut = -found.x, 0.0  # of those who do not lead, in units of 2 S; leaders have p > cut
    most = _of_rank(p, picture[LIST : LIST + _FIRST + 1])
    for _ in range(_FARTHEST):
        wider = 1.0 / (4.0 * nearest * nearest)
        if most > wider:  # too many would lead
            break
        nearest, cut = 2.0 * nearest, wider
    x, g = found.x * (2.0 * S), nearest * (2.0 * S) / (ROOM_TO_FALL - lean)
    c = x - lean * g
    picture[COUNT] = 0.0
    picture[LIST:] = 0.0
    units = heaviest(n)
    for i in range(n):
        if cut > 0.0 and p[i] > cut:
            append(picture, i, M[i])
            m[i] = p[i] = tree[n + i] = 0.0
        else:
            u = g / (M[i] - c)
            m[i] = u
            p[i] = u * u
            tree[n + i] = weight_of(u, units)
    lazy.gather(picture[MOMENTS : MOMENTS + lazy.ROOM], p, m, lanes)
    grow(tree, M)
    picture[CENTER] = c
    picture[GAP] = g
    picture[PER_GAP] = 1.0 / g
    picture[X] = x
    picture[X_S] = x
    picture[LIMIT] = limit
    unit = 2.0 * S * picture[PER_GAP]
    picture[S2] = found.S2 / (unit * unit)
    picture[S3] = found.S3 / (unit * unit * unit)
    picture[S4] = found.S4 / (unit * unit * unit * unit)
    lazy.taken(picture, S)
    _settled(picture, tree, S, beta)
