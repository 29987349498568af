"""Solve Newton's linear systems: block tridiagonal over layers, or sparse.

**Dense.** A system has one block per layer ``1..H``: ``D_h`` (n_h, n_h) on the diagonal and ``E_h``
(n_h, n_{h+1}) above it, each stored row by row, layer after layer, in the flat arrays ``D`` and
``E``. Of ``D_h`` only the lower triangle is read. It is factored as L D L^T. There is no square
root on purpose: it would make results depend on the parity of a power-of-two scale.

**Sparse.** Over lists of the possible transitions (`sparse`) the matrix of `newton` is never
written down: a product with it goes twice over the lists, while its factors would fill up and cost
|S_h|^3. It is positive definite, so that conjugate gradients, scaled by its diagonal, give a
direction of ascent wherever they stop; and the certificate does not depend on it.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, horizon
from unbounded.core.occupancy.solver.work import Work, list_scratch
from unbounded.jit.kernel import borrowed, kernel, subroutine

_TINY_PIVOT = 1e-15  # relative to the diagonal before elimination: treated as infinite
_STARVED = 1.5  # inflow/outflow beyond which a state takes a step in the log domain
_ACCURACY = 1e-2  # of the residual, relative to the gradient
_MOST = 500  # products


@kernel
def mass_to_move(q: float, r: float) -> float:
    """Return a state's outflow, or what takes a starved one to its inflow in one step."""
    if r > _STARVED * q:
        return (r - q) / math.log(r / max(q, 1e-300))
    return q


@kernel
def slope_along(W: Work) -> float:
    """Differentiate the dual along W.dv."""
    slope = 0.0
    for k in range(1, W.grad.size):
        slope += W.grad[k] * W.dv[k]
    return slope


@subroutine
def add_gram(n: int, m: int, c: Vector, X: Vector, D: Vector) -> None:
    """Add sum_i c[i] x_i x_i^T to the lower triangle of D; row i of ``X`` (m, n), flat, is x_i."""
    m4 = m - m % 4
    for i in range(0, m4, 4):
        x0 = X[i * n : (i + 1) * n]
        x1 = X[(i + 1) * n : (i + 2) * n]
        x2 = X[(i + 2) * n : (i + 3) * n]
        x3 = X[(i + 3) * n : (i + 4) * n]
        for j in range(n):
            c0 = c[i] * x0[j]
            c1 = c[i + 1] * x1[j]
            c2 = c[i + 2] * x2[j]
            c3 = c[i + 3] * x3[j]
            row = D[j * n : (j + 1) * n]
            for k in range(j + 1):
                row[k] += (c0 * x0[k] + c1 * x1[k]) + (c2 * x2[k] + c3 * x3[k])
    for i in range(m4, m):
        x0 = X[i * n : (i + 1) * n]
        for j in range(n):
            c0 = c[i] * x0[j]
            row = D[j * n : (j + 1) * n]
            for k in range(j + 1):
                row[k] += c0 * x0[k]


@subroutine
def transpose(n: int, m: int, X: Vector, start: int, Y: Vector) -> None:
    """Set Y[i n + j] = X[start + j m + i]."""
    for j in range(n):
        x = X[start + j * m : start + (j + 1) * m]
        for i in range(m):
            Y[i * n + j] = x[i]


@subroutine
def factor(lay: Integers, D: Vector, E: Vector, inverse: Vector, c: Vector) -> None:
    """Factor in place. ``inverse`` (n_states) gets 1/pivots; ``c`` is scratch, max n_h long.

    A pivot that elimination has wiped out is taken as infinite: its variable does not move.
    """
    H = horizon(lay)
    d = 0
    e = 0
    for h in range(1, H + 1):
        n = lay[SIZE, h]
        Dh = D[d : d + n * n]
        inv = inverse[lay[STATE, h] : lay[STATE, h] + n]
        for k in range(n):
            inv[k] = max(inv[k], 0.0)  # diagonal before elimination, set by the caller
        for k in range(n):
            pivot = Dh[k * n + k]
            usable = pivot > _TINY_PIVOT * inv[k] and pivot > 1e-300
            inv[k] = 1.0 / pivot if usable else 0.0
            for i in range(k + 1, n):
                c[i] = Dh[i * n + k]
            for i in range(k + 1, n):
                f = c[i] * inv[k]
                Dh[i * n + k] = f
                row = Dh[i * n : (i + 1) * n]
                for j in range(k + 1, i + 1):
                    row[j] -= f * c[j]
        if h == H:
            break
        r = lay[SIZE, h + 1]
        Eh = E[e : e + n * r]
        for i in range(1, n):
            row = Eh[i * r : (i + 1) * r]
            for k in range(i):
                f = Dh[i * n + k]
                above = Eh[k * r : (k + 1) * r]
                for j in range(r):
                    row[j] -= f * above[j]
        for k in range(n):
            c[k] = -inv[k]
        add_gram(r, n, c, Eh, D[d + n * n : d + n * n + r * r])
        d += n * n
        e += n * r


