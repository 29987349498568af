"""The dual of the mirror-descent step, which is smooth, and its Newton matrix.

    phi(v) = max_{P in box} <P, v> - w KL(P||P0),    P = clip(P0 exp((v - theta)/w), lo, hi).

A pair's scale exp(-theta/w) is the root of a piecewise linear function, found as in the pair
program. The curvature of phi is (1/w)(diag P_F - P_F P_F^T/sum P_F) over the free entries F.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, dots, horizon
from unbounded.core.occupancy.solver import block_tridiagonal as blocktri
from unbounded.core.occupancy.solver.ascent import couple, mass_to_move
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import borrowed, subroutine

_FAR = 1e100  # a pair's scale is looked for within this factor at a time
_STEEP = 600.0  # exponents of e are kept within this


@subroutine
def evaluate(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, ln_P: Vector, theta: Vector, W: Work
) -> float:
    """Dual value; fills W's P, x, bound, q, r, grad and theta. W.L has -w ln x0 in it."""
    lay, lo, hi, v, ln_P, theta, W = borrowed((lay, lo, hi, v, ln_P, theta, W))
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
        wh = W.w[h]
        if h < H:
            _inner(lay, h, lo, hi, v, ln_P, wh, theta, W)
        else:
            for i in range(m):
                W.bound[p + i] = 0.0
        x = W.x[p : p + m]
        if h == 0:
            value -= W.bound[0]
            x[0] = 1.0
        else:
            least = math.inf
            for s in range(n):
                vs = v[lay[STATE, h] + s]
                for i in range(s * A, s * A + A):
                    x[i] = W.L[p + i] + vs - W.bound[p + i]
                    least = min(least, x[i])
            z = 0.0
            for i in range(m):
                x[i] = math.exp((least - x[i]) / wh)
                z += x[i]
            value += least - wh * math.log(z)
            for s in range(n):
                t = 0.0
                for i in range(s * A, s * A + A):
                    x[i] /= z
                    t += x[i]
                k = lay[STATE, h] + s
                W.q[k] = t
                W.grad[k] = t - W.r[k]
        if h < H:
            dots(m, lay[SIZE, h + 1], x, W.P, lay[TRIPLE, h], W.r[lay[STATE, h + 1] :])
    return value


@subroutine
def _inner(
    lay: Integers, h: int, lo: Vector, hi: Vector, v: Vector, ln_P: Vector, wh: float,
    theta: Vector, W: Work,
) -> None:  # fmt: skip
    """P, theta and bound = phi(v) of the pairs of layer h."""
    lay, lo, hi, v, ln_P, theta, W = borrowed((lay, lo, hi, v, ln_P, theta, W))
    m = lay[SIZE, h] * lay[ACTIONS, h]
    n = lay[SIZE, h + 1]
    vn = v[lay[STATE, h + 1] : lay[STATE, h + 1] + n]
    top = vn[0]
    for j in range(1, n):
        top = max(top, vn[j])
    e = W.c[:n]
    for i in range(m):
        k = lay[TRIPLE, h] + i
        tau = (theta[lay[PAIR, h] + i] - top) / wh
        s = 1.0
        for _ in range(100):
            for j in range(n):
                t = ln_P[k + j * m] + (vn[j] - top) / wh - tau
                e[j] = math.exp(min(max(t, -_STEEP), _STEEP))
            s = _scale(m, n, lo[k:], hi[k:], e)
            tau -= math.log(s)
            if 2.0 / _FAR < s < 0.5 * _FAR:
                break
        th = top + wh * tau
        theta[lay[PAIR, h] + i] = th
        phi = th - wh  # the sum of w P0 is w
        for j in range(n):
            f = k + j * m
            y = e[j] * s
            if lo[f] < y and (y < hi[f] or hi[f] >= 1.0):
                phi += wh * y
            else:
                y = min(max(y, lo[f]), hi[f])
                if y > 0.0:
                    phi += y * (vn[j] - th - wh * (math.log(y) - ln_P[f]) + wh)
            W.P[f] = min(y, hi[f])
        W.bound[lay[PAIR, h] + i] = phi


@subroutine
def _scale(m: int, n: int, lo: Vector, hi: Vector, e: Vector) -> float:
    """s in (1/_FAR, _FAR) with sum_j clip(e_j s, lo_j, hi_j) = 1, or the end that is nearer to it.

    The sum is piecewise linear and increasing; entry j of the boxes is at j m. That hi_j = 1 binds
    no entry, here and below: one that is 1 to rounding leaves the rest free to move by factors.
    """
    low = 1.0 / _FAR
    high = _FAR
    s = 1.0
    for _ in range(200):
        free = 0.0
        fixed = 0.0
        for j in range(n):
            t = e[j] * s
            if t <= lo[j * m]:
                fixed += lo[j * m]
            elif t >= hi[j * m] and hi[j * m] < 1.0:
                fixed += hi[j * m]
            else:
                free += t
        r = free + fixed - 1.0
        if abs(r) <= 1e-15 * n:
            break
        if r > 0.0:
            high = s
        else:
            low = s
        t = s * (1.0 - fixed) / free if free > 0.0 else -1.0
        if not low < t < high:
            t = math.sqrt(low * high)
        if t == s:
            break
        s = t
    return s


@subroutine
def assemble(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work) -> None:
    """Newton matrix of the smooth dual into W.D, W.E; its diagonal into W.inverse.

    ``damping`` is relative to the mass of a state, so that steps do not depend on that.
    """
    lay, lo, hi, W = borrowed((lay, lo, hi, W))
    H = horizon(lay)
    for k in range(W.D.size):
        W.D[k] = 0.0
    d = 0
    e = 0
    for h in range(H + 1):
        n = lay[SIZE, h]
        scale = 1.0 / W.w[h]
        if h > 0:
            for s in range(n):
                at = lay[STATE, h] + s
                k = d + s * n + s
                W.D[k] += max((1.0 + damping) * mass_to_move(W.q[at], W.r[at]), 1e-300) * scale
                W.inverse[at] = W.D[k]
        if h == H:
            break
        m = n * lay[ACTIONS, h]
        r = lay[SIZE, h + 1]
        after = d + n * n if h > 0 else 0
        block = W.D[after : after + r * r]
        couple(lay, h, e, block, W)
        for i in range(m):  # curvature of phi: keep the free entries of each row
            free = 0.0
            for j in range(r):
                f = lay[TRIPLE, h] + j * m + i
                if lo[f] < W.P[f] and (W.P[f] < hi[f] or hi[f] >= 1.0):
                    free += W.P[f]
                    block[j * r + j] += W.c[i] * W.P[f]
                else:
                    W.rows[i * r + j] = 0.0
            W.c[i] = -W.c[i] / free if free > 0.0 else 0.0
        blocktri.add_gram(r, m, W.c, W.rows, block)
        d = after
        e += n * r if h > 0 else 0
