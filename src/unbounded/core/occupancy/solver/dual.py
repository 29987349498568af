"""Evaluate the smoothed dual of the occupancy program, by projections on boxes.

Adding ``sum x(s,a) (rho_h/2) ||P - P0||^2`` to the program (jointly convex: the perspective of a
quadratic) smooths the inner maximum,

    phi(v) = max_{P in box} <P, v> - (rho/2) ||P - P0||^2,   P = clip(P0 + (v - theta)/rho, lo, hi),

with theta the root of sum P = 1, a piecewise linear equation for each pair; P is the projection of
``P0 + v/rho`` on the box. All pairs of a layer are done at once, elementwise. The dual
g = -sum_h w_h ln sum exp(-(L + v(s) - phi)/w_h) is then C^1, with gradient outflow - inflow.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, dots, horizon
from unbounded.core.occupancy.solver import sparse
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import borrowed, kernel, subroutine


@subroutine
def evaluate(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, P0: Vector, theta: Vector, W: Work
) -> float:
    """Return the smoothed dual's value; fill W.P, x, q, r, grad and move theta."""
    lay, lo, hi, v, P0, theta, W = borrowed((lay, lo, hi, v, P0, theta, W))
    H = horizon(lay)
    value = 0.0
    W.q[0] = 1.0
    W.r[0] = 1.0
    W.grad[0] = 0.0
    for h in range(H + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        m = n * A
        p = lay[PAIR, h]
        x = W.x[p : p + m]
        for i in range(m):
            x[i] = 0.0
        if h < H and W.begin.size > 0:
            sparse.inner(lay, h, lo, hi, v, P0, theta, x, W)
        elif h < H:
            _inner(lay, h, lo, hi, v, P0, theta, x, W)
        if h == 0:
            value -= x[0]
            x[0] = 1.0
        else:
            wh = W.w[h]
            L = W.L[p : p + m]
            least = math.inf
            for s in range(n):
                vs = v[lay[STATE, h] + s]
                for i in range(s * A, s * A + A):
                    x[i] = L[i] + vs - x[i]
                    least = min(least, x[i])
            scale = 1.0 / wh
            z = 0.0
            for i in range(m):
                x[i] = math.exp((least - x[i]) * scale)
                z += x[i]
            value += least - wh * math.log(z)
            scale = 1.0 / z
            for s in range(n):
                t = 0.0
                for i in range(s * A, s * A + A):
                    x[i] *= scale
                    t += x[i]
                k = lay[STATE, h] + s
                W.q[k] = t
                W.grad[k] = t - W.r[k]
        if h < H and W.begin.size > 0:
            sparse.flow(lay, h, W.x, W.P, W.begin, W.to, W.r)
        elif h < H:
            dots(m, lay[SIZE, h + 1], x, W.P, lay[TRIPLE, h], W.r[lay[STATE, h + 1] :])
    return value


@kernel
def _inner(
    lay: Integers, h: int, lo: Vector, hi: Vector, v: Vector, P0: Vector, theta: Vector,
    phi: Vector, W: Work,
) -> None:  # fmt: skip
    """Find W.P, theta and phi(v), which is zero before, of the pairs of layer h."""
    m = lay[SIZE, h] * lay[ACTIONS, h]
    n = lay[SIZE, h + 1]
    start = lay[TRIPLE, h]
    rho = W.rho[h]
    total = W.pair[:m]
    free = W.pair[m : 2 * m]
    low = W.pair[2 * m : 3 * m]
    high = W.pair[3 * m : 4 * m]
    th = theta[lay[PAIR, h] : lay[PAIR, h] + m]
    vn = v[lay[STATE, h + 1] : lay[STATE, h + 1] + n]
    v_low = vn[0]
    v_high = vn[0]
    for j in range(1, n):
        v_low = min(v_low, vn[j])
        v_high = max(v_high, vn[j])
    for i in range(m):
        th[i] = min(max(th[i], v_low), v_high)
        low[i] = v_low
        high[i] = v_high
    scale = 1.0 / rho
    # (v - theta)/rho carries the rounding of v: what is left is spread over free entries
    tolerance = max(1e-12, 1e-15 * n * scale * max(abs(v_low), abs(v_high)))
    balance(m, n, start, rho, tolerance, lo, hi, P0, vn, total, free, low, high, th)
    over = low  # what an entry at the end of its box cannot take; the brackets are not needed
    for i in range(m):
        total[i] /= max(free[i], 1.0)
        over[i] = 0.0
    half = 0.5 * rho
    for j in range(n):
        k = start + j * m
        a = lo[k : k + m]
        b = hi[k : k + m]
        p0 = P0[k : k + m]
        P = W.P[k : k + m]
        vj = vn[j]
        for i in range(m):
            t = p0[i] + (vj - th[i]) * scale
            y = min(max(t, a[i]), b[i])
            t = y - total[i] if y == t else y
            y = min(max(t, a[i]), b[i])
            over[i] += y - t
            P[i] = y
            phi[i] += y * vj
            g = y - p0[i]
            phi[i] -= half * (g * g)
    for i in range(m):
        if over[i] != 0.0:
            phi[i] += _spread(m, n, start + i, half, over[i], lo, hi, P0, vn, W.P)


@subroutine
def _spread(
    m: int, n: int, start: int, half: float, over: float, lo: Vector, hi: Vector, P0: Vector,
    v: Vector, P: Vector,
) -> float:  # fmt: skip
    """Take the excess ``over`` of a pair's sum from entries that can give it; return the gain of
    phi."""
    gain = 0.0
    for j in range(n):
        k = start + j * m
        y = min(max(P[k] - over, lo[k]), hi[k])
        change = y - P[k]
        over += change
        gain += change * v[j] - half * change * (y + P[k] - 2.0 * P0[k])
        P[k] = y
    return gain


@kernel
def balance(
    m: int, n: int, start: int, rho: float, tolerance: float, lo: Vector, hi: Vector, P0: Vector,
    v: Vector, total: Vector, free: Vector, low: Vector, high: Vector, theta: Vector,
) -> None:  # fmt: skip
    """Move every theta[i], which [low, high] brackets, until row i of P sums to one.

    Leaves in ``total`` the excess of the sum, and in ``free`` how many entries can move.
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
    """Take a step of every theta[i] towards total[i] = 0; False if all are there.

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
    m: int, n: int, lo: Vector, hi: Vector, start: int, P: Vector, c: Vector, scratch: Vector
) -> None:
    """Project every P(.|i) of a layer, with entries in [-1, 2], in place, on its box with sum one.

    ``c`` (m + n) and ``scratch`` (4 m) hold nothing.
    """
    shift = c[:m]
    nothing = c[m : m + n]
    for j in range(n):
        nothing[j] = 0.0
    total = scratch[:m]
    free = scratch[m : 2 * m]
    low = scratch[2 * m : 3 * m]
    high = scratch[3 * m : 4 * m]
    for i in range(m):
        shift[i] = 0.0
        low[i] = -2.0
        high[i] = 2.0
    balance(m, n, start, 1.0, 1e-15, lo, hi, P, nothing, total, free, low, high, shift)
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