@subroutine
def solve_factored(lay: Integers, D: Vector, E: Vector, inverse: Vector, b: Vector) -> None:
    """Overwrite ``b`` (n_states; entry 0 is not touched) by the solution of the factored system."""
    H = horizon(lay)
    d = 0
    e = 0
    for h in range(1, H + 1):
        n = lay[SIZE, h]
        x = b[lay[STATE, h] : lay[STATE, h] + n]
        for k in range(n):
            f = x[k]
            for i in range(k + 1, n):
                x[i] -= D[d + i * n + k] * f
        if h < H:
            r = lay[SIZE, h + 1]
            after = b[lay[STATE, h + 1] : lay[STATE, h + 1] + r]
            for k in range(n):
                f = x[k] * inverse[lay[STATE, h] + k]
                row = E[e + k * r : e + (k + 1) * r]
                for j in range(r):
                    after[j] -= row[j] * f
            d += n * n
            e += n * r
    for h in range(H, 0, -1):
        n = lay[SIZE, h]
        x = b[lay[STATE, h] : lay[STATE, h] + n]
        if h < H:
            r = lay[SIZE, h + 1]
            d -= n * n
            e -= n * r
            after = b[lay[STATE, h + 1] : lay[STATE, h + 1] + r]
        for k in range(n):
            f = x[k]
            if h < H:
                for j in range(lay[SIZE, h + 1]):
                    f -= E[e + k * r + j] * after[j]
            x[k] = f * inverse[lay[STATE, h] + k]
        for k in range(n - 1, -1, -1):
            f = x[k]
            row = D[d + k * n : d + k * n + k]
            for i in range(k):
                x[i] -= row[i] * f


@subroutine
def conjugate_direction(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work) -> float:
    """Solve for Newton's direction W.dv by conjugate gradients; return the slope along it."""
    lay, lo, hi, W = borrowed((lay, lo, hi, W))
    S = W.dv.size
    left = W.cg[:S]
    towards = W.cg[S : 2 * S]
    product = W.cg[2 * S :]
    free = list_scratch(W, 3)
    _diagonal(lay, lo, hi, damping, W, free)
    size = 0.0
    for s in range(S):
        W.dv[s] = 0.0
        left[s] = W.grad[s] if s > 0 else 0.0
        towards[s] = left[s] * W.inverse[s]
        size += left[s] * towards[s]
    enough = _ACCURACY * _ACCURACY * size
    for _ in range(_MOST):
        _multiply(lay, damping, free, towards, W, product)
        bend = 0.0
        for s in range(1, S):
            bend += towards[s] * product[s]
        if not bend > 0.0:
            break
        step = size / bend
        rest = 0.0
        for s in range(1, S):
            W.dv[s] += step * towards[s]
            left[s] -= step * product[s]
            rest += left[s] * left[s] * W.inverse[s]
        if not rest > enough:
            break
        for s in range(1, S):
            towards[s] = left[s] * W.inverse[s] + rest / size * towards[s]
        size = rest
    return slope_along(W)


@kernel
def _diagonal(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work, free: Vector) -> None:
    """Write 1/diagonal to W.inverse, which entries are free, and 1/their number to W.slack."""
    W.inverse[0] = 0.0
    for h in range(1, horizon(lay) + 1):
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            W.inverse[s] = (mass_to_move(W.q[s], W.r[s]) + damping) / W.w[h]
    for h in range(horizon(lay)):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            count = 0.0
            for k in range(W.begin[p], W.begin[p + 1]):
                free[k] = 1.0 if lo[k] < W.P[k] < hi[k] else 0.0
                count += free[k]
            W.slack[p] = 1.0 / max(count, 1.0)
            pull = W.x[p] / W.rho[h] * (1.0 - W.slack[p])
            for k in range(W.begin[p], W.begin[p + 1]):
                W.inverse[W.to[k]] += W.x[p] * W.P[k] * W.P[k] / W.w[h] + pull * free[k]
    for s in range(1, W.inverse.size):
        W.inverse[s] = 1.0 / W.inverse[s] if W.inverse[s] > 1e-300 else 0.0


@subroutine
def _multiply(lay: Integers, damping: float, free: Vector, z: Vector, W: Work, y: Vector) -> None:
    """Set y = M z."""
    lay, free, z, W, y = borrowed((lay, free, z, W, y))
    H = horizon(lay)
    y[0] = 0.0
    for h in range(1, H + 1):
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            y[s] = (mass_to_move(W.q[s], W.r[s]) - W.q[s] + damping) / W.w[h] * z[s]
    for h in range(H + 1):
        A = lay[ACTIONS, h]
        out = 0.0  # of q, and of r, with z
        into = 0.0
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            out += W.q[s] * z[s]
        for s in range(lay[STATE, h + 1], lay[STATE, h + 2] if h < H else 0):
            into += W.r[s] * z[s]
        for s in range(lay[SIZE, h]):
            at = lay[STATE, h] + s
            y[at] += W.q[at] * into / W.w[h] if h > 0 else 0.0
            for p in range(lay[PAIR, h] + s * A, lay[PAIR, h] + s * A + A):
                mean = 0.0
                middle = 0.0
                for k in range(W.begin[p], W.begin[p + 1]):
                    mean += W.P[k] * z[W.to[k]]
                    middle += free[k] * z[W.to[k]]
                middle *= W.slack[p]
                push = W.x[p] / W.w[h] * (mean - z[at])
                pull = W.x[p] / W.rho[h]
                y[at] -= push if h > 0 else 0.0
                for k in range(W.begin[p], W.begin[p + 1]):
                    y[W.to[k]] += push * W.P[k] + pull * free[k] * (z[W.to[k]] - middle)
        if h > 0:
            for s in range(lay[STATE, h + 1], lay[STATE, h + 2] if h < H else 0):
                y[s] += W.r[s] * out / W.w[h]
