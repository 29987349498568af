"""Take a mirror-descent step of UOB-REPS, with relative entropy on triples.

    min over Delta(boxes) of  <q, L> + sum_{h=0..H} w_h sum_{s,a,s'} D( q(s,a,s') || q0(s,a,s') ),

``D(q||p) = q ln(q/p) - q + p``; a triple of layer H is a pair, and w_0 = w_1. With q = x P and
q0 = x0 P0 the entropy splits into ``x ln(x/x0) + x KL(P||P0)``. So this is the program on pairs of
`certificate` with losses ``L - w ln x0`` and the *smooth* inner problem

    phi(v) = max_{P in box} <P, v> - w KL(P||P0),    P = clip(P0 exp((v - theta)/w), lo, hi),

whose dual in v is C^1: damped Newton steps, no proximal loop. A pair's scale exp(-theta/w) is the
root of a piecewise linear function. The curvature of phi is (1/w)(diag P_F - P_F P_F^T/sum P_F)
over the free entries F.

Certificate: for any v, with P the maximizers above and q the policy of x rolled through P,
F(q) - min F <= sum_h w_h KL(q_h||x_h).

A gap says nothing of states with hardly any mass, but these carry the memory of mirror descent: a
state of mass 1e-12 must grow when the losses of the others do. So the flow of *every* state is
balanced to a relative `BALANCE`, and the base is held as ln x0 and ln P0, not below ln `LEAST`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
    dots,
    horizon,
)
from unbounded.core.occupancy.reach import mark, spread
from unbounded.core.occupancy.solver import WARM, Outcome
from unbounded.core.occupancy.solver.certificate import offer, offer_kept
from unbounded.core.occupancy.solver.linear_algebra import add_gram, mass_to_move, slope_along
from unbounded.core.occupancy.solver.newton import couple, direction, good_step, imbalance, step_to
from unbounded.core.occupancy.solver.work import (
    OUTCOME,
    TABLE,
    VECTOR,
    Units,
    Work,
    carve,
    conclude,
    normalize,
    wanted_gap,
)
from unbounded.jit.kernel import Pointer, assign, borrowed, kernel, section, subroutine

MAX_STEPS = 60
BALANCE = 1e-6
LEAST = 1e-260  # of a base measure
_TRIES = 40  # of a line search
_SHRINK = 0.25  # of the weights, from solve to solve on the way to small ones, at best
_SLOWEST = 0.9999  # ... and at worst
_STAGE_STEPS = 20  # of Newton's method, for each of these
_FOLLOW_STEPS = 2000  # and for all
_FAR = 1e100  # a pair's scale is looked for within this factor at a time
_STEEP = 600.0  # exponents of e are kept within this


def uniform_base(layers: Layers) -> tuple[Vector, Vector]:
    """Return logarithms of q(s,a,s') = 1/(n_h A n_{h+1}), as q(s,a) and P(s'|s,a)."""
    pairs = np.array([1, *(n * layers.n_actions for n in layers.sizes)])  # of layers 0..H
    following = np.array(layers.sizes)
    ln_q = np.repeat(-np.log(pairs), pairs)
    ln_P = np.repeat(-np.log(following), pairs[:-1] * following)
    return ln_q, ln_P


# Kernels: the dual and its Newton matrix


@subroutine
def evaluate(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, ln_P: Vector, theta: Vector, W: Work
) -> float:
    """Return the dual's value; fill W.P, x, bound, q, r, grad and theta. W.L has -w ln x0 in it."""
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
    """Find P, theta and bound = phi(v) of the pairs of layer h."""
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
    """Find s in (1/_FAR, _FAR) with sum_j clip(e_j s, lo_j, hi_j) = 1, or the nearer end.

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
    """Write the Newton matrix of the smooth dual to W.D, W.E; its diagonal to W.inverse.

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
        add_gram(r, m, W.c, W.rows, block)
        d = after
        e += n * r if h > 0 else 0


# Kernels: the step


@kernel
def _largest_imbalance(W: Work) -> float:
    """Find the largest imbalance of a state, relative to its flow."""
    largest = 0.0
    for k in range(1, W.grad.size):
        if W.grad[k] != 0.0:
            largest = max(largest, abs(W.grad[k]) / max(W.q[k], W.r[k]))
    return largest


