"""The projection of UOB-REPS: one mirror-descent step with relative entropy on triples.

    min over Delta(boxes) of  <q, L> + sum_{h=0..H} w_h sum_{s,a,s'} D( q(s,a,s') || q0(s,a,s') ),

``D(q||p) = q ln(q/p) - q + p``; a triple of layer H is a pair, and w_0 = w_1. With q = x P and
q0 = x0 P0 the entropy splits into ``x ln(x/x0) + x KL(P||P0)``. So this is the program on pairs of
`occupancy_certificate` with losses ``L - w ln x0`` and the *smooth* inner problem

    phi(v) = max_{P in box} <P, v> - w KL(P||P0),    P = clip(P0 exp((v - theta)/w), lo, hi),

whose dual in v is C^1: damped Newton steps, no proximal loop. A pair's scale exp(-theta/w) is the
root of a piecewise linear function, found as in the pair program. The curvature of phi is
(1/w)(diag P_F - P_F P_F^T/sum P_F) over the free entries F.

Certificate: for any v, with P the maximisers above and q the policy of x rolled through P,
F(q) - min F <= sum_h w_h KL(q_h||x_h).

A gap says nothing of states with hardly any mass, but these carry the memory of mirror descent: a
state of mass 1e-12 must grow when the losses of the others do. So the flow of *every* state is
balanced to a relative `BALANCE`, and the base is held as ln x0 and ln P0, not below ln `LEAST`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy import blocktri
from unbounded.core.occupancy.certificate import certify
from unbounded.core.occupancy.confidence import check_boxes
from unbounded.core.occupancy.dual import Work, carve, work_size
from unbounded.core.occupancy.ftrl import INFO, METHODS, Certificate, Solution, normalise
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
    _flat,
    dots,
)

MAX_STEPS = 60
BALANCE = 1e-6
LEAST = 1e-260  # of a base measure
_FAR = 1e100  # a pair's scale is looked for within this factor at a time
_STEEP = 600.0  # exponents of e are kept within this


class OccupancyKL:
    """Mirror descent over occupancy measures, starting from the uniform one.

    Parameters
    ----------
    layers : Layers
    lo, hi : array_like, shape (n_transitions,)
    tolerance : float, default 1e-8
        Stop when the certified gap is at most this times the smallest weight.

    Attributes
    ----------
    ln_q, ln_P : ndarray, shapes (n_pairs,) and (n_transitions,)
        Logarithms of the current iterate q(s,a) P(s'|s,a).

    Examples
    --------
    >>> layers = Layers([2], n_actions=2)
    >>> learner = OccupancyKL(layers, [0.5, 0.5], [0.5, 0.5])
    >>> solution = learner.step([0.0, 1.0, 0.0, 0.0, 0.0], weights=[1.0])
    >>> solution.q.round(4).tolist(), solution.certificate.solved
    ([1.0, 0.1345, 0.3655, 0.25, 0.25], True)
    """

    def __init__(
        self, layers: Layers, lo: npt.ArrayLike, hi: npt.ArrayLike, tolerance: float = 1e-8
    ) -> None:
        if not tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {tolerance}")
        self.layers = layers
        self.tolerance = float(tolerance)
        self.ln_q, self.ln_P = uniform_base(layers)
        self._work = np.empty(work_size(layers.table))
        self._info = np.zeros(INFO)
        self.set_boxes(lo, hi)

    def set_boxes(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Use these boxes from now on; they need not be nested."""
        lo, hi = check_boxes(self.layers, lo, hi)
        self.lo, self.hi = lo.copy(), hi.copy()

    def step(self, losses: npt.ArrayLike, weights: npt.ArrayLike) -> Solution:
        """Move q to the minimiser for this episode's ``losses`` (n_pairs,), ``weights`` (H,)."""
        L = _flat(losses, self.layers.n_pairs, "losses")
        w = _flat(weights, self.layers.horizon, "weights")
        if not np.all(np.isfinite(L)):
            raise ValueError("losses must be finite")
        if not (np.all(np.isfinite(w)) and np.all(w > 0)):
            raise ValueError(f"weights must be finite and positive, got {w.tolist()}")
        lay = self.layers.table
        pi = np.empty(self.layers.n_pairs)
        v, theta = np.zeros(self.layers.n_states), np.zeros(self.layers.n_pairs)
        kl_step(
            lay, self.lo, self.hi, L, w, self.tolerance, self.ln_q, self.ln_P, v, theta,
            self._work, pi, self._info,
        )  # fmt: skip
        info = self._info
        _, e = math.frexp(float(w.max()))
        certificate = Certificate(
            gap=float(info[0]), relative_gap=float(info[2]), solved=bool(info[7] == 2.0),
            method=METHODS[int(info[6])], newton_steps=int(info[3]), interior_iterations=0,
        )  # fmt: skip
        return Solution(
            np.exp(self.ln_q), pi, certificate, np.exp(self.ln_P), np.ldexp(v, e),
            np.ldexp(theta, e),
        )  # fmt: skip


def uniform_base(layers: Layers) -> tuple[Vector, Vector]:
    """Logarithms of q(s,a,s') = 1/(n_h A n_{h+1}), as q(s,a) and P(s'|s,a)."""
    pairs = np.array([1, *(n * layers.n_actions for n in layers.sizes)])  # of layers 0..H
    following = np.array(layers.sizes)
    ln_q = np.repeat(-np.log(pairs), pairs)
    ln_P = np.repeat(-np.log(following), pairs[:-1] * following)
    return ln_q, ln_P


# Kernels


@subroutine
def _evaluate(
    lay: Integers, lo: Vector, hi: Vector, v: Vector, ln_P: Vector, theta: Vector, W: Work
) -> float:
    """Dual value; fills W's P, x, bound, q, r, grad and theta. W.L has -w ln x0 in it."""
    H = lay.shape[1] - 2
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
    """P, theta and bound = phi(v) of the pairs of layer h."""
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
    """s in (1/_FAR, _FAR) with sum_j clip(e_j s, lo_j, hi_j) = 1, or the end that is nearer to it.

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
def _assemble(lay: Integers, lo: Vector, hi: Vector, damping: float, W: Work) -> None:
    """Newton matrix of the smooth dual into W.D, W.E; its diagonal into W.inverse.

    ``damping`` is relative to the mass of a state, so that steps do not depend on that.
    """
    H = lay.shape[1] - 2
    for k in range(W.D.size):
        W.D[k] = 0.0
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
                if W.r[k] > 1.5 * t:  # a starved state takes its step in the log domain
                    t = (W.r[k] - t) / math.log(W.r[k] / max(t, 1e-300))
                k = d + s * n + s
                W.D[k] += max((1.0 + damping) * t, 1e-300) * scale
                W.inverse[lay[STATE, h] + s] = W.D[k]
        if h == H:
            break
        r = lay[SIZE, h + 1]
        after = d + n * n if h > 0 else 0
        Dn = W.D[after : after + r * r]
        c = W.c[:m]
        for i in range(m):
            c[i] = x[i] * scale
        blocktri.transpose(r, m, W.P, lay[TRIPLE, h], W.rows)
        blocktri.add_gram(r, m, c, W.rows, Dn)
        if h > 0:
            for s in range(n):
                for j in range(r):
                    t = W.q[lay[STATE, h] + s] * scale * W.r[lay[STATE, h + 1] + j]
                    for i in range(s * A, s * A + A):
                        t -= c[i] * W.rows[i * r + j]
                    W.E[e + s * r + j] = t
            e += n * r
            d += n * n
        for i in range(m):  # curvature of phi: keep the free entries of each row
            free = 0.0
            for j in range(r):
                f = lay[TRIPLE, h] + j * m + i
                if lo[f] < W.P[f] and (W.P[f] < hi[f] or hi[f] >= 1.0):
                    free += W.P[f]
                    Dn[j * r + j] += c[i] * W.P[f]
                else:
                    W.rows[i * r + j] = 0.0
            c[i] = -c[i] / free if free > 0.0 else 0.0
        blocktri.add_gram(r, m, c, W.rows, Dn)


@subroutine
def _ascend(
    lay: Integers, lo: Vector, hi: Vector, goal: float, ln_P: Vector, v: Vector, theta: Vector,
    W: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """Newton's method until a certified gap is <= goal: the gap, steps and certificates.

    The point is in W's best_*, of q and P the logarithms.
    """
    S = lay[STATE, -1]
    best = math.inf
    steps = 0
    certificates = 0
    threshold = 1e-5
    value = _evaluate(lay, lo, hi, v, ln_P, theta, W)
    while True:
        size = 0.0
        imbalance = 0.0
        for k in range(1, S):
            size += abs(W.grad[k])
            if W.grad[k] != 0.0:
                imbalance = max(imbalance, abs(W.grad[k]) / max(W.q[k], W.r[k]))
        if not size < math.inf:
            break
        if (size <= threshold and imbalance <= BALANCE) or steps >= MAX_STEPS:
            certificates += 1
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
                W.best_pi[:] = W.pi_out
                for k in range(W.best_q.size):
                    W.best_q[k] = math.log(max(W.q_out[k], LEAST))
                for k in range(W.best_P.size):
                    W.best_P[k] = math.log(max(W.P[k], LEAST))
            if gap <= goal or steps >= MAX_STEPS:
                break
            threshold = min(0.1 * threshold, 0.1 * size)
            if threshold < 1e-15:
                break
            continue
        steps += 1
        _assemble(lay, lo, hi, 1e-2 * size, W)
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
        trial = value
        for _ in range(40):
            for k in range(1, S):
                v[k] = W.v_old[k] + t * W.dv[k]
            trial = _evaluate(lay, lo, hi, v, ln_P, theta, W)
            after = 0.0
            for k in range(1, S):
                after += W.grad[k] * W.dv[k]
            if trial >= value + 1e-4 * t * slope or (
                trial >= value - noise and after >= -0.8 * slope
            ):
                accepted = True
                break
            t *= 0.3
        if not accepted:
            steps = MAX_STEPS  # nothing more to gain: certify what there is
            v[:] = W.v_old
            trial = _evaluate(lay, lo, hi, v, ln_P, theta, W)
        value = trial
    return best, steps, certificates


@subroutine
def kl_step(
    lay: Integers, lo: Vector, hi: Vector, L: Vector, w: Vector, tol: float, ln_q: Vector,
    ln_P: Vector, v: Vector, theta: Vector, buffer: Vector, pi: Vector, info: Vector,
) -> bool:  # fmt: skip
    """One step in place: the base becomes the minimiser. v, theta: where to start.

    ``info`` as for `occupancy_ftrl.solve`; ``buffer`` has `work_size` entries. The duals come
    back in units of 2^e, as normalised there. Returns status > 0.
    """
    H = lay.shape[1] - 2
    W = carve(lay, buffer)
    e, w_min, _ = normalise(lay, L, w, W)
    w_max = 0.0
    for h in range(1, H + 1):
        w_max = max(w_max, W.w[h])
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            W.L[p] -= W.w[h] * ln_q[p]
    W.slack[:] = 0.0
    goal = max(tol * w_min, 1e-13 * w_max)
    best, steps, certificates = _ascend(lay, lo, hi, goal, ln_P, v, theta, W)
    if not best <= goal:  # a long step: approach the losses by halves from a small share
        v[:] = 0.0
        theta[:] = 0.0
        share = 2.0**-10
        while share <= 1.0:
            for h in range(1, H + 1):
                for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
                    W.L[p] = share * math.ldexp(L[p], -e) - W.w[h] * ln_q[p]
            wanted = goal if share == 1.0 else 1e-3 * w_min
            best, more, again = _ascend(lay, lo, hi, wanted, ln_P, v, theta, W)
            steps += more
            certificates += again
            share *= 2.0
    if best < math.inf:
        v[:] = W.best_v
        theta[:] = W.best_theta
        ln_P[:] = W.best_P
        ln_q[:] = W.best_q
        pi[:] = W.best_pi
    info[0] = math.ldexp(best, e)
    info[1] = best / w_min
    info[2] = best / w_max
    info[3] = steps
    info[4] = certificates
    info[5] = 0.0
    info[6] = 1.0
    info[7] = 2.0 if best <= goal else 1.0 if best <= tol * w_max else 0.0
    info[8] = W.gap[2] / w_max
    info[9] = W.gap[3] / w_max
    return best <= tol * w_max
