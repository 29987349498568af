"""Warm solver: proximal point in P, semismooth Newton in the flow multipliers v.

`occupancy_dual` smooths the program by ``sum x(s,a) (rho_h/2) ||P - P0||^2``. Its dual g is
maximised by Newton's method, then P0 <- P, and so on: a fixed point solves the original program.
Block h, h+1 of minus the generalised Hessian is, with F the free entries of a pair, q = sum_a x
and r the inflow,

    M[h+1, h+1] += sum (x/w_h) P P^T + (x/rho_h)(I_F - 1_F 1_F^T/|F|),   M[h, h] += diag(q)/w_h,
    M[h, h+1]    = -(1/w_h) ( [sum_a x P]_s - q r^T ).

The rank-one terms -q q^T/w_h and -r r^T/w_h of the diagonal blocks are left out on purpose: g does
not change when a layer's v is shifted, leaving them out removes that null space, and the step
changes only to second order because q - r is the gradient.
"""

from __future__ import annotations

import math

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy import blocktri
from unbounded.core.occupancy.certificate import bounds, certify
from unbounded.core.occupancy.dual import Work, evaluate
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
)

MAX_STEPS = 40
GRADIENT_TOLERANCE = 1e-5
_KAPPA_LOW = 1e-5  # rho_h = kappa max(w_h, w_{h+1}), kappa = clip(boldness * imbalance, low, 1)
_KAPPA_FLOOR = 1e-6
_BOLD = 1e-3  # the boldness adapts between these
_TIMID = 10.0
_SHRINK = 0.5  # of rho after a proximal step
_SHRINK_LEAST = 0.02  # if it took at most one evaluation: adapts between these
_DAMPING = 1e-2  # Levenberg-Marquardt term, times the imbalance
_STARVED = 1.5  # inflow/outflow beyond which a state takes a step in the log domain


