"""Maximize the smoothed dual by Newton's method: the warm solver.

`dual` smooths the program by ``sum x(s,a) (rho_h/2) ||P - P0||^2``. A semismooth Newton method in
the flow multipliers v maximizes its dual, then P0 <- P, and so on (the proximal point method): a
fixed point solves the original program.

Minus the Hessian has a block per layer. With q = sum_a x and r the inflow, the softmax x over a
layer's pairs gives, whatever the inner problem is,

    M[h+1, h+1] += sum (x/w_h) P P^T,   M[h, h] += diag(q)/w_h,
    M[h, h+1]    = -(1/w_h) ( [sum_a x P]_s - q r^T ).

The rank-one terms -q q^T/w_h and -r r^T/w_h of the diagonal blocks are left out on purpose: the
dual does not change when a layer's v is shifted, leaving them out removes that null space, and the
step changes only to second order because q - r is the gradient. The smoothed inner problem adds,
with F the free entries of a pair,

    M[h+1, h+1] += sum (x/rho_h)(I_F - 1_F 1_F^T/|F|).
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, horizon
from unbounded.core.occupancy.solver import sparse
from unbounded.core.occupancy.solver.certificate import bounds, offer
from unbounded.core.occupancy.solver.dual import evaluate, project
from unbounded.core.occupancy.solver.linear_algebra import (
    add_gram,
    conjugate_direction,
    factor,
    mass_to_move,
    slope_along,
    solve_factored,
    transpose,
)
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import assign, borrowed, kernel, subroutine

MAX_STEPS = 40
GRADIENT_TOLERANCE = 1e-5
_LISTED_TOLERANCE = 1e-4  # over lists, where directions are not exact: for a first proximal step
BOLDNESS, KAPPA, SHRINKAGE = range(3)  # of ``pace``
PACE = (1.0, 1.0, 0.1)  # at first
_KAPPA_LOW = 1e-5  # rho_h = kappa max(w_h, w_{h+1}), kappa = clip(boldness * imbalance, low, 1)
_KAPPA_FLOOR = 1e-6
_BOLD = 1e-3  # the boldness adapts between these
_TIMID = 10.0
_SHRINK = 0.5  # of rho after a proximal step
_SHRINK_LEAST = 0.02  # if it took at most one evaluation: adapts between these
_DAMPING = 1e-2  # Levenberg-Marquardt term, times the imbalance
_TRIES = 25  # of a line search
_SPOILT = 1e9  # v over rho, beyond which P need not sum to one


@kernel
def imbalance(grad: Vector) -> float:
    """Sum |outflow - inflow| over the states."""
    size = 0.0
    for k in range(1, grad.size):
        size += abs(grad[k])
    return size


@kernel
def couple(lay: Integers, h: int, e: int, next_block: Vector, W: Work) -> None:
    """Add x P P^T/w_h to the block of layer h + 1, and set the block between, from W.E[e] on.

    Leaves x/w_h in W.c and P, pair by pair, in W.rows.
    """
    n = lay[SIZE, h]
    A = lay[ACTIONS, h]
    m = n * A
    r = lay[SIZE, h + 1]
    c = W.c
    rows = W.rows
    scale = 1.0 / W.w[h]
    x = W.x[lay[PAIR, h] : lay[PAIR, h] + m]
    for i in range(m):
        c[i] = x[i] * scale
    transpose(r, m, W.P, lay[TRIPLE, h], rows)
    add_gram(r, m, c, rows, next_block)
    if h == 0:  # s_0 has no multiplier
        return
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


@subroutine
def direction(lay: Integers, W: Work) -> float:
    """Solve for Newton's direction W.dv with the matrix in W.D, W.E; return the slope along it."""
    W = borrowed(W)
    factor(lay, W.D, W.E, W.inverse, W.c)
    assign(W.dv, W.grad)
    solve_factored(lay, W.D, W.E, W.inverse, W.dv)
    return slope_along(W)


