"""Solve from nothing by a structured primal-dual interior point method: the cold solver.

Variables x (pairs) and y = x P (triples) with slacks a = y - lo x, b = hi x - y and multipliers
alpha, beta, z of a, b, x >= 0, theta of sum_j y_j = x, v of the flow constraints:

    L + w (ln x + 1) + v(s) - theta + sum_j (lo alpha - hi beta) - z = 0,
    theta - v_j - alpha + beta = 0.

`elimination` reduces the system of a step to one in dv, block tridiagonal over the layers.
Mehrotra's predictor-corrector with one common step length.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import box_sums, interior
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    condition,
    horizon,
    roll_forward,
)
from unbounded.core.occupancy.solver.certificate import bounds, offer
from unbounded.core.occupancy.solver.dual import project
from unbounded.core.occupancy.solver.elimination import (
    AT_HI,
    AT_LO,
    BOXED,
    DEAD,
    OPEN,
    PINNED,
    SEVERAL,
    Iterate,
    back_substitute,
    direction,
    eliminate,
    new_iterate,
)
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import kernel, subroutine

MAX_ITERATIONS = 120
_POINT = 1e-13  # a box narrower than this is a point
_START = 1.0  # first complementarity, relative to the spread of the losses


@subroutine
def start(lay: Integers, lo: Vector, hi: Vector, W: Work) -> tuple[Iterate, int]:
    """Make a strictly feasible start; return it and the number of complementarity products.

    The policy is uniform, the transitions are in the middle of every box, and multipliers make all
    products equal. Pairs of infinite loss (`reach`) have x = 0 and never move. An entry with
    hi = lo, and every entry of a pair whose box is a point, is pinned: eliminated from the
    problem. An upper bound hi = 1 is implied and dropped.
    """
    H = horizon(lay)
    X = lay[PAIR, H + 1]
    T = lay[TRIPLE, H + 1]
    it = new_iterate(lay, W)
    interior(lay, lo, hi, it.a)
    _even(lay, W.L, it.R)
    roll_forward(lay, it.a, it.R, it.dv, it.x)
    scale = 0.0
    for h in range(1, H + 1):
        scale = max(scale, W.w[h])
        low = math.inf
        high = -math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.L[p] < math.inf:
                low = min(low, W.L[p])
                high = max(high, W.L[p])
        scale = max(scale, high - low)
    count = 0
    amount = 0.0
    for p in range(1, X):
        if W.L[p] < math.inf:
            it.x[p] = max(it.x[p], 1e-290)
            amount += it.x[p]
            count += 1
        else:
            it.x[p] = 0.0
            it.point[p] = DEAD
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        n = lay[SIZE, h + 1]
        for i in range(m):
            k = lay[TRIPLE, h] + i
            low, high = box_sums(m, n, k, lo, hi)
            if it.point[lay[PAIR, h] + i] == DEAD:
                pass
            elif 1.0 - low <= _POINT:
                it.point[lay[PAIR, h] + i] = AT_LO
            elif high - 1.0 <= _POINT:
                it.point[lay[PAIR, h] + i] = AT_HI
            xi = it.x[lay[PAIR, h] + i]
            for j in range(n):
                f = k + j * m
                P = it.a[f]
                it.b[f] = 1.0
                if it.point[lay[PAIR, h] + i] != SEVERAL or hi[f] - lo[f] <= _POINT:
                    it.entry[f] = PINNED
                else:
                    it.a[f] = max((P - lo[f]) * xi, 1e-290)
                    count += 1
                    amount += it.a[f]
                    if hi[f] >= 1.0:
                        it.entry[f] = OPEN
                    else:
                        it.b[f] = max((hi[f] - P) * xi, 1e-290)
                        count += 1
                        amount += it.b[f]
    mu = _START * scale * amount / count
    for f in range(T):
        if it.entry[f] != PINNED:
            it.alpha[f] = mu / it.a[f]
            if it.entry[f] == BOXED:
                it.beta[f] = mu / it.b[f]
    for p in range(1, X):
        if it.point[p] != DEAD:
            it.z[p] = mu / it.x[p]
    return it, count


@kernel
def _even(lay: Integers, L: Vector, pi: Vector) -> None:
    """Set ``pi`` uniform over actions of finite loss; zero in states that have none."""
    pi[0] = 1.0
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for p in range(lay[PAIR, h], lay[PAIR, h + 1], A):
            alive = 0
            for a in range(A):
                alive += 1 if L[p + a] < math.inf else 0
            for a in range(A):
                pi[p + a] = 1.0 / alive if L[p + a] < math.inf else 0.0


@subroutine
def _center(lay: Integers, it: Iterate, W: Work, step: float, count: int) -> float:
    """Find Mehrotra's target and second-order terms from the predictor."""
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
    """Take the step; return the sum of the complementarity products."""
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
    """Project P = y/x on the boxes, find theta of eliminated pairs; bounds and slacks go to W."""
    H = horizon(lay)
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for j in range(lay[SIZE, h + 1]):
            for i in range(m):
                f = lay[TRIPLE, h] + j * m + i
                W.P[f] = (
                    it.a[f] if it.entry[f] == PINNED else lo[f] + it.a[f] / it.x[lay[PAIR, h] + i]
                )
        project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], W.P, W.c, W.pair)

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

    Returns the best gap and the number of iterations; its point is where `offer` puts it. The
    better of the primal and of the dual policy is taken: with tiny weights either may be the
    poorer.
    """
    it, count = start(lay, lo, hi, W)
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
        sigma_mu = _center(lay, it, W, step, count)
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
