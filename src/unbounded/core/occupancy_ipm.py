"""Cold solver: a structured primal-dual interior point method.

Variables x (pairs) and y = x P (triples) with slacks a = y - lo x, b = hi x - y and multipliers
alpha, beta, z of a, b, x >= 0, theta of sum_j y_j = x, v of the flow constraints:

    L + w (ln x + 1) + v(s) - theta + sum_j (lo alpha - hi beta) - z = 0,   theta - v_j - alpha + beta = 0.

Per pair, with D1 = alpha/a, D2 = beta/b, d = D1 + D2, e = (lo D1 + hi D2)/d, W = sum 1/d and
delta = 1 - sum e, elimination leaves in dv

    M = sum (1/K)(e_s - p)(e_s - p)^T + sum [ diag(1/d) - (1/d)(1/d)^T/W ],
    p = e + (delta/W)/d  (sums to one),   K = (w + z)/x + sum D1 D2 (hi - lo)^2/d + delta^2/W,

block tridiagonal over the layers. Mehrotra's predictor-corrector with one common step length. An
upper bound hi = 1 is implied and dropped (b = 0 D2); an entry with hi = lo, and a pair whose box
is a point, are eliminated (1/d = 0). x(s_0) = 1 is a constant.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded._jit import kernel
from unbounded.core import blocktri
from unbounded.core.layered import Integers, Vector, roll_forward
from unbounded.core.occupancy_certificate import bounds, certify, project
from unbounded.core.occupancy_ssn import Work

MAX_ITERATIONS = 120
_POINT = 1e-13  # a box narrower than this is a point


@kernel
def interior(lay: Integers, lo: Vector, hi: Vector, P: Vector) -> None:
    """P = lo + t (hi - lo) with sum one: the middle of every box."""
    for h in range(lay.shape[1] - 2):
        m = lay[0, h] * lay[1, h]
        n = lay[0, h + 1]
        for i in range(m):
            k = lay[4, h] + i
            low = 0.0
            high = 0.0
            for j in range(n):
                low += lo[k + j * m]
                high += hi[k + j * m]
            t = (1.0 - low) / (high - low) if high > low else 0.0
            t = min(max(t, 0.0), 1.0)
            for j in range(n):
                P[k + j * m] = lo[k + j * m] + t * (hi[k + j * m] - lo[k + j * m])


@kernel
def interior_point(
    lay: Integers, lo: Vector, hi: Vector, goal: float, v: Vector, theta: Vector, P: Vector, W: Work
) -> tuple[float, int]:
    """Solve from nothing; fills (v, theta, P) with the best certified point.

    Returns its gap and the number of iterations. Reads W.L and W.w.
    """
    H = lay.shape[1] - 2
    S = lay[2, H + 1]
    X = lay[3, H + 1]
    T = lay[4, H + 1]
    m_max = W.pair.size // 6
    n_max = W.ln_x.size

    # strictly feasible start: uniform policy through the middle of the boxes
    Pc = np.empty(T)
    interior(lay, lo, hi, Pc)
    pi = np.empty(X)
    pi[0] = 1.0
    for p in range(1, X):
        pi[p] = 1.0 / lay[1, 1]
    x = np.empty(X)
    mass = np.empty(S)
    roll_forward(lay, Pc, pi, mass, x)
    a = np.empty(T)
    b = np.empty(T)
    pinned = np.zeros(T)  # 1: the entry's share of x is fixed at Pc; 2: no upper bound
    scale = 0.0
    for h in range(1, H + 1):
        scale = max(scale, W.w[h])
        low = math.inf
        high = -math.inf
        for p in range(lay[3, h], lay[3, h + 1]):
            low = min(low, W.L[p])
            high = max(high, W.L[p])
        scale = max(scale, high - low)
    count = 0
    amount = 0.0
    for h in range(H):
        m = lay[0, h] * lay[1, h]
        n = lay[0, h + 1]
        for i in range(m):
            k = lay[4, h] + i
            low = 0.0
            high = 0.0
            for j in range(n):
                low += lo[k + j * m]
                high += hi[k + j * m]
            point = 1.0 - low <= _POINT or high - 1.0 <= _POINT
            xi = x[lay[3, h] + i]
            for j in range(n):
                f = k + j * m
                if point or hi[f] - lo[f] <= _POINT:
                    pinned[f] = 1.0
                    a[f] = 1.0
                    b[f] = 1.0
                else:
                    a[f] = max((Pc[f] - lo[f]) * xi, 1e-290)
                    count += 1
                    amount += a[f]
                    if hi[f] >= 1.0:
                        pinned[f] = 2.0
                        b[f] = 1.0
                    else:
                        b[f] = max((hi[f] - Pc[f]) * xi, 1e-290)
                        count += 1
                        amount += b[f]
    for p in range(1, X):
        x[p] = max(x[p], 1e-290)
        count += 1
        amount += x[p]
    mu = scale * amount / count
    alpha = np.zeros(T)
    beta = np.zeros(T)
    z = np.zeros(X)
    for f in range(T):
        if pinned[f] != 1.0:
            alpha[f] = mu / a[f]
            if pinned[f] == 0.0:
                beta[f] = mu / b[f]
    for p in range(1, X):
        z[p] = mu / x[p]
    vi = np.zeros(S)
    ti = np.zeros(X)

    inv_d = np.empty(T)
    e = np.empty(T)
    phat = np.empty(T)
    da = np.empty(T)
    db = np.empty(T)
    dal = np.empty(T)
    dbe = np.empty(T)
    ca = np.zeros(T)
    cb = np.zeros(T)
    tt = np.empty(T)
    inv_K = np.empty(X)
    ratio = np.empty(X)  # delta/W
    inv_W = np.empty(X)
    R = np.empty(X)
    rs = np.empty(X)
    tsum = np.empty(X)
    dx = np.empty(X)
    dz = np.empty(X)
    dth = np.empty(X)
    cz = np.zeros(X)
    ce = np.zeros(X)
    dv = np.empty(S)
    flow = np.empty(S)
    rows = np.empty(n_max * m_max)
    cc = np.empty(m_max)
    best = math.inf
    iterations = 0
    stalled = 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        # elimination and Schur complement
        for k in range(W.D.size):
            W.D[k] = 0.0
        d0 = 0
        e0 = 0
        for h in range(H + 1):
            n = lay[0, h]
            A = lay[1, h]
            m = n * A
            p0 = lay[3, h]
            r = lay[0, h + 1]
            t0 = lay[4, h]
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
                        if pinned[f] == 1.0:
                            inv_d[f] = 0.0
                            e[f] = Pc[f]
                        else:
                            D1 = alpha[f] / a[f]
                            if pinned[f] == 2.0:
                                inv_d[f] = 1.0 / D1
                                e[f] = lo[f]
                            else:
                                D2 = beta[f] / b[f]
                                g = 1.0 / (D1 + D2)
                                inv_d[f] = g
                                e[f] = (lo[f] * D1 + hi[f] * D2) * g
                                width = hi[f] - lo[f]
                                ksum[i] += D1 * (D2 * g) * (width * width)
                            wsum[i] += inv_d[f]
                        esum[i] += e[f]
            for i in range(m):
                p = p0 + i
                delta = 1.0 - esum[i]
                if wsum[i] > 0.0:
                    ratio[p] = delta / wsum[i]
                    inv_W[p] = 1.0 / wsum[i]
                else:
                    ratio[p] = 0.0
                    inv_W[p] = 0.0
                if h == 0:
                    inv_K[p] = 0.0
                else:
                    K = (W.w[h] + z[p]) / x[p] + ksum[i] + (delta * ratio[p] if h < H else 0.0)
                    inv_K[p] = 1.0 / K
            if h > 0:
                for s in range(n):
                    g = 0.0
                    for i in range(s * A, s * A + A):
                        g += inv_K[p0 + i]
                    W.D[d0 + s * n + s] += g
            if h == H:
                break
            after = d0 + n * n if h > 0 else 0
            Dn = W.D[after : after + r * r]
            for j in range(r):
                k = t0 + j * m
                g = 0.0
                for i in range(m):
                    phat[k + i] = e[k + i] + ratio[p0 + i] * inv_d[k + i]
                    g += inv_d[k + i]
                Dn[j * r + j] += g
            blocktri.transpose(r, m, phat, t0, rows)
            for i in range(m):
                cc[i] = inv_K[p0 + i]
            blocktri.add_gram(r, m, cc, rows, Dn)
            blocktri.transpose(r, m, inv_d, t0, rows)
            for i in range(m):
                cc[i] = -inv_W[p0 + i]
            blocktri.add_gram(r, m, cc, rows, Dn)
            if h > 0:
                for s in range(n):
                    for j in range(r):
                        g = 0.0
                        for i in range(s * A, s * A + A):
                            g -= inv_K[p0 + i] * phat[t0 + j * m + i]
                        W.E[e0 + s * r + j] = g
                e0 += n * r
                d0 += n * n
        d0 = 0
        for h in range(1, H + 1):
            n = lay[0, h]
            for s in range(n):
                W.inverse[lay[2, h] + s] = W.D[d0 + s * n + s]
            d0 += n * n
        blocktri.factor(lay, W.D, W.E, W.inverse, W.c)

        sigma_mu = 0.0
        step = 0.0
        for f in range(T):
            ca[f] = 0.0
            cb[f] = 0.0
        for p in range(X):
            cz[p] = 0.0
            ce[p] = 0.0
        for phase in range(2):
            # right-hand side
            for k in range(S):
                flow[k] = 0.0
            for h in range(H + 1):
                n = lay[0, h]
                A = lay[1, h]
                m = n * A
                p0 = lay[3, h]
                t0 = lay[4, h]
                for s in range(n):
                    for i in range(s * A, s * A + A):
                        p = p0 + i
                        R[p] = ti[p]
                        if h > 0:
                            R[p] += (
                                (sigma_mu - cz[p]) / x[p]
                                - (W.L[p] + W.w[h] * (math.log(x[p]) + 1.0) + vi[lay[2, h] + s])
                                + ce[p]
                            )
                        rs[p] = x[p] if h < H else 0.0
                        tsum[p] = 0.0
                if h < H:
                    for j in range(lay[0, h + 1]):
                        k = t0 + j * m
                        vj = vi[lay[2, h + 1] + j]
                        into = 0.0
                        for i in range(m):
                            f = k + i
                            p = p0 + i
                            y = Pc[f] * x[p]
                            tt[f] = vj - ti[p]
                            if pinned[f] != 1.0:
                                ga = (sigma_mu - ca[f]) / a[f]
                                gb = (sigma_mu - cb[f]) / b[f] if pinned[f] == 0.0 else 0.0
                                R[p] += hi[f] * gb - lo[f] * ga
                                tt[f] += ga - gb
                                y = lo[f] * x[p] + a[f]
                                tsum[p] += tt[f] * inv_d[f]
                            else:
                                R[p] += e[f] * 0.0
                            rs[p] -= y
                            into += y
                        flow[lay[2, h + 1] + j] -= into
                    for j in range(lay[0, h + 1]):
                        k = t0 + j * m
                        for i in range(m):
                            R[p0 + i] += phat[k + i] * tt[k + i]
                for i in range(m):
                    p = p0 + i
                    # rs = x - sum y must become 0: sum dy = dx + rs
                    R[p] -= ratio[p] * rs[p]
                if h > 0:
                    for s in range(n):
                        g = 0.0
                        for i in range(s * A, s * A + A):
                            g += x[p0 + i] + R[p0 + i] * inv_K[p0 + i]
                        flow[lay[2, h] + s] += g
                if h < H:
                    for j in range(lay[0, h + 1]):
                        k = t0 + j * m
                        g = 0.0
                        for i in range(m):
                            f = k + i
                            p = p0 + i
                            g += (
                                phat[f] * (R[p] * inv_K[p])
                                + (tt[f] - (tsum[p] - rs[p]) * inv_W[p]) * inv_d[f]
                            )
                        flow[lay[2, h + 1] + j] -= g
            dv[:] = flow
            dv[0] = 0.0
            blocktri.solve(lay, W.D, W.E, W.inverse, dv)
            # back-substitution and step length
            step = 1.0
            for h in range(H + 1):
                n = lay[0, h]
                A = lay[1, h]
                m = n * A
                p0 = lay[3, h]
                t0 = lay[4, h]
                for s in range(n):
                    for i in range(s * A, s * A + A):
                        p = p0 + i
                        dx[p] = R[p] - (dv[lay[2, h] + s] if h > 0 else 0.0)
                        dth[p] = tsum[p] - rs[p]
                if h < H:
                    for j in range(lay[0, h + 1]):
                        k = t0 + j * m
                        g = dv[lay[2, h + 1] + j]
                        for i in range(m):
                            dx[p0 + i] += phat[k + i] * g
                            dth[p0 + i] += g * inv_d[k + i]
                for i in range(m):
                    p = p0 + i
                    dx[p] *= inv_K[p]
                    dth[p] = dth[p] * inv_W[p] - ratio[p] * dx[p]
                    if h > 0:
                        dz[p] = (sigma_mu - cz[p]) / x[p] - z[p] - z[p] / x[p] * dx[p]
                        if dx[p] < 0.0:
                            step = min(step, -x[p] / dx[p])
                        if dz[p] < 0.0:
                            step = min(step, -z[p] / dz[p])
                if h < H:
                    for j in range(lay[0, h + 1]):
                        k = t0 + j * m
                        g = dv[lay[2, h + 1] + j]
                        for i in range(m):
                            f = k + i
                            p = p0 + i
                            if pinned[f] == 1.0:
                                continue
                            move = (g + tt[f] - dth[p]) * inv_d[f]
                            D1 = alpha[f] / a[f]
                            width = hi[f] - lo[f]
                            if pinned[f] == 0.0:
                                D2 = beta[f] / b[f]
                                move += D2 * width * inv_d[f] * dx[p]
                                db[f] = width * dx[p] - move
                                dbe[f] = (sigma_mu - cb[f]) / b[f] - beta[f] - D2 * db[f]
                                if db[f] < 0.0:
                                    step = min(step, -b[f] / db[f])
                                if dbe[f] < 0.0:
                                    step = min(step, -beta[f] / dbe[f])
                            da[f] = move
                            dal[f] = (sigma_mu - ca[f]) / a[f] - alpha[f] - D1 * move
                            if move < 0.0:
                                step = min(step, -a[f] / move)
                            if dal[f] < 0.0:
                                step = min(step, -alpha[f] / dal[f])
            if phase == 0:  # Mehrotra's centring and second-order terms
                now = 0.0
                ahead = 0.0
                for f in range(T):
                    if pinned[f] != 1.0:
                        now += a[f] * alpha[f]
                        ahead += (a[f] + step * da[f]) * (alpha[f] + step * dal[f])
                        ca[f] = da[f] * dal[f]
                        if pinned[f] == 0.0:
                            now += b[f] * beta[f]
                            ahead += (b[f] + step * db[f]) * (beta[f] + step * dbe[f])
                            cb[f] = db[f] * dbe[f]
                for h in range(1, H + 1):
                    for p in range(lay[3, h], lay[3, h + 1]):
                        now += x[p] * z[p]
                        ahead += (x[p] + step * dx[p]) * (z[p] + step * dz[p])
                        cz[p] = dx[p] * dz[p]
                        g = min(abs(dx[p] / x[p]), 1.0)
                        ce[p] = 0.5 * W.w[h] * g * g
                mu = now / count
                sigma_mu = mu * (max(ahead, 0.0) / now) ** 3
        step = min(1.0, 0.995 * step)
        if not step > 1e-12:
            stalled += 1
            if stalled > 2 or not step >= 0.0:
                break
        for p in range(1, X):
            x[p] += step * dx[p]
            z[p] += step * dz[p]
        for p in range(X):
            ti[p] += step * dth[p]
        for k in range(1, S):
            vi[k] += step * dv[k]
        gap_now = 0.0
        for f in range(T):
            if pinned[f] != 1.0:
                a[f] += step * da[f]
                alpha[f] += step * dal[f]
                gap_now += a[f] * alpha[f]
                if pinned[f] == 0.0:
                    b[f] += step * db[f]
                    beta[f] += step * dbe[f]
                    gap_now += b[f] * beta[f]
        for p in range(1, X):
            gap_now += x[p] * z[p]
        if not gap_now < math.inf:
            break
        if gap_now > 1e3 * goal + 1e-6 * W.w[0] and iterations < MAX_ITERATIONS - 1:
            continue
        # certificate: P = y/x projected on the boxes, primal and dual policies
        for h in range(H):
            m = lay[0, h] * lay[1, h]
            for j in range(lay[0, h + 1]):
                for i in range(m):
                    f = lay[4, h] + j * m + i
                    W.P[f] = (
                        Pc[f] if pinned[f] == 1.0 else lo[f] + a[f] / x[lay[3, h] + i]
                    )
            project(m, lay[0, h + 1], lo, hi, lay[4, h], W.P, cc, W.pair)
        bounds(lay, lo, hi, vi, ti, W.P, W.bound, W.slack)
        for given in range(2):
            if given == 1:
                for h in range(1, H + 1):
                    A = lay[1, h]
                    for s in range(lay[0, h]):
                        g = 0.0
                        p = lay[3, h] + s * A
                        for i in range(A):
                            g += x[p + i]
                        for i in range(A):
                            W.pi_out[p + i] = x[p + i] / g
            gap = certify(
                lay, W.L, W.w, vi, W.P, W.bound, W.slack, given == 1, W.pi_out, W.q_out, W.mass,
                W.ln_x, W.gap,
            )  # fmt: skip
            if gap < best:
                if gap > 0.5 * best:
                    stalled += 1
                best = gap
                v[:] = vi
                theta[:] = ti
                P[:] = W.P
            elif given == 1:
                stalled += 1
        if best <= goal or stalled > 6:
            break
    return best, iterations