@kernel
def step_to(v: Vector, t: float, W: Work) -> None:
    """Set v = W.v_old + t W.dv."""
    for k in range(1, v.size):
        v[k] = W.v_old[k] + t * W.dv[k]


@kernel
def good_step(value: float, trial: float, t: float, slope: float, after: float) -> bool:
    """Test Armijo's condition; or, where rounding hides the increase, Wolfe's on the slopes."""
    noise = 1e-13 * (1.0 + abs(value))
    enough = trial >= value + 1e-4 * t * slope
    return enough or (trial >= value - noise and after >= -0.8 * slope)


@subroutine
def assemble(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work) -> None:
    """Write the Newton matrix to W.D, W.E and its diagonal to W.inverse."""
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
                W.D[k] += (mass_to_move(W.q[at], W.r[at]) + damping) * scale
                W.inverse[at] = W.D[k]
        if h == H:
            break
        m = n * lay[ACTIONS, h]
        r = lay[SIZE, h + 1]
        after = d + n * n if h > 0 else 0
        block = W.D[after : after + r * r]
        couple(lay, h, e, block, W)
        x = W.x[lay[PAIR, h] : lay[PAIR, h] + m]
        _curvature(m, r, lay[TRIPLE, h], lo, hi, W.P, x, 1.0 / W.rho[h], W.pair, W.c, W.rows, block)
        d = after
        e += n * r if h > 0 else 0


@subroutine
def _curvature(
    m: int, n: int, start: int, lo: Vector, hi: Vector, P: Vector, x: Vector, scale: float,
    scratch: Vector, c: Vector, rows: Vector, D: Vector,
) -> None:  # fmt: skip
    """Add sum_i (x_i scale)(I_F - 1_F 1_F^T/|F|) to D, F the free entries of each pair."""
    free = scratch[:m]
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
    diagonal = scratch[m : m + n]
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
    add_gram(n, some, c, rows, D)
    each = everywhere / n
    for j in range(n):
        D[j * n + j] += diagonal[j] + everywhere
        if everywhere > 0.0:
            for k in range(j + 1):
                D[j * n + k] -= each


@kernel
def _scale(rho: Vector, factor: float) -> None:
    for h in range(rho.size):
        rho[h] *= factor


@kernel
def _line_search(
    lay: Integers, lo: Vector, hi: Vector, value: float, slope: float, v: Vector, theta: Vector,
    P0: Vector, W: Work,
) -> tuple[float, int, bool]:  # fmt: skip
    """Move v along W.dv; return the value there, the number of evaluations, and success."""
    assign(W.v_old, v)
    t = 1.0
    trial = value
    for tried in range(_TRIES):
        step_to(v, t, W)
        trial = evaluate(lay, lo, hi, v, P0, theta, W)
        after = slope_along(W)
        if good_step(value, trial, t, slope, after):
            return trial, tried + 1, True
        if after < slope and after < 0.0:
            t *= min(max(slope / (slope - after), 0.1), 0.5)
        else:
            t *= 0.25
    return trial, _TRIES, False


@subroutine
def _repair_rows(lay: Integers, lo: Vector, hi: Vector, v: Vector, W: Work) -> None:
    """Project W.P on the boxes where v is so large beside rho that rounding spoils its sums."""
    H = horizon(lay)
    largest = 0.0
    for k in range(v.size):
        largest = max(largest, abs(v[k]))
    least = W.rho[0]
    for h in range(1, H):
        least = min(least, W.rho[h])
    if largest <= _SPOILT * least:
        return
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        worst = 0.0
        for i in range(m):
            total = 0.0
            for k in range(lay[TRIPLE, h] + i, lay[TRIPLE, h + 1], m):
                total += W.P[k]
            worst = max(worst, abs(total - 1.0))
        if worst > 1e-12:
            project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], W.P, W.c, W.pair)


