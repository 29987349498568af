"""Solve a program where few transitions are possible, over lists of each pair's successors.

Where ``hi`` is 0 nothing can go, and such a transition is in no sum of `dual` or `certificate`. If
all but one in eight are like that (`sparse`), the warm solver works on lists, and its cost goes by
their length. The successors of pair ``p``, numbered over all layers, are ``to[begin[p]]`` up to
``to[begin[p + 1]]``, ascending; ``lo``, ``hi``, ``P0`` and ``P`` are vectors over the same entries.
The functions below are those of the same names over all transitions, pair by pair instead of row
by row: sums are in another order, and so may differ in the last digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.core.occupancy.solver.work import FEW, Work, with_lists
from unbounded.jit.kernel import borrowed, integers, kernel, section, subroutine


class Lists(NamedTuple):
    """Hold the possible successors of each pair; both are empty if there are no lists."""

    begin: Integers  # n_pairs + 1
    to: Integers  # numbered over all layers


def told_lists(layers: Layers, possible: Vector) -> Lists:
    """List ``possible`` transitions (1 or 0; empty: all), if they are `sparse`."""
    none = np.empty(0, np.int64)
    if possible.size == 0 or FEW * np.count_nonzero(possible) > possible.size:
        return Lists(none, none)
    lay, counts, to = layers.table, np.zeros(layers.n_pairs + 1, np.int64), [none]
    for h in range(layers.horizon):
        rows = possible[lay[TRIPLE, h] : lay[TRIPLE, h + 1]].reshape(int(lay[SIZE, h + 1]), -1)
        _pair, after = np.nonzero(rows.T)
        counts[lay[PAIR, h] + 1 : lay[PAIR, h + 1] + 1] = np.count_nonzero(rows, axis=0)
        to.append(lay[STATE, h + 1] + after)
    return Lists(np.cumsum(counts), np.concatenate(to))


# Kernels


@subroutine
def only_listed(lay: Integers, lists: Lists, N: Vector, M: Vector) -> bool:
    """Test whether all transitions seen (visits N, M) are in the lists; False without lists."""
    if lists.begin.size == 0:
        return False
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            left = N[p]
            if left > 0.0:
                first = lay[TRIPLE, h] + i - lay[STATE, h + 1] * m
                for k in range(lists.begin[p], lists.begin[p + 1]):
                    left -= M[first + lists.to[k] * m]
                if left != 0.0:
                    return False
    return True


@kernel
def best_listed(
    a: int, b: int, to: Integers, base: int, lo: Vector, hi: Vector, at: int, room: float, f: Vector
) -> float:
    """Maximize <P, f> over the box of a pair, for f >= 0, as `upper.best_values`.

    Its successors are ``to[a:b]``, in ``f`` numbered from ``base`` on; their boxes begin at ``at``.
    """
    value = 0.0
    best = math.inf
    last = a - 1
    while True:
        above = 0.0  # the largest f below the one before; ties by number
        g = b
        for k in range(a, b):
            x = f[to[k] - base]
            if x > above and (x < best or (x == best and k > last)):
                above = x
                g = k
        if g == b:
            return value
        P = min(room + lo[at + g - a], hi[at + g - a])
        value += P * above
        room += lo[at + g - a] - P
        best = above
        last = g


@subroutine
def sparse(hi: Vector) -> bool:
    """Test whether at most one transition in `FEW` is possible."""
    count = 0
    for k in range(hi.size):
        count += 1 if hi[k] > 0.0 else 0
        if FEW * count > hi.size:
            return False
    return True


@subroutine
def listed(lay: Integers, hi: Vector, W: Work) -> Work:
    """Make lists of the possible transitions, which are `sparse`, in the work arrays."""
    X = lay[PAIR, -1]
    ends = integers(section(W.lists, 0, X + 2))
    for p in range(X + 2):
        ends[p] = 0
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        row = ends[lay[PAIR, h] + 1 : lay[PAIR, h] + 1 + m]
        for j in range(lay[SIZE, h + 1]):
            b = hi[lay[TRIPLE, h] + j * m : lay[TRIPLE, h] + (j + 1) * m]
            for i in range(m):
                row[i] += 1 if b[i] > 0.0 else 0
    for p in range(X):
        ends[p + 1] += ends[p]
    size = ends[X]
    ends[X + 1] = size
    W = with_lists(W, X, size)
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        row = ends[lay[PAIR, h] + 1 : lay[PAIR, h] + 1 + m]
        for j in range(lay[SIZE, h + 1] - 1, -1, -1):  # from the last to the first
            b = hi[lay[TRIPLE, h] + j * m : lay[TRIPLE, h] + (j + 1) * m]
            for i in range(m):
                if b[i] > 0.0:
                    row[i] -= 1
                    W.to[row[i]] = lay[STATE, h + 1] + j
    return W


@subroutine
def gather(lay: Integers, values: Vector, W: Work, out: Vector) -> None:
    """Copy ``values`` over all transitions to ``out``, in the order of the lists."""
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            first = lay[TRIPLE, h] + i - lay[STATE, h + 1] * m
            for k in range(W.begin[p], W.begin[p + 1]):
                out[k] = values[first + W.to[k] * m]


@subroutine
def scatter(lay: Integers, values: Vector, W: Work, out: Vector) -> None:
    """Invert `gather`; the other entries of ``out`` stay."""
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            first = lay[TRIPLE, h] + i - lay[STATE, h + 1] * m
            for k in range(W.begin[p], W.begin[p + 1]):
                out[first + W.to[k] * m] = values[k]


@subroutine
def flow(
    lay: Integers, h: int, x: Vector, P: Vector, begin: Integers, to: Integers, r: Vector
) -> None:
    """Set r to the inflow into layer h + 1 from the pairs of layer h, of mass x."""
    for k in range(lay[STATE, h + 1], lay[STATE, h + 2]):
        r[k] = 0.0
    for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
        for k in range(begin[p], begin[p + 1]):
            r[to[k]] += x[p] * P[k]


@subroutine
def inner(
    lay: Integers, h: int, lo: Vector, hi: Vector, v: Vector, P0: Vector, theta: Vector,
    phi: Vector, W: Work,
) -> None:  # fmt: skip
    """Find W.P, theta and phi(v) of the pairs of layer h."""
    lay, lo, hi, v, P0, theta, phi, W = borrowed((lay, lo, hi, v, P0, theta, phi, W))
    rho = W.rho[h]
    scale = 1.0 / rho
    half = 0.5 * rho
    for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
        a = W.begin[p]
        b = W.begin[p + 1]
        low = math.inf
        high = -math.inf
        for k in range(a, b):
            low = min(low, v[W.to[k]])
            high = max(high, v[W.to[k]])
        tolerance = max(1e-12, 1e-15 * (b - a) * scale * max(abs(low), abs(high)))
        theta[p] = min(max(theta[p], low), high)
        theta[p], total, free = _root(
            a, b, rho, tolerance, lo, hi, P0, v, theta[p], low, high, W.to
        )
        share = total / max(free, 1.0)
        over = 0.0
        value = 0.0
        for k in range(a, b):
            t = P0[k] + (v[W.to[k]] - theta[p]) * scale
            y = min(max(t, lo[k]), hi[k])
            t = y - share if y == t else y
            y = min(max(t, lo[k]), hi[k])
            over += y - t
            W.P[k] = y
            g = y - P0[k]
            value += y * v[W.to[k]] - half * (g * g)
        if over != 0.0:  # what an entry at the end of its box could not take
            for k in range(a, b):
                y = min(max(W.P[k] - over, lo[k]), hi[k])
                change = y - W.P[k]
                over += change
                value += change * v[W.to[k]] - half * change * (y + W.P[k] - 2.0 * P0[k])
                W.P[k] = y
        phi[p - lay[PAIR, h]] = value


@kernel
def _root(
    a: int, b: int, rho: float, tolerance: float, lo: Vector, hi: Vector, P0: Vector, v: Vector,
    theta: float, low: float, high: float, to: Integers,
) -> tuple[float, float, float]:  # fmt: skip
    """Find theta, which [low, high] brackets; return it, the excess of the sum, how many can move.

    As `dual.balance`, of one pair.
    """
    scale = 1.0 / rho
    total = 0.0
    free = 0.0
    for _ in range(80):
        total = -1.0
        free = 0.0
        nearest = math.inf  # breakpoint in each direction
        behind = math.inf
        for k in range(a, b):
            t = P0[k] + (v[to[k]] - theta) * scale
            y = min(max(t, lo[k]), hi[k])
            total += y
            if y == t:
                free += 1.0
            elif t > hi[k]:
                nearest = min(nearest, t - hi[k])
            else:
                behind = min(behind, lo[k] - t)
        if abs(total) <= tolerance:
            break
        if total > 0.0:
            low = theta
        else:
            high = theta
        if free > 0.0:
            t = theta + rho * total / free
        elif total > 0.0:
            t = theta + rho * (nearest + total)
        else:
            t = theta + rho * (total - behind)
        if not low < t < high:
            t = 0.5 * (low + high)
        if t == theta:
            break
        theta = t
    return theta, total, free


@subroutine
def repair(lay: Integers, lo: Vector, hi: Vector, W: Work) -> None:
    """Project W.P on the boxes where rounding spoils its sums, as v is large beside rho."""
    nothing = W.cg[: lay[STATE, -1]]
    nothing[:] = 0.0
    for p in range(lay[PAIR, -2]):
        a = W.begin[p]
        b = W.begin[p + 1]
        total = -1.0
        for k in range(a, b):
            total += W.P[k]
        if abs(total) > 1e-12:
            shift, total, free = _root(a, b, 1.0, 1e-15, lo, hi, W.P, nothing, 0.0, -2.0, 2.0, W.to)
            for k in range(a, b):
                t = W.P[k] - shift
                t -= total / max(free, 1.0) if lo[k] < t < hi[k] else 0.0
                W.P[k] = min(max(t, lo[k]), hi[k])


@subroutine
def bounds(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, theta: Vector, P: Vector, W: Work
) -> None:
    """Compute W.bound and W.slack, as `certificate.bounds`."""
    for p in range(lay[PAIR, -1]):
        u = theta[p] if W.begin[p] < W.begin[p + 1] else 0.0
        z = 0.0
        for k in range(W.begin[p], W.begin[p + 1]):
            d = v[W.to[k]] - theta[p]
            up = max(d, 0.0)
            down = max(-d, 0.0)
            u += up * hi[k] - down * lo[k]
            z += up * (hi[k] - P[k]) + down * (P[k] - lo[k])
        W.bound[p] = u
        W.slack[p] = z
