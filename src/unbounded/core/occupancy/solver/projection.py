"""Projections on the boxes of a layer's pairs: the root of a piecewise linear function each.

The P in the box of a pair nearest to ``P0 + v/rho`` is ``clip(P0 + (v - theta)/rho, lo, hi)`` with
theta such that it sums to one. All pairs of a layer are done at once, elementwise.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.jit.kernel import kernel, subroutine


@kernel
def balance(
    m: int, n: int, start: int, rho: float, tolerance: float, lo: Vector, hi: Vector, P0: Vector,
    v: Vector, total: Vector, free: Vector, low: Vector, high: Vector, theta: Vector,
) -> None:  # fmt: skip
    """Move every theta[i], which [low, high] brackets, until the sum is one.

    Leaves in ``total`` what the sum is too much by, and in ``free`` how many entries can move.
    """
    scale = 1.0 / rho
    for _ in range(80):
        for i in range(m):
            total[i] = -1.0
            free[i] = 0.0
        for j in range(n):
            k = start + j * m
            a = lo[k : k + m]
            b = hi[k : k + m]
            p0 = P0[k : k + m]
            vj = v[j]
            for i in range(m):
                t = p0[i] + (vj - theta[i]) * scale
                y = min(max(t, a[i]), b[i])
                total[i] += y
                free[i] += 1.0 if y == t else 0.0
        if not _search(m, n, start, rho, tolerance, lo, hi, P0, v, total, free, low, high, theta):
            break


@subroutine
def _search(
    m: int, n: int, start: int, rho: float, tolerance: float, lo: Vector, hi: Vector, P0: Vector,
    v: Vector, total: Vector, free: Vector, low: Vector, high: Vector, theta: Vector,
) -> bool:  # fmt: skip
    """One step of every theta[i] towards total[i] = 0; False if all are there.

    total = sum_j clip(P0 + (v_j - theta)/rho, lo, hi) - 1 decreases in theta, piecewise linearly
    with slope -free/rho; [low, high] brackets the root. Newton's step; where nothing is free, the
    step to the next breakpoint and on as if one entry were; bisection if either leaves the
    bracket. Entries within the tolerance keep their theta.
    """
    again = False
    for i in range(m):
        r = total[i]
        if abs(r) > tolerance:
            t = theta[i]
            f = free[i]
            if r > 0.0:
                low[i] = t
            else:
                high[i] = t
            if f > 0.0:
                t += rho * r / f
            else:
                nearest = math.inf
                for j in range(n):
                    k = start + j * m + i
                    y = P0[k] + (v[j] - t) / rho
                    d = y - hi[k] if r > 0.0 else lo[k] - y
                    if 0.0 < d < nearest:
                        nearest = d
                t += rho * (nearest + r) if r > 0.0 else rho * (r - nearest)
            if not low[i] < t < high[i]:
                t = 0.5 * (low[i] + high[i])
            if t != theta[i]:
                again = True
            theta[i] = t
    return again


@subroutine
def project(
    m: int, n: int, lo: Vector, hi: Vector, start: int, P: Vector, shift: Vector, room: Vector
) -> None:
    """Euclidean projection of a layer's P(.|i), in place, on its boxes with sum one.

    ``shift`` (m) and ``room`` (4 m) are scratch.
    """
    total = room[:m]
    free = room[m : 2 * m]
    low = room[2 * m : 3 * m]
    high = room[3 * m : 4 * m]
    for i in range(m):
        shift[i] = 0.0
        low[i] = -2.0
        high[i] = 2.0
    balance(m, n, start, 1.0, 1e-15, lo, hi, P, np.zeros(n), total, free, low, high, shift)
    for j in range(n):
        k = start + j * m
        a = lo[k : k + m]
        b = hi[k : k + m]
        p = P[k : k + m]
        for i in range(m):
            t = p[i] - shift[i]
            if a[i] < t < b[i]:
                t -= total[i] / max(free[i], 1.0)
            p[i] = min(max(t, a[i]), b[i])
