"""Solve a linear system of the interior point method by elimination pair by pair.

In the notation of `interior_point`, with D1 = alpha/a, D2 = beta/b, d = D1 + D2,
e = (lo D1 + hi D2)/d, W = sum 1/d and delta = 1 - sum e for each pair, elimination leaves in dv

    M = sum (1/K)(e_s - p)(e_s - p)^T + sum [ diag(1/d) - (1/d)(1/d)^T/W ],
    p = e + (delta/W)/d  (sums to one),   K = (w + z)/x + sum D1 D2 (hi - lo)^2/d + delta^2/W,

block tridiagonal over the layers. An upper bound hi = 1 is implied and dropped (D2 = 0); an entry
with hi = lo, and a pair whose box is a point, are eliminated (1/d = 0). x(s_0) = 1 is a constant,
and so is x = 0 of a pair that can have no mass (1/K = 0).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, horizon
from unbounded.core.occupancy.solver.linear_algebra import (
    add_gram,
    factor,
    solve_factored,
    transpose,
)
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import kernel, section, subroutine

BOXED, PINNED, OPEN = 0.0, 1.0, 2.0  # an entry: both bounds, eliminated, no upper bound
AT_LO, AT_HI, SEVERAL = 1.0, -1.0, 0.0  # a pair: P = lo is the only choice, P = hi is, neither
DEAD = 2.0  # a pair that can have no mass


class Iterate(NamedTuple):
    """Name the iterate, its direction and the quantities of the elimination.

    Of the predictor only products of directions are needed further: they take the directions'
    place, and so do other quantities that are never needed at once.
    """

    entry: Vector  # triples: BOXED, PINNED or OPEN
    a: Vector  # triples; P of an entry that is PINNED
    b: Vector
    alpha: Vector
    beta: Vector
    da: Vector
    db: Vector
    dalpha: Vector
    dbeta: Vector
    inv_d: Vector
    p: Vector  # triples: e, then p
    t: Vector  # in the place of dalpha
    ca: Vector  # da dalpha of the predictor, in the place of da
    cb: Vector  # likewise
    point: Vector  # pairs: AT_LO, AT_HI, SEVERAL or DEAD
    x: Vector
    z: Vector
    theta: Vector
    dx: Vector
    dz: Vector
    dtheta: Vector
    inv_K: Vector
    inv_W: Vector
    ratio: Vector  # delta/W
    R: Vector
    rs: Vector  # x - sum y
    tsum: Vector
    cz: Vector  # dx dz of the predictor, in the place of dz
    ce: Vector  # of the entropy, in the place of dx
    v: Vector  # states
    dv: Vector


@kernel
def _part(scratch: Vector, size: int, i: int) -> Vector:
    return section(scratch, i * size, (i + 1) * size)


@subroutine
def new_iterate(lay: Integers, W: Work) -> Iterate:
    """Cut an iterate of zeros out of the work arrays."""
    X = lay[PAIR, -1]
    T = lay[TRIPLE, -1]
    Z = W.triples
    Y = W.pairs
    Z[:] = 0.0
    Y[:] = 0.0
    W.x[:] = 0.0
    W.v_old[:] = 0.0
    W.dv[:] = 0.0
    da = _part(Z, T, 5)
    db = _part(Z, T, 6)
    dalpha = _part(Z, T, 7)
    dx = _part(Y, X, 3)
    dz = _part(Y, X, 4)
    return Iterate(
        entry=_part(Z, T, 0), a=_part(Z, T, 1), b=_part(Z, T, 2), alpha=_part(Z, T, 3),
        beta=_part(Z, T, 4), da=da, db=db, dalpha=dalpha, dbeta=_part(Z, T, 8),
        inv_d=_part(Z, T, 9), p=W.P, t=dalpha, ca=da, cb=db,
        point=_part(Y, X, 0), x=W.x, z=_part(Y, X, 1), theta=_part(Y, X, 2), dx=dx, dz=dz,
        dtheta=_part(Y, X, 5), inv_K=_part(Y, X, 6), inv_W=_part(Y, X, 7), ratio=_part(Y, X, 8),
        R=_part(Y, X, 9), rs=W.bound, tsum=W.slack, cz=dz, ce=dx, v=W.v_old, dv=W.dv,
    )  # fmt: skip


@subroutine
def eliminate(lay: Integers, lo: Vector, hi: Vector, it: Iterate, W: Work) -> None:
    """Eliminate pair by pair; assemble and factor the Schur complement."""
    H = horizon(lay)
    for k in range(W.D.size):
        W.D[k] = 0.0
    d0 = 0
    e0 = 0
    for h in range(H + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        m = n * A
        p0 = lay[PAIR, h]
        r = lay[SIZE, h + 1]
        t0 = lay[TRIPLE, h]
        wsum = W.pair[:m]
        esum = W.pair[m : 2 * m]
        ksum = W.pair[2 * m : 3 * m]
        for i in range(m):
            wsum[i] = 0.0
            esum[i] = 0.0
            ksum[i] = 0.0
        if h < H:
            for j in range(r):
                k = t0 + j * m
                for i in range(m):
                    f = k + i
                    if it.entry[f] == PINNED:
                        it.inv_d[f] = 0.0
                        it.p[f] = it.a[f]
                    else:
                        D1 = it.alpha[f] / it.a[f]
                        if it.entry[f] == OPEN:
                            it.inv_d[f] = 1.0 / D1
                            it.p[f] = lo[f]
                        else:
                            D2 = it.beta[f] / it.b[f]
                            g = 1.0 / (D1 + D2)
                            it.inv_d[f] = g
                            it.p[f] = (lo[f] * D1 + hi[f] * D2) * g
                            width = hi[f] - lo[f]
                            ksum[i] += D1 * (D2 * g) * (width * width)
                        wsum[i] += it.inv_d[f]
                    esum[i] += it.p[f]
        for i in range(m):
            p = p0 + i
            delta = 1.0 - esum[i]
            if wsum[i] > 0.0:
                it.ratio[p] = delta / wsum[i]
                it.inv_W[p] = 1.0 / wsum[i]
            else:
                it.ratio[p] = 0.0
                it.inv_W[p] = 0.0
            if h == 0 or it.point[p] == DEAD:
                it.inv_K[p] = 0.0
            else:
                K = (W.w[h] + it.z[p]) / it.x[p] + ksum[i] + (delta * it.ratio[p] if h < H else 0.0)
                it.inv_K[p] = 1.0 / K
        if h > 0:
            for s in range(n):
                g = 0.0
                for i in range(s * A, s * A + A):
                    g += it.inv_K[p0 + i]
                W.D[d0 + s * n + s] += g
        if h == H:
            break
        after = d0 + n * n if h > 0 else 0
        Dn = W.D[after : after + r * r]
        for j in range(r):
            k = t0 + j * m
            g = 0.0
            for i in range(m):
                it.p[k + i] = it.p[k + i] + it.ratio[p0 + i] * it.inv_d[k + i]
                g += it.inv_d[k + i]
            Dn[j * r + j] += g
        transpose(r, m, it.p, t0, W.rows)
        for i in range(m):
            W.c[i] = it.inv_K[p0 + i]
        add_gram(r, m, W.c, W.rows, Dn)
        transpose(r, m, it.inv_d, t0, W.rows)
        for i in range(m):
            W.c[i] = -it.inv_W[p0 + i]
        add_gram(r, m, W.c, W.rows, Dn)
        if h > 0:
            for s in range(n):
                for j in range(r):
                    g = 0.0
                    for i in range(s * A, s * A + A):
                        g -= it.inv_K[p0 + i] * it.p[t0 + j * m + i]
                    W.E[e0 + s * r + j] = g
            e0 += n * r
            d0 += n * n
    d0 = 0
    for h in range(1, H + 1):
        n = lay[SIZE, h]
        for s in range(n):
            W.inverse[lay[STATE, h] + s] = W.D[d0 + s * n + s]
        d0 += n * n
    factor(lay, W.D, W.E, W.inverse, W.c)


@subroutine
def direction(lay: Integers, lo: Vector, hi: Vector, it: Iterate, W: Work, sigma_mu: float) -> None:
    """Set up the right-hand side for the target sigma_mu, and solve for dv."""
    H = horizon(lay)
    S = lay[STATE, H + 1]
    for k in range(S):
        it.dv[k] = 0.0
    for h in range(H + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        m = n * A
        p0 = lay[PAIR, h]
        t0 = lay[TRIPLE, h]
        for s in range(n):
            for i in range(s * A, s * A + A):
                p = p0 + i
                it.R[p] = it.theta[p]
                if h > 0 and it.point[p] != DEAD:
                    it.R[p] += (
                        (sigma_mu - it.cz[p]) / it.x[p]
                        - (W.L[p] + W.w[h] * (math.log(it.x[p]) + 1.0) + it.v[lay[STATE, h] + s])
                        + it.ce[p]
                    )
                it.rs[p] = it.x[p] if h < H else 0.0
                it.tsum[p] = 0.0
        if h < H:
            for j in range(lay[SIZE, h + 1]):
                k = t0 + j * m
                vj = it.v[lay[STATE, h + 1] + j]
                into = 0.0
                for i in range(m):
                    f = k + i
                    p = p0 + i
                    y = it.a[f] * it.x[p]
                    it.t[f] = vj - it.theta[p]
                    if it.entry[f] != PINNED:
                        ga = (sigma_mu - it.ca[f]) / it.a[f]
                        gb = (sigma_mu - it.cb[f]) / it.b[f] if it.entry[f] == BOXED else 0.0
                        it.R[p] += hi[f] * gb - lo[f] * ga
                        it.t[f] += ga - gb
                        y = lo[f] * it.x[p] + it.a[f]
                        it.tsum[p] += it.t[f] * it.inv_d[f]
                    it.rs[p] -= y
                    into += y
                it.dv[lay[STATE, h + 1] + j] -= into
            for j in range(lay[SIZE, h + 1]):
                k = t0 + j * m
                for i in range(m):
                    it.R[p0 + i] += it.p[k + i] * it.t[k + i]
        for i in range(m):
            p = p0 + i
            # rs = x - sum y must become 0: sum dy = dx + rs
            it.R[p] -= it.ratio[p] * it.rs[p]
        if h > 0:
            for s in range(n):
                g = 0.0
                for i in range(s * A, s * A + A):
                    g += it.x[p0 + i] + it.R[p0 + i] * it.inv_K[p0 + i]
                it.dv[lay[STATE, h] + s] += g
        if h < H:
            for j in range(lay[SIZE, h + 1]):
                k = t0 + j * m
                g = 0.0
                for i in range(m):
                    f = k + i
                    p = p0 + i
                    g += (
                        it.p[f] * (it.R[p] * it.inv_K[p])
                        + (it.t[f] - (it.tsum[p] - it.rs[p]) * it.inv_W[p]) * it.inv_d[f]
                    )
                it.dv[lay[STATE, h + 1] + j] -= g
    it.dv[0] = 0.0
    solve_factored(lay, W.D, W.E, W.inverse, it.dv)


@subroutine
def back_substitute(lay: Integers, lo: Vector, hi: Vector, it: Iterate, sigma_mu: float) -> float:
    """Find the other directions from dv; return the longest feasible step."""
    H = horizon(lay)
    step = 1.0
    for h in range(H + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        m = n * A
        p0 = lay[PAIR, h]
        t0 = lay[TRIPLE, h]
        for s in range(n):
            for i in range(s * A, s * A + A):
                p = p0 + i
                it.dx[p] = it.R[p] - (it.dv[lay[STATE, h] + s] if h > 0 else 0.0)
                it.dtheta[p] = it.tsum[p] - it.rs[p]
        if h < H:
            for j in range(lay[SIZE, h + 1]):
                k = t0 + j * m
                g = it.dv[lay[STATE, h + 1] + j]
                for i in range(m):
                    it.dx[p0 + i] += it.p[k + i] * g
                    it.dtheta[p0 + i] += g * it.inv_d[k + i]
        for i in range(m):
            p = p0 + i
            it.dx[p] *= it.inv_K[p]
            it.dtheta[p] = it.dtheta[p] * it.inv_W[p] - it.ratio[p] * it.dx[p]
            if h > 0 and it.point[p] != DEAD:
                it.dz[p] = (sigma_mu - it.cz[p]) / it.x[p] - it.z[p] - it.z[p] / it.x[p] * it.dx[p]
                if it.dx[p] < 0.0:
                    step = min(step, -it.x[p] / it.dx[p])
                if it.dz[p] < 0.0:
                    step = min(step, -it.z[p] / it.dz[p])
        if h < H:
            for j in range(lay[SIZE, h + 1]):
                k = t0 + j * m
                g = it.dv[lay[STATE, h + 1] + j]
                for i in range(m):
                    f = k + i
                    p = p0 + i
                    if it.entry[f] == PINNED:
                        continue
                    move = (g + it.t[f] - it.dtheta[p]) * it.inv_d[f]
                    D1 = it.alpha[f] / it.a[f]
                    width = hi[f] - lo[f]
                    if it.entry[f] == BOXED:
                        D2 = it.beta[f] / it.b[f]
                        move += D2 * width * it.inv_d[f] * it.dx[p]
                        second = it.cb[f]
                        it.db[f] = width * it.dx[p] - move
                        it.dbeta[f] = (sigma_mu - second) / it.b[f] - it.beta[f] - D2 * it.db[f]
                        if it.db[f] < 0.0:
                            step = min(step, -it.b[f] / it.db[f])
                        if it.dbeta[f] < 0.0:
                            step = min(step, -it.beta[f] / it.dbeta[f])
                    it.dalpha[f] = (sigma_mu - it.ca[f]) / it.a[f] - it.alpha[f] - D1 * move
                    it.da[f] = move
                    if move < 0.0:
                        step = min(step, -it.a[f] / move)
                    if it.dalpha[f] < 0.0:
                        step = min(step, -it.alpha[f] / it.dalpha[f])
    return step
