"""Cold solver: a structured primal-dual interior point method.

Variables x (pairs) and y = x P (triples) with slacks a = y - lo x, b = hi x - y and multipliers
alpha, beta, z of a, b, x >= 0, theta of sum_j y_j = x, v of the flow constraints:

    L + w (ln x + 1) + v(s) - theta + sum_j (lo alpha - hi beta) - z = 0,
    theta - v_j - alpha + beta = 0.

`elimination` reduces the system of a step to one in dv, block tridiagonal over the layers.
Mehrotra's predictor-corrector with one common step length.
"""

from __future__ import annotations

import math

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    condition,
    horizon,
)
from unbounded.core.occupancy.solver.certificate import bounds
from unbounded.core.occupancy.solver.elimination import back_substitute, direction, eliminate
from unbounded.core.occupancy.solver.incumbent import offer
from unbounded.core.occupancy.solver.iterate import (
    AT_LO,
    BOXED,
    DEAD,
    PINNED,
    SEVERAL,
    Iterate,
    room_sizes,
    start,
)
from unbounded.core.occupancy.solver.projection import project
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import subroutine

MAX_ITERATIONS = 120


@subroutine
def _centre(lay: Integers, it: Iterate, W: Work, step: float, count: int) -> float:
    """Mehrotra's target and second-order terms from the predictor."""
    H = horizon(lay)
    T = lay[TRIPLE, H + 1]
    now = 0.0
    ahead = 0.0
    for f in range(T):
        if it.entry[f] != PINNED:
            now += it.a[f] * it.alpha[f]
            ahead += (it.a[f] + step * it.da[f]) * (it.alpha[f] + step * it.dalpha[f])
            it.ca[f] = it.da[f] * it.dalpha[f]
            if it.entry[f] == BOXED:
                now += it.b[f] * it.beta[f]
                ahead += (it.b[f] + step * it.db[f]) * (it.beta[f] + step * it.dbeta[f])
                it.cb[f] = it.db[f] * it.dbeta[f]
    for h in range(1, H + 1):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if it.point[p] == DEAD:
                continue
            now += it.x[p] * it.z[p]
            ahead += (it.x[p] + step * it.dx[p]) * (it.z[p] + step * it.dz[p])
            it.cz[p] = it.dx[p] * it.dz[p]
            g = min(abs(it.dx[p] / it.x[p]), 1.0)
            it.ce[p] = 0.5 * W.w[h] * g * g
    mu = now / count
    share = max(ahead, 0.0) / now
    return mu * (share * (share * share))  # Python's x**3 has other bits than compiled code's


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
        if it.entry[f] != PINNED:
            it.a[f] += step * it.da[f]
            it.alpha[f] += step * it.dalpha[f]
            gap_now += it.a[f] * it.alpha[f]
            if it.entry[f] == BOXED:
                it.b[f] += step * it.db[f]
                it.beta[f] += step * it.dbeta[f]
                gap_now += it.b[f] * it.beta[f]
    for p in range(1, X):
        gap_now += it.x[p] * it.z[p]
    return gap_now


@subroutine
def _read_off(lay: Integers, lo: Vector, hi: Vector, it: Iterate, W: Work) -> None:
    """P = y/x projected on the boxes, theta of eliminated pairs; bounds and slacks into W."""
    H = horizon(lay)
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for j in range(lay[SIZE, h + 1]):
            for i in range(m):
                f = lay[TRIPLE, h] + j * m + i
                W.P[f] = (
                    it.Pc[f] if it.entry[f] == PINNED else lo[f] + it.a[f] / it.x[lay[PAIR, h] + i]
                )
        project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], W.P, it.c, W.pair)

    for h in range(H):  # theta of a pair whose box is a point makes its slack vanish
        low = math.inf
        high = -math.inf
        for k in range(lay[STATE, h + 1], lay[STATE, h + 2]):
            low = min(low, it.v[k])
            high = max(high, it.v[k])
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if it.point[p] != SEVERAL:  # (of a dead one it does not matter)
                it.theta[p] = high if it.point[p] == AT_LO else low
    bounds(lay, lo, hi, it.v, it.theta, W.P, W.bound, W.slack)


@subroutine
def interior_point(
    lay: Integers, lo: Vector, hi: Vector, goal: float, best: float, W: Work
) -> tuple[float, int]:
    """Solve from nothing, until a certified gap is <= ``goal``.

    Returns the best gap and the number of iterations; its point is where `offer` puts it. Keeps the
    better of the primal and of the dual policy: with tiny weights
    either may be the poorer.
    """
    triples, pairs, rest = room_sizes(lay, W)
    Z, Y, V = np.zeros(triples), np.zeros(pairs), np.zeros(rest)
    return _from_nothing(lay, lo, hi, goal, best, Z, Y, V, W)


@subroutine
def _from_nothing(
    lay: Integers, lo: Vector, hi: Vector, goal: float, best: float,
    Z: Vector, Y: Vector, V: Vector, W: Work,
) -> tuple[float, int]:  # fmt: skip
    it, count = start(lay, lo, hi, Z, Y, V, W)
    stalled = 0
    iterations = 0
    while iterations < MAX_ITERATIONS and stalled <= 6:
        iterations += 1
        eliminate(lay, lo, hi, it, W)
        for f in range(it.ca.size):
            it.ca[f] = 0.0
            it.cb[f] = 0.0
        for p in range(it.cz.size):
            it.cz[p] = 0.0
            it.ce[p] = 0.0
        direction(lay, lo, hi, it, W, 0.0)
        step = back_substitute(lay, lo, hi, it, 0.0)
        sigma_mu = _centre(lay, it, W, step, count)
        direction(lay, lo, hi, it, W, sigma_mu)
        step = min(1.0, 0.995 * back_substitute(lay, lo, hi, it, sigma_mu))
        if not step > 1e-12:
            stalled += 3
        left = _advance(lay, it, step)
        if not left < math.inf:
            break
        if left > 1e3 * goal + 1e-6 * W.w[0] and stalled == 0:
            continue
        _read_off(lay, lo, hi, it, W)
        before = best
        for given in (False, True):  # the dual policy, then the primal one
            if given:
                condition(lay, it.x, W.pi_out)
            best, _, _ = offer(lay, it.v, it.theta, given, best, W)
        if best <= goal:
            break
        if not best <= 0.5 * before:
            stalled += 1
    return best, iterations
