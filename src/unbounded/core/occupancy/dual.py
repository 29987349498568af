"""The smoothed dual of the occupancy program and the arrays that the solvers share.

Adding ``sum x(s,a) (rho_h/2) ||P - P0||^2`` to the program (jointly convex: the perspective of a
quadratic) smooths the inner maximum,

    phi(v) = max_{P in box} <P, v> - (rho/2) ||P - P0||^2,   P = clip(P0 + (v - theta)/rho, lo, hi),

with theta the root of sum P = 1. The dual g = -sum_h w_h ln sum exp(-(L + v(s) - phi)/w_h) is then
C^1, with gradient outflow - inflow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.certificate import search
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    dots,
)


class Work(NamedTuple):
    """Views into one flat buffer; sizes: S states, X pairs, T triples, n and m largest layer."""

    L: Vector  # X: normalised losses
    w: Vector  # H + 1
    rho: Vector  # H + 1
    P: Vector  # T
    x: Vector  # X: dual softmax
    bound: Vector  # X
    slack: Vector  # X
    v_old: Vector  # S
    dv: Vector  # S
    grad: Vector  # S
    q: Vector  # S: outflow
    r: Vector  # S: inflow
    inverse: Vector  # S
    D: Vector
    E: Vector
    pair: Vector  # 6 m
    rows: Vector  # n m
    c: Vector  # max(n, m)
    best_v: Vector  # S: the best certified point
    best_theta: Vector  # X
    best_P: Vector  # T
    best_q: Vector  # X
    best_pi: Vector  # X
    q_out: Vector  # X: occupancy and policy of the last certificate
    pi_out: Vector  # X
    mass: Vector  # S
    ln_x: Vector  # n
    gap: Vector  # 4


@subroutine
def work_size(lay: Integers) -> int:
    """Length of the flat buffer that `carve` cuts."""
    H = lay.shape[1] - 2
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    n, m, d, e = _extents(lay)
    size = 9 * X + 2 * (H + 1) + 2 * T + 8 * S + d + e + 6 * m + n * m + (n + m) + n + 4
    return int(size)


@subroutine
def _extents(lay: Integers) -> tuple[int, int, int, int]:
    H = lay.shape[1] - 2
    n = 1
    m = 1
    d = 0
    e = 0
    for h in range(H + 1):
        n = max(n, lay[SIZE, h])
        m = max(m, lay[SIZE, h] * lay[ACTIONS, h])
        if h > 0:
            d += lay[SIZE, h] * lay[SIZE, h]
            if h < H:
                e += lay[SIZE, h] * lay[SIZE, h + 1]
    return n, m, d, e


@subroutine
def carve(lay: Integers, buffer: Vector) -> Work:
    """Cut the flat buffer into the solver's arrays."""
    H = lay.shape[1] - 2
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    n, m, d, e = _extents(lay)
    k = 0
    L = buffer[k : k + X]
    k += X
    w = buffer[k : k + H + 1]
    k += H + 1
    rho = buffer[k : k + H + 1]
    k += H + 1
    P = buffer[k : k + T]
    k += T
    x = buffer[k : k + X]
    k += X
    bound = buffer[k : k + X]
    k += X
    slack = buffer[k : k + X]
    k += X
    v_old = buffer[k : k + S]
    k += S
    dv = buffer[k : k + S]
    k += S
    grad = buffer[k : k + S]
    k += S
    q = buffer[k : k + S]
    k += S
    r = buffer[k : k + S]
    k += S
    inverse = buffer[k : k + S]
    k += S
    D = buffer[k : k + d]
    k += d
    E = buffer[k : k + e]
    k += e
    pair = buffer[k : k + 6 * m]
    k += 6 * m
    rows = buffer[k : k + n * m]
    k += n * m
    c = buffer[k : k + n + m]
    k += n + m
    best_v = buffer[k : k + S]
    k += S
    best_theta = buffer[k : k + X]
    k += X
    best_P = buffer[k : k + T]
    k += T
    best_q = buffer[k : k + X]
    k += X
    best_pi = buffer[k : k + X]
    k += X
    q_out = buffer[k : k + X]
    k += X
    pi_out = buffer[k : k + X]
    k += X
    mass = buffer[k : k + S]
    k += S
    ln_x = buffer[k : k + n]
    k += n
    gap = buffer[k : k + 4]
    return Work(
        L, w, rho, P, x, bound, slack, v_old, dv, grad, q, r, inverse, D, E, pair, rows, c,
        best_v, best_theta, best_P, best_q, best_pi, q_out, pi_out, mass, ln_x, gap,
    )  # fmt: skip


@subroutine
def evaluate(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, P0: Vector, theta: Vector, W: Work
) -> float:
    """Smoothed dual value; fills W's P, x, q, r, grad and moves theta."""
    H = lay.shape[1] - 2
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
        if h < H:  # P, theta and phi (into x) of the layer's pairs
            r = lay[SIZE, h + 1]
            start = lay[TRIPLE, h]
            rho = W.rho[h]
            total = W.pair[:m]
            free = W.pair[m : 2 * m]
            low = W.pair[2 * m : 3 * m]
            high = W.pair[3 * m : 4 * m]
            th = theta[p : p + m]
            vn = v[lay[STATE, h + 1] : lay[STATE, h + 1] + r]
            v_low = vn[0]
            v_high = vn[0]
            for j in range(1, r):
                v_low = min(v_low, vn[j])
                v_high = max(v_high, vn[j])
            for i in range(m):
                th[i] = min(max(th[i], v_low), v_high)
                low[i] = v_low
                high[i] = v_high
            scale = 1.0 / rho
            # (v - theta)/rho carries the rounding of v: what is left is spread over free entries
            tolerance = max(1e-12, 1e-15 * r * scale * max(abs(v_low), abs(v_high)))
            for _ in range(80):
                for i in range(m):
                    total[i] = -1.0
                    free[i] = 0.0
                for j in range(r):
                    k = start + j * m
                    a = lo[k : k + m]
                    b = hi[k : k + m]
                    p0 = P0[k : k + m]
                    vj = vn[j]
                    for i in range(m):
                        t = p0[i] + (vj - th[i]) * scale
                        y = min(max(t, a[i]), b[i])
                        total[i] += y
                        free[i] += 1.0 if y == t else 0.0
                if not search(
                    m, r, start, rho, tolerance, lo, hi, P0, vn, total, free, low, high, th
                ):
                    break
            for i in range(m):
                total[i] /= max(free[i], 1.0)
            half = 0.5 * rho
            for j in range(r):
                k = start + j * m
                a = lo[k : k + m]
                b = hi[k : k + m]
                p0 = P0[k : k + m]
                P = W.P[k : k + m]
                vj = vn[j]
                for i in range(m):
                    t = p0[i] + (vj - th[i]) * scale
                    y = min(max(t, a[i]), b[i])
                    y -= total[i] if y == t else 0.0
                    y = min(max(y, a[i]), b[i])
                    P[i] = y
                    x[i] += y * vj
                    g = y - p0[i]
                    x[i] -= half * (g * g)
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
        if h < H:
            dots(m, lay[SIZE, h + 1], x, W.P, lay[TRIPLE, h], W.r[lay[STATE, h + 1] :])
    return value