@subroutine
def newton(
    lay: Integers, lo: Vector, hi: Vector, goal: float, best: float, v: Vector, theta: Vector,
    P0: Vector, pace: Vector, W: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """Improve on ``best`` from (v, theta, P0) in place, until a certified gap is <= ``goal``.

    Returns the best gap, Newton steps and certificates; its point is where `offer` puts it.
    ``pace`` adapts from solve to solve: boldness, the first kappa of the last solve, and how much
    rho shrinks where that is quick. Small rho needs fewer proximal steps, large rho copes with
    many changes of the active set.
    """
    lay, lo, hi, v, theta, P0 = borrowed((lay, lo, hi, v, theta, P0))
    pace, W = borrowed((pace, W))
    H = horizon(lay)
    kappa = min(max(pace[KAPPA], _KAPPA_LOW), 1.0)
    for h in range(H + 1):
        W.rho[h] = kappa * max(W.w[h], W.w[min(h + 1, H)])
    value = evaluate(lay, lo, hi, v, P0, theta, W)
    wanted = min(max(pace[BOLDNESS] * imbalance(W.grad), _KAPPA_LOW), 1.0)
    if wanted > 4.0 * kappa or wanted < 0.25 * kappa:
        _scale(W.rho, wanted / kappa)
        kappa = wanted
        value = evaluate(lay, lo, hi, v, P0, theta, W)
    pace[KAPPA] = wanted
    inner = 0
    first = True
    fast = False
    retried = False
    limit = MAX_STEPS
    steps = 0
    certificates = 0
    threshold = GRADIENT_TOLERANCE if W.begin.size == 0 else _LISTED_TOLERANCE
    while True:
        size = imbalance(W.grad)
        if not size < math.inf:
            break
        if size <= threshold:
            certificates += 1
            if W.begin.size > 0:
                sparse.repair(lay, lo, hi, W)
                sparse.bounds(lay, lo, hi, v, theta, W.P, W)
            else:
                _repair_rows(lay, lo, hi, v, W)
                bounds(lay, lo, hi, v, theta, W.P, W.bound, W.slack)
            best, gap, slack = offer(lay, v, theta, False, best, W)
            if first:
                first = False
                if inner > 3:
                    pace[BOLDNESS] = min(2.0 * pace[BOLDNESS], _TIMID)
                elif inner <= 1 and gap > goal:
                    pace[BOLDNESS] = max(0.5 * pace[BOLDNESS], _BOLD)
            elif fast:
                faster = max(0.7 * pace[SHRINKAGE], _SHRINK_LEAST)
                slower = min(2.0 * pace[SHRINKAGE], _SHRINK)
                pace[SHRINKAGE] = slower if inner > 3 else faster
            if gap <= goal or steps >= limit or certificates >= MAX_STEPS:
                break
            if slack > 0.5 * goal:  # a proximal step
                assign(P0, W.P)
                fast = inner <= 1
                shrink = max(pace[SHRINKAGE] if fast else _SHRINK, _KAPPA_FLOOR / kappa)
                inner = 0
                if shrink < 1.0:
                    kappa *= shrink
                    _scale(W.rho, shrink)
                value = evaluate(lay, lo, hi, v, P0, theta, W)
            else:
                threshold *= 0.1
            continue
        if steps >= limit:
            break
        steps += 1
        if W.begin.size > 0:
            slope = conjugate_direction(lay, lo, hi, _DAMPING * size, W)
        else:
            assemble(lay, lo, hi, _DAMPING * size, W)
            slope = direction(lay, W)
        value, tried, accepted = _line_search(lay, lo, hi, value, slope, v, theta, P0, W)
        inner += tried
        if not accepted or (steps >= limit and not retried):
            if retried or kappa > 0.1:
                break
            # rho was too bold: once more from here with a large one
            retried = True
            limit += MAX_STEPS // 2
            pace[BOLDNESS] = min(8.0 * pace[BOLDNESS], _TIMID)
            _scale(W.rho, 1.0 / kappa)
            kappa = 1.0
            inner = 0
            value = evaluate(lay, lo, hi, v, P0, theta, W)
    return best, steps, certificates
