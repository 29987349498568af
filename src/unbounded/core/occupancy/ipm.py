"""Cold solver: a structured primal-dual interior point method.

Variables x (pairs) and y = x P (triples) with slacks a = y - lo x, b = hi x - y and multipliers
alpha, beta, z of a, b, x >= 0, theta of sum_j y_j = x, v of the flow constraints:

    L + w (ln x + 1) + v(s) - theta + sum_j (lo alpha - hi beta) - z = 0,
    theta - v_j - alpha + beta = 0.

Per pair, with D1 = alpha/a, D2 = beta/b, d = D1 + D2, e = (lo D1 + hi D2)/d, W = sum 1/d and
delta = 1 - sum e, elimination leaves in dv

    M = sum (1/K)(e_s - p)(e_s - p)^T + sum [ diag(1/d) - (1/d)(1/d)^T/W ],
    p = e + (delta/W)/d  (sums to one),   K = (w + z)/x + sum D1 D2 (hi - lo)^2/d + delta^2/W,

block tridiagonal over the layers. Mehrotra's predictor-corrector with one common step length. An
upper bound hi = 1 is implied and dropped (D2 = 0); an entry with hi = lo, and a pair whose box
is a point, are eliminated (1/d = 0). x(s_0) = 1 is a constant.
"""

from __future__ import annotations

import math

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy import blocktri
from unbounded.core.occupancy.certificate import bounds, certify, project
from unbounded.core.occupancy.dual import Work
from unbounded.core.occupancy.iterate import Iterate, start
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    condition,
)

MAX_ITERATIONS = 120


@subroutine
def _eliminate(lay: Integers, lo: Vector, hi: Vector, it: Iterate, W: Work) -> None:
    """Per-pair elimination; assembles and factors the Schur complement."""
    H = lay.shape[1] - 2
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
                    if it.pinned[f] == 1.0:
                        it.inv_d[f] = 0.0
                        it.e[f] = it.Pc[f]
                    else:
                        D1 = it.alpha[f] / it.a[f]
                        if it.pinned[f] == 2.0:
                            it.inv_d[f] = 1.0 / D1
                            it.e[f] = lo[f]
                        else:
                            D2 = it.beta[f] / it.b[f]
                            g = 1.0 / (D1 + D2)
                            it.inv_d[f] = g
                            it.e[f] = (lo[f] * D1 + hi[f] * D2) * g
                            width = hi[f] - lo[f]
                            ksum[i] += D1 * (D2 * g) * (width * width)
                        wsum[i] += it.inv_d[f]
                    esum[i] += it.e[f]
        for i in range(m):
            p = p0 + i
            delta = 1.0 - esum[i]
            if wsum[i] > 0.0:
                it.ratio[p] = delta / wsum[i]
                it.inv_W[p] = 1.0 / wsum[i]
            else:
                it.ratio[p] = 0.0
                it.inv_W[p] = 0.0
            if h == 0:
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
                it.p[k + i] = it.e[k + i] + it.ratio[p0 + i] * it.inv_d[k + i]
                g += it.inv_d[k + i]
            Dn[j * r + j] += g
        blocktri.transpose(r, m, it.p, t0, it.rows)
        for i in range(m):
            it.c[i] = it.inv_K[p0 + i]
        blocktri.add_gram(r, m, it.c, it.rows, Dn)
        blocktri.transpose(r, m, it.inv_d, t0, it.rows)
        for i in range(m):
            it.c[i] = -it.inv_W[p0 + i]
        blocktri.add_gram(r, m, it.c, it.rows, Dn)
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
    blocktri.factor(lay, W.D, W.E, W.inverse, W.c)


@subroutine
def _direction(
    lay: Integers, lo: Vector, hi: Vector, it: Iterate, W: Work, sigma_mu: float
) -> None:
    """Right-hand side for the target sigma_mu; solves for dv."""
    H = lay.shape[1] - 2
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
                if h > 0:
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
                    y = it.Pc[f] * it.x[p]
                    it.t[f] = vj - it.theta[p]
                    if it.pinned[f] != 1.0:
                        ga = (sigma_mu - it.ca[f]) / it.a[f]
                        gb = (sigma_mu - it.cb[f]) / it.b[f] if it.pinned[f] == 0.0 else 0.0
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
    blocktri.solve(lay, W.D, W.E, W.inverse, it.dv)


@subroutine
def _back_substitute(lay: Integers, lo: Vector, hi: Vector, it: Iterate, sigma_mu: float) -> float:
    """The other directions from dv; returns the longest feasible step."""
    H = lay.shape[1] - 2
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
            if h > 0:
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
                    if it.pinned[f] == 1.0:
                        continue
                    move = (g + it.t[f] - it.dtheta[p]) * it.inv_d[f]
                    D1 = it.alpha[f] / it.a[f]
                    width = hi[f] - lo[f]
                    if it.pinned[f] == 0.0:
                        D2 = it.beta[f] / it.b[f]
                        move += D2 * width * it.inv_d[f] * it.dx[p]
                        it.db[f] = width * it.dx[p] - move
                        it.dbeta[f] = (sigma_mu - it.cb[f]) / it.b[f] - it.beta[f] - D2 * it.db[f]
                        if it.db[f] < 0.0:
                            step = min(step, -it.b[f] / it.db[f])
                        if it.dbeta[f] < 0.0:
                            step = min(step, -it.beta[f] / it.dbeta[f])
                    it.da[f] = move
                    it.dalpha[f] = (sigma_mu - it.ca[f]) / it.a[f] - it.alpha[f] - D1 * move
                    if move < 0.0:
                        step = min(step, -it.a[f] / move)
                    if it.dalpha[f] < 0.0:
                        step = min(step, -it.alpha[f] / it.dalpha[f])
    return step


