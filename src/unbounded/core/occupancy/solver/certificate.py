"""The program over occupancy measures of a confidence set, and its duality-gap certificate.

The program of one episode is, over all q that some P in the boxes and some policy induce,

    F(q) = sum_{h=1..H} sum_{s, a in layer h} [ L(s,a) q(s,a) + w_h q(s,a) ln q(s,a) ]  ->  min.

For any multipliers ``v`` on states (zero at s_0) and ``theta`` on pairs let

    bound(s,a) = theta + sum_j [ (v_j - theta)_+ hi_j - (theta - v_j)_+ lo_j ],
    c(s,a) = L(s,a) + v(s) - bound(s,a)          (bound = 0 in layer H),
    x = softmax_h(-c/w_h),      g = -sum_h w_h ln sum_{layer h} exp(-c/w_h)  <=  min F,

because bound >= max <P, v> over the box, with equality at the greedy marginal value theta.

For any policy rolled forward through any P in the boxes, which gives an exactly feasible q,

    F(q) - g = sum_h w_h KL(q_h || x_h) + sum q(s,a) slack(s,a),
    slack = sum_j [ (v_j - theta)_+ (hi_j - P_j) + (theta - v_j)_+ (P_j - lo_j) ].

Every term is >= 0 and is computed as such, so nothing cancels. F is strongly convex, hence also
``||q_h - q*_h||_1 <= sqrt(2 gap/w_h)``. Pairs of infinite loss are in no sum (`reach`).
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, dots, horizon
from unbounded.core.occupancy.solver.sparse import flow
from unbounded.core.occupancy.solver.work import Work
from unbounded.jit.kernel import assign, kernel, subroutine

_MASS = 1e-9  # what a layer's mass may be off by; it is 1 to rounding


@subroutine
def bounds(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, theta: Vector, P: Vector, bound: Vector,
    slack: Vector,
) -> None:  # fmt: skip
    """Compute bound(s, a) and slack(s, a) of every pair."""
    H = horizon(lay)
    for h in range(H):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        p = lay[PAIR, h]
        u = bound[p : p + m]
        z = slack[p : p + m]
        th = theta[p : p + m]
        for i in range(m):
            u[i] = th[i]
            z[i] = 0.0
        for j in range(lay[SIZE, h + 1]):
            k = lay[TRIPLE, h] + j * m
            a = lo[k : k + m]
            b = hi[k : k + m]
            y = P[k : k + m]
            vj = v[lay[STATE, h + 1] + j]
            for i in range(m):
                d = vj - th[i]
                up = max(d, 0.0)
                down = max(-d, 0.0)
                u[i] += up * b[i] - down * a[i]
                z[i] += up * (b[i] - y[i]) + down * (y[i] - a[i])
    for p in range(lay[PAIR, H], lay[PAIR, H + 1]):
        bound[p] = 0.0
        slack[p] = 0.0


@subroutine
def divergence(q: float, x: float, ln_x: float) -> float:
    """Compute q ln(q/x) - q + x >= 0 without cancellation near q = x."""
    if q <= 0.0:
        return x
    d = q - x
    if abs(d) <= 1e-3 * x:
        r = d / x
        return x * r * r * (0.5 - r * (1.0 / 6.0 - r * (1.0 / 12.0 - r * (0.05 - r / 30.0))))
    return max(q * (math.log(q) - ln_x) - d, 0.0)


@subroutine
def certify(
    lay: Integers, L: Vector, w: Vector, v: Vector, P: Vector, bound: Vector, slack: Vector,
    given: bool, pi: Vector, q: Vector, mass: Vector, ln_x: Vector, begin: Integers, to: Integers,
) -> tuple[float, float]:  # fmt: skip
    """Bound the duality gap of ``pi`` rolled through ``P`` by the dual point behind ``bound``.

    ``w`` is (H + 1). If ``given`` the policy is ``pi``, else ``pi`` becomes the dual softmax's.
    ``P`` is over the lists ``begin``, ``to`` of `sparse`, or over all transitions without.
    Fills q (pairs) and mass (states); ``ln_x`` (states) is scratch. Returns the two parts of the
    gap, sum w KL and sum q slack; infinity if rows of ``P`` do not sum to one.
    """
    H = horizon(lay)
    sum_kl = 0.0
    sum_slack = 0.0
    mass[0] = 1.0
    pi[0] = 1.0
    for h in range(H + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        p0 = lay[PAIR, h]
        if h == 0:
            q[0] = 1.0
            sum_slack += slack[0]
        else:
            wh = w[h]
            top = -math.inf
            for s in range(n):
                vs = v[lay[STATE, h] + s]
                p = p0 + s * A
                least = math.inf
                for a in range(A):
                    least = min(least, L[p + a] + vs - bound[p + a])
                if least == math.inf:  # nothing gets here
                    ln_x[s] = -math.inf
                    if not given:
                        for a in range(A):
                            pi[p + a] = 1.0 / A
                    continue
                z = 0.0
                for a in range(A):
                    e = math.exp(-(L[p + a] + vs - bound[p + a] - least) / wh)
                    z += e
                    if not given:
                        pi[p + a] = e
                if not given:
                    for a in range(A):
                        pi[p + a] /= z
                ln_x[s] = -least / wh + math.log(z)
                top = max(top, ln_x[s])
            z = 0.0
            for s in range(n):
                z += math.exp(ln_x[s] - top)
            top += math.log(z)
            kl = 0.0
            sl = 0.0
            for s in range(n):
                ln = ln_x[s] - top
                qs = mass[lay[STATE, h] + s]
                p = p0 + s * A
                if given:
                    vs = v[lay[STATE, h] + s]
                    for a in range(A):
                        ln_xa = -(L[p + a] + vs - bound[p + a]) / wh - top
                        kl += divergence(qs * pi[p + a], math.exp(ln_xa), ln_xa)
                else:
                    kl += divergence(qs, math.exp(ln), ln)
                for a in range(A):
                    q[p + a] = qs * pi[p + a]
                    sl += q[p + a] * slack[p + a]
            sum_kl += wh * kl
            sum_slack += sl
        if h < H:
            m = n * A
            if begin.size > 0:
                flow(lay, h, q, P, begin, to, mass)
            else:
                into = mass[lay[STATE, h + 1] :]
                dots(m, lay[SIZE, h + 1], q[p0 : p0 + m], P, lay[TRIPLE, h], into)
            total = 0.0
            for k in range(lay[STATE, h + 1], lay[STATE, h + 2]):
                total += mass[k]
            if not abs(total - 1.0) <= _MASS:
                return math.inf, 0.0
    return sum_kl, sum_slack


@kernel
def offer(
    lay: Integers, v: Vector, theta: Vector, given: bool, best: float, W: Work
) -> tuple[float, float, float]:
    """Certify the dual point (v, theta) with W.P; it becomes the best if its gap is below ``best``.

    W.bound and W.slack belong to the point; ``given`` as for `certify`, of W.pi_out. Returns the
    best gap, this one and its slack part. The best point is in W.best_v, best_theta, best_P,
    best_q and best_pi.
    """
    kl, slack = certify(
        lay, W.L, W.w, v, W.P, W.bound, W.slack, given, W.pi_out, W.q_out, W.mass, W.ln_x, W.begin,
        W.to,
    )  # fmt: skip
    gap = kl + slack
    if gap < best:
        best = gap
        assign(W.best_v, v)
        assign(W.best_theta, theta)
        assign(W.best_P, W.P)
        assign(W.best_q, W.q_out)
        assign(W.best_pi, W.pi_out)
    return best, gap, slack


@kernel
def offer_kept(lay: Integers, pi: Vector, best: float, W: Work) -> float:
    """Certify the policy ``pi`` of an earlier solve against the best dual point.

    For a solve that fails: what it found may be poorer. W.P, W.bound and W.slack belong to the best
    point. Returns the best gap.
    """
    assign(W.pi_out, pi)
    return offer(lay, W.best_v, W.best_theta, True, best, W)[0]
