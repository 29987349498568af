"""Symmetric block-tridiagonal systems over layers, factored as L D L^T without square roots.

A system has one block per layer ``1..H``: ``D_h`` (n_h, n_h) on the diagonal and ``E_h``
(n_h, n_{h+1}) above it, each stored row by row, layer after layer, in the flat arrays ``D`` and
``E``. Of ``D_h`` only the lower triangle is read. There is no square root on purpose: it would
make results depend on the parity of a power-of-two scale.
"""

from __future__ import annotations

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import SIZE, STATE, horizon
from unbounded.jit.kernel import subroutine

_TINY_PIVOT = 1e-15  # relative to the diagonal before elimination: treated as infinite


@subroutine
def add_gram(n: int, m: int, c: Vector, X: Vector, D: Vector) -> None:
    """D += sum_i c[i] x_i x_i^T, lower triangle; row i of ``X`` (m, n), flat, is x_i."""
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
    """Y[i n + j] = X[start + j m + i]."""
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
def solve(lay: Integers, D: Vector, E: Vector, inverse: Vector, b: Vector) -> None:
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