@subroutine
def _centre(lay: Integers, it: Iterate, W: Work, step: float, count: int) -> float:
    """Mehrotra's target and second-order terms from the predictor."""
    H = lay.shape[1] - 2
    T = lay[TRIPLE, H + 1]
    now = 0.0
    ahead = 0.0
    for f in range(T):
        if it.pinned[f] != 1.0:
            now += it.a[f] * it.alpha[f]
            ahead += (it.a[f] + step * it.da[f]) * (it.alpha[f] + step * it.dalpha[f])
            it.ca[f] = it.da[f] * it.dalpha[f]
            if it.pinned[f] == 0.0:
                now += it.b[f] * it.beta[f]
                ahead += (it.b[f] + step * it.db[f]) * (it.beta[f] + step * it.dbeta[f])
                it.cb[f] = it.db[f] * it.dbeta[f]
    for h in range(1, H + 1):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            now += it.x[p] * it.z[p]
            ahead += (it.x[p] + step * it.dx[p]) * (it.z[p] + step * it.dz[p])
            it.cz[p] = it.dx[p] * it.dz[p]
            g = min(abs(it.dx[p] / it.x[p]), 1.0)
            it.ce[p] = 0.5 * W.w[h] * g * g
    mu = now / count
    return mu * (max(ahead, 0.0) / now) ** 3


@subroutine
def _advance(lay: Integers, it: Iterate, step: float) -> float:
    """Take the step; returns the sum of the complementarity products."""
    S = lay[STATE, -1]
    X = lay[PAIR, -1]
    T = lay[TRIPLE, -1]
    for p in range(1, X):
        it.x[p] += step * it.dx[p]
        it.z[p] += step * it.dz[p]
    for p in range(X):
        it.theta[p] += step * it.dtheta[p]
    for k in range(1, S):
        it.v[k] += step * it.dv[k]
    gap_now = 0.0
    for f in range(T):
        if it.pinned[f] != 1.0:
            it.a[f] += step * it.da[f]
            it.alpha[f] += step * it.dalpha[f]
            gap_now += it.a[f] * it.alpha[f]
            if it.pinned[f] == 0.0:
                it.b[f] += step * it.db[f]
                it.beta[f] += step * it.dbeta[f]
                gap_now += it.b[f] * it.beta[f]
    for p in range(1, X):
        gap_now += it.x[p] * it.z[p]
    return gap_now


@subroutine
def _read_off(lay: Integers, lo: Vector, hi: Vector, it: Iterate, W: Work) -> None:
    """P = y/x projected on the boxes, theta of eliminated pairs; bounds and slacks into W."""
    H = lay.shape[1] - 2
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for j in range(lay[SIZE, h + 1]):
            for i in range(m):
                f = lay[TRIPLE, h] + j * m + i
                W.P[f] = (
                    it.Pc[f] if it.pinned[f] == 1.0 else lo[f] + it.a[f] / it.x[lay[PAIR, h] + i]
                )
        project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], W.P, it.c, W.pair)

    for h in range(H):  # theta of a pair whose box is a point makes its slack vanish
        low = math.inf
        high = -math.inf
        for k in range(lay[STATE, h + 1], lay[STATE, h + 2]):
            low = min(low, it.v[k])
            high = max(high, it.v[k])
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if it.point[p] != 0.0:
                it.theta[p] = high if it.point[p] > 0.0 else low
    bounds(lay, lo, hi, it.v, it.theta, W.P, W.bound, W.slack)


@subroutine
def interior_point(
    lay: Integers, lo: Vector, hi: Vector, goal: float, best: float, W: Work
) -> tuple[float, int]:
    """Solve from nothing, until a certified gap is <= ``goal``.

    Returns the best gap and the number of iterations; the point that attains it is in W.best_*,
    as after `newton`. Keeps the better of the primal and of the dual policy: with tiny weights
    either may be the poorer.
    """
    it, count = start(lay, lo, hi, W)
    stalled = 0
    iterations = 0
    while iterations < MAX_ITERATIONS and stalled <= 6:
        iterations += 1
        _eliminate(lay, lo, hi, it, W)
        for f in range(it.ca.size):
            it.ca[f] = 0.0
            it.cb[f] = 0.0
        for p in range(it.cz.size):
            it.cz[p] = 0.0
            it.ce[p] = 0.0
        _direction(lay, lo, hi, it, W, 0.0)
        step = _back_substitute(lay, lo, hi, it, 0.0)
        sigma_mu = _centre(lay, it, W, step, count)
        _direction(lay, lo, hi, it, W, sigma_mu)
        step = min(1.0, 0.995 * _back_substitute(lay, lo, hi, it, sigma_mu))
        if not step > 1e-12:
            stalled += 3
        left = _advance(lay, it, step)
        if not left < math.inf:
            break
        if left > 1e3 * goal + 1e-6 * W.w[0] and stalled == 0:
            continue
        _read_off(lay, lo, hi, it, W)
        before = best
        for given in range(2):
            if given == 1:
                condition(lay, it.x, W.pi_out)
            gap = certify(
                lay, W.L, W.w, it.v, W.P, W.bound, W.slack, given == 1, W.pi_out, W.q_out, W.mass,
                W.ln_x, W.gap,
            )  # fmt: skip
            if gap < best:
                best = gap
                W.gap[2] = W.gap[0]
                W.gap[3] = W.gap[1]
                W.best_v[:] = it.v
                W.best_theta[:] = it.theta
                W.best_P[:] = W.P
                W.best_q[:] = W.q_out
                W.best_pi[:] = W.pi_out
        if best <= goal:
            break
        if not best <= 0.5 * before:
            stalled += 1
    return best, iterations