@subroutine
def _assemble(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work) -> None:
    """The Newton matrix into W.D, W.E and its diagonal into W.inverse."""
    H = lay.shape[1] - 2
    for k in range(W.D.size):
        W.D[k] = 0.0
    c = W.c
    rows = W.rows
    d = 0
    e = 0
    for h in range(H + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        m = n * A
        x = W.x[lay[PAIR, h] : lay[PAIR, h] + m]
        scale = 1.0 / W.w[h]
        if h > 0:
            for s in range(n):
                k = lay[STATE, h] + s
                t = W.q[k]
                if W.r[k] > _STARVED * t:
                    t = (W.r[k] - t) / math.log(W.r[k] / max(t, 1e-300))
                k = d + s * n + s
                W.D[k] += (t + damping) * scale
                W.inverse[lay[STATE, h] + s] = W.D[k]
        if h == H:
            break
        r = lay[SIZE, h + 1]
        after = d + n * n if h > 0 else 0
        Dn = W.D[after : after + r * r]
        for i in range(m):
            c[i] = x[i] * scale
        blocktri.transpose(r, m, W.P, lay[TRIPLE, h], rows)
        blocktri.add_gram(r, m, c, rows, Dn)
        if h > 0:
            into = W.r[lay[STATE, h + 1] : lay[STATE, h + 1] + r]
            for s in range(n):
                row = W.E[e + s * r : e + (s + 1) * r]
                t = W.q[lay[STATE, h] + s] * scale
                for j in range(r):
                    row[j] = t * into[j]
                for i in range(s * A, s * A + A):
                    one = rows[i * r : (i + 1) * r]
                    t = c[i]
                    for j in range(r):
                        row[j] -= t * one[j]
            e += n * r
            d += n * n
        _curvature(m, r, lay[TRIPLE, h], lo, hi, W.P, x, 1.0 / W.rho[h], W.pair, c, rows, Dn)


@subroutine
def _curvature(
    m: int, n: int, start: int, lo: Vector, hi: Vector, P: Vector, x: Vector, scale: float,
    room: Vector, c: Vector, rows: Vector, D: Vector,
) -> None:  # fmt: skip
    """D += sum_i (x_i scale)(I_F - 1_F 1_F^T/|F|) over the free entries F of each pair."""
    free = room[:m]
    for i in range(m):
        free[i] = 0.0
    for j in range(n):
        k = start + j * m
        a = lo[k : k + m]
        b = hi[k : k + m]
        y = P[k : k + m]
        for i in range(m):
            free[i] += 1.0 if a[i] < y[i] < b[i] else 0.0
    everywhere = 0.0
    some = 0
    diagonal = room[m : m + n]
    for j in range(n):
        diagonal[j] = 0.0
    for i in range(m):
        if free[i] == n:
            everywhere += x[i] * scale
        elif free[i] > 1.0:
            row = rows[some * n : (some + 1) * n]
            t = x[i] * scale
            for j in range(n):
                k = start + j * m + i
                row[j] = 1.0 if lo[k] < P[k] < hi[k] else 0.0
                diagonal[j] += t * row[j]
            c[some] = -t / free[i]
            some += 1
    blocktri.add_gram(n, some, c, rows, D)
    each = everywhere / n
    for j in range(n):
        D[j * n + j] += diagonal[j] + everywhere
        if everywhere > 0.0:
            for k in range(j + 1):
                D[j * n + k] -= each


@subroutine
def newton(
    lay: Integers, lo: Vector, hi: Vector, goal: float, best: float, v: Vector, theta: Vector,
    P0: Vector, pace: Vector, W: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """Improve on ``best`` from (v, theta, P0) in place, until a certified gap is <= ``goal``.

    Returns the best gap, Newton steps and certificates. The point that attains the best gap is
    in W.best_v, best_theta, best_P, best_q, best_pi, and the gap's two parts in W.gap[2:].
    ``pace`` = [boldness, last first kappa, fast shrinkage] adapts from solve to solve: small rho
    needs fewer proximal steps, large rho copes with many changes of the active set.
    """
    H = lay.shape[1] - 2
    S = lay[STATE, H + 1]
    kappa = min(max(pace[1], _KAPPA_LOW), 1.0)
    for h in range(H + 1):
        W.rho[h] = kappa * max(W.w[h], W.w[min(h + 1, H)])
    value = evaluate(lay, lo, hi, v, P0, theta, W)
    size = 0.0
    for k in range(1, S):
        size += abs(W.grad[k])
    wanted = min(max(pace[0] * size, _KAPPA_LOW), 1.0)
    if wanted > 4.0 * kappa or wanted < 0.25 * kappa:
        for h in range(H + 1):
            W.rho[h] *= wanted / kappa
        kappa = wanted
        value = evaluate(lay, lo, hi, v, P0, theta, W)
    pace[1] = wanted
    inner = 0
    first = True
    fast = False
    retried = False
    limit = MAX_STEPS
    steps = 0
    certificates = 0
    threshold = GRADIENT_TOLERANCE
    while True:
        size = 0.0
        for k in range(1, S):
            size += abs(W.grad[k])
        if not size < math.inf:
            break
        if size <= threshold:
            certificates += 1
            bounds(lay, lo, hi, v, theta, W.P, W.bound, W.slack)
            gap = certify(
                lay, W.L, W.w, v, W.P, W.bound, W.slack, False, W.pi_out, W.q_out, W.mass,
                W.ln_x, W.gap,
            )  # fmt: skip
            if gap < best:
                best = gap
                W.gap[2] = W.gap[0]
                W.gap[3] = W.gap[1]
                W.best_v[:] = v
                W.best_theta[:] = theta
                W.best_P[:] = W.P
                W.best_q[:] = W.q_out
                W.best_pi[:] = W.pi_out
            if first:
                first = False
                if inner > 3:
                    pace[0] = min(2.0 * pace[0], _TIMID)
                elif inner <= 1 and gap > goal:
                    pace[0] = max(0.5 * pace[0], _BOLD)
            elif fast:
                faster = max(0.7 * pace[2], _SHRINK_LEAST)
                pace[2] = min(2.0 * pace[2], _SHRINK) if inner > 3 else faster
            if gap <= goal or steps >= limit or certificates >= MAX_STEPS:
                break
            if W.gap[1] > 0.5 * goal:
                P0[:] = W.P
                fast = inner <= 1
                shrink = max(pace[2] if fast else _SHRINK, _KAPPA_FLOOR / kappa)
                inner = 0
                if shrink < 1.0:
                    kappa *= shrink
                    for h in range(H + 1):
                        W.rho[h] *= shrink
                value = evaluate(lay, lo, hi, v, P0, theta, W)
            else:
                threshold *= 0.1
            continue
        if steps >= limit:
            break
        steps += 1
        _assemble(lay, lo, hi, _DAMPING * size, W)
        blocktri.factor(lay, W.D, W.E, W.inverse, W.c)
        W.dv[:] = W.grad
        blocktri.solve(lay, W.D, W.E, W.inverse, W.dv)
        slope = 0.0
        for k in range(1, S):
            slope += W.grad[k] * W.dv[k]
        W.v_old[:] = v
        t = 1.0
        accepted = False
        noise = 1e-13 * (1.0 + abs(value))
        for _ in range(25):
            for k in range(1, S):
                v[k] = W.v_old[k] + t * W.dv[k]
            trial = evaluate(lay, lo, hi, v, P0, theta, W)
            inner += 1
            after = 0.0
            for k in range(1, S):
                after += W.grad[k] * W.dv[k]
            if trial >= value + 1e-4 * t * slope or (
                trial >= value - noise and after >= -0.8 * slope
            ):
                accepted = True
                break
            if after < slope and after < 0.0:
                t *= min(max(slope / (slope - after), 0.1), 0.5)
            else:
                t *= 0.25
        if not accepted or (steps >= limit and not retried):
            if retried or kappa > 0.1:
                break
            # rho was too bold: once more from here with a large one
            retried = True
            limit += MAX_STEPS // 2
            pace[0] = min(8.0 * pace[0], _TIMID)
            for h in range(H + 1):
                W.rho[h] *= 1.0 / kappa
            kappa = 1.0
            inner = 0
            trial = evaluate(lay, lo, hi, v, P0, theta, W)
        value = trial
    return best, steps, certificates