@kernel
def _line_search(
    lay: Integers, lo: Vector, hi: Vector, value: float, slope: float, ln_P: Vector, v: Vector,
    theta: Vector, W: Work,
) -> tuple[float, bool]:  # fmt: skip
    """Move v along W.dv; return the value there, and success."""
    assign(W.v_old, v)
    t = 1.0
    trial = value
    for _ in range(_TRIES):
        step_to(v, t, W)
        trial = evaluate(lay, lo, hi, v, ln_P, theta, W)
        if good_step(value, trial, t, slope, slope_along(W)):
            return trial, True
        t *= 0.3
    return trial, False


@subroutine
def _ascend(
    lay: Integers, lo: Vector, hi: Vector, goal: float, limit: int, ln_P: Vector, v: Vector,
    theta: Vector, W: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """Take Newton steps until a certified gap is <= goal; return it, steps and certificates."""
    lay, lo, hi, ln_P, v, theta, W = borrowed((lay, lo, hi, ln_P, v, theta, W))
    best = math.inf
    steps = 0
    certificates = 0
    threshold = 1e-5
    value = evaluate(lay, lo, hi, v, ln_P, theta, W)
    while True:
        size = imbalance(W.grad)
        if not size < math.inf:
            break
        if (size <= threshold and _largest_imbalance(W) <= BALANCE) or steps >= limit:
            certificates += 1
            best, gap, _ = offer(lay, v, theta, False, best, W)
            if gap <= goal or steps >= limit:
                break
            threshold = min(0.1 * threshold, 0.1 * size)
            if threshold < 1e-15:
                break
            continue
        steps += 1
        assemble(lay, lo, hi, 1e-2 * size, W)
        slope = direction(lay, W)
        value, accepted = _line_search(lay, lo, hi, value, slope, ln_P, v, theta, W)
        if not accepted:
            steps = limit  # nothing more to gain: certify what there is
            assign(v, W.v_old)
            value = evaluate(lay, lo, hi, v, ln_P, theta, W)
    return best, steps, certificates


@kernel
def _at_weights(
    lay: Integers, e: int, floor: float, L: Vector, w: Vector, ln_q: Vector, W: Work
) -> None:
    """Set W.w and W.L for weights that are at least ``floor``, in units of 2^e."""
    for h in range(1, horizon(lay) + 1):
        W.w[h] = max(math.ldexp(w[h - 1], -e), floor)
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.L[p] < math.inf:
                W.L[p] = math.ldexp(L[p], -e) - W.w[h] * ln_q[p]
    W.w[0] = W.w[1]


@subroutine
def _follow(
    lay: Integers, lo: Vector, hi: Vector, units: Units, goal: float, L: Vector, w: Vector,
    ln_q: Vector, ln_P: Vector, v: Vector, theta: Vector, W: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """Follow the path of solutions from weights as large as the losses to smaller ones.

    For weights that differ by many orders of magnitude, whose dual is nearly piecewise linear. Ends
    at the weights' own size or at the last that could be solved, as `_ascend` does.
    """
    floor = units.w_max
    for h in range(1, horizon(lay) + 1):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.L[p] < math.inf:
                floor = max(floor, abs(math.ldexp(L[p], -units.e)))
    v[:] = 0.0
    theta[:] = 0.0
    before = section(W.cg, 0, v.size)  # the last two solutions, and the weights that they are for
    good = section(W.cg, v.size, 2 * v.size)
    theta_good = section(W.lists, 0, theta.size)
    assign(before, v)
    assign(good, v)
    assign(theta_good, theta)
    floor_before = math.inf
    floor_good = math.inf
    shrink = _SHRINK
    steps = 0
    certificates = 0
    best = math.inf
    while steps < _FOLLOW_STEPS:
        _at_weights(lay, units.e, floor, L, w, ln_q, W)
        last = floor <= units.w_min
        wanted = goal if last else 1e-3 * floor
        limit = MAX_STEPS if last else _STAGE_STEPS
        best, more, again = _ascend(lay, lo, hi, wanted, limit, ln_P, v, theta, W)
        steps += more
        certificates += again
        if best <= wanted:
            if last:
                return best, steps, certificates
            assign(before, good)
            floor_before = floor_good
            assign(good, W.best_v)
            assign(theta_good, W.best_theta)
            floor_good = floor
            shrink = max(shrink * shrink, _SHRINK)
        else:  # a smaller step from the last solution
            assign(theta, theta_good)
            shrink = math.sqrt(shrink)
            if floor_good == math.inf or shrink > _SLOWEST:
                break
        floor = max(floor_good * shrink, units.w_min)
        ahead = 0.0
        if floor_before < math.inf:  # as if v were linear in the weights
            ahead = (floor_good - floor) / (floor_before - floor_good)
        for k in range(v.size):
            v[k] = good[k] + ahead * (good[k] - before[k])
    _at_weights(lay, units.e, 0.0, L, w, ln_q, W)
    assign(v, good)
    assign(theta, theta_good)
    evaluate(lay, lo, hi, v, ln_P, theta, W)
    best = offer(lay, v, theta, False, math.inf, W)[0]
    return best, steps, certificates


@kernel
def _rebase(lay: Integers, W: Work, ln_q: Vector, ln_P: Vector) -> None:
    """Make the best point the base; pairs that are not in the program keep theirs."""
    for h in range(horizon(lay) + 1):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            if W.L[p] == math.inf:
                continue
            ln_q[p] = math.log(max(W.best_q[p], LEAST))
            for k in range(lay[TRIPLE, h] + i, lay[TRIPLE, h + 1], m):
                ln_P[k] = math.log(max(W.best_P[k], LEAST))


@subroutine
def kl_step(
    lay: Integers, lo: Vector, hi: Vector, L: Vector, w: Vector, tol: float, ln_q: Vector,
    ln_P: Vector, v: Vector, theta: Vector, buffer: Vector, pi: Vector,
) -> Outcome:  # fmt: skip
    """Take a step of mirror descent in place, from the duals v, theta: the base becomes its end.

    ``buffer`` has `work_size` entries. The duals come back in units of 2^e, as in `normalize`.
    """
    H = horizon(lay)
    W = borrowed(carve(lay, buffer))
    excluded = mark(lay, lo, hi, L, W.pair, W.L)
    units = normalize(lay, L, w, W)
    for h in range(1, H + 1):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            W.L[p] -= W.w[h] * ln_q[p]
    W.slack[:] = 0.0
    goal = wanted_gap(units, tol)
    best, steps, certificates = _ascend(lay, lo, hi, goal, MAX_STEPS, ln_P, v, theta, W)
    if not best <= goal:  # a long step: approach the losses by halves from a small share
        v[:] = 0.0
        theta[:] = 0.0
        share = 2.0**-10
        while share <= 1.0:
            for h in range(1, H + 1):
                for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
                    if W.L[p] < math.inf:
                        W.L[p] = share * math.ldexp(L[p], -units.e) - W.w[h] * ln_q[p]
            wanted = goal if share == 1.0 else 1e-3 * units.w_min
            best, more, again = _ascend(lay, lo, hi, wanted, MAX_STEPS, ln_P, v, theta, W)
            steps += more
            certificates += again
            share *= 2.0
        if not best <= goal:
            best, more, again = _follow(lay, lo, hi, units, goal, L, w, ln_q, ln_P, v, theta, W)
            steps += more
            certificates += again
    if tol * units.w_max < best < math.inf:
        evaluate(lay, lo, hi, W.best_v, ln_P, W.best_theta, W)
        best = offer_kept(lay, pi, best, W)
    if best < math.inf:
        assign(v, W.best_v)
        assign(theta, W.best_theta)
        assign(pi, W.best_pi)
        _rebase(lay, W, ln_q, ln_P)
        if excluded:
            spread(lay, L, W.L, pi)
    return conclude(units, tol, best, steps, certificates, 0, WARM)


PROGRAM = Pointer(kl_step, OUTCOME(TABLE, *[VECTOR] * 4, types.float64, *[VECTOR] * 6))
