"""The projection of UOB-REPS: one mirror-descent step with relative entropy on triples.

    min over Delta(boxes) of  <q, L> + sum_{h=0..H} w_h sum_{s,a,s'} D( q(s,a,s') || q0(s,a,s') ),

``D(q||p) = q ln(q/p) - q + p``; a triple of layer H is a pair, and w_0 = w_1. With q = x P and
q0 = x0 P0 the entropy splits into ``x ln(x/x0) + x KL(P||P0)``. So this is the program on pairs of
`certificate` with losses ``L - w ln x0`` and the *smooth* inner problem

    phi(v) = max_{P in box} <P, v> - w KL(P||P0),    P = clip(P0 exp((v - theta)/w), lo, hi),

whose dual in v is C^1 (`kl_dual`): damped Newton steps, no proximal loop.

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

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import check_boxes
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, TRIPLE, Layers, horizon
from unbounded.core.occupancy.reach import checked_losses, mark, spread
from unbounded.core.occupancy.solver.ascent import (
    direction,
    good_step,
    imbalance,
    slope_along,
    step_to,
)
from unbounded.core.occupancy.solver.incumbent import offer, offer_kept
from unbounded.core.occupancy.solver.iterate import interior
from unbounded.core.occupancy.solver.kl_dual import assemble, evaluate
from unbounded.core.occupancy.solver.outcome import WARM, Outcome, Solution, certificate
from unbounded.core.occupancy.solver.units import Units, conclude, normalise, wanted_gap
from unbounded.core.occupancy.solver.work import Work, carve, work_size
from unbounded.jit.kernel import assign, borrowed, kernel, subroutine
from unbounded.validation import checked_vector

MAX_STEPS = 60
BALANCE = 1e-6
LEAST = 1e-260  # of a base measure
_TRIES = 40  # of a line search
_SHRINK = 0.25  # of the weights, from solve to solve on the way to small ones, at best
_SLOWEST = 0.9999  # ... and at worst
_STAGE_STEPS = 20  # of Newton's method, for each of these
_FOLLOW_STEPS = 2000  # and for all


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
        self._pi = layers.even
        self._work = np.empty(work_size(layers.table))
        self.set_boxes(lo, hi)

    def set_boxes(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Use these boxes from now on; they need not be nested."""
        lo, hi = check_boxes(self.layers, lo, hi)
        self.lo, self.hi = lo.copy(), hi.copy()

    def step(self, losses: npt.ArrayLike, weights: npt.ArrayLike) -> Solution:
        """Move q to the minimiser for this episode's ``losses`` (n_pairs,), ``weights`` (H,).

        A loss of +inf forbids an action.
        """
        L = checked_losses(self.layers, losses)
        w = checked_vector("weights", weights, self.layers.horizon)
        if not (np.all(np.isfinite(w)) and np.all(w > 0)):
            raise ValueError(f"weights must be finite and positive, got {w.tolist()}")
        lay = self.layers.table
        pi = self._pi
        v, theta = np.zeros(self.layers.n_states), np.zeros(self.layers.n_pairs)
        outcome = kl_step(
            lay, self.lo, self.hi, L, w, self.tolerance, self.ln_q, self.ln_P, v, theta,
            self._work, pi,
        )  # fmt: skip
        _, e = math.frexp(float(w.max()))
        q, P = self._iterate(L)
        return Solution(q, pi.copy(), certificate(outcome), P, np.ldexp(v, e), np.ldexp(theta, e))

    def _iterate(self, L: Vector) -> tuple[Vector, Vector]:
        """q and P: not the base of pairs that are not in the program, which they keep."""
        lay, q, P = self.layers.table, np.exp(self.ln_q), np.exp(self.ln_P)
        marks = np.empty(self.layers.n_pairs)
        if mark(lay, self.lo, self.hi, L, self._work, marks):
            dead, middle = np.isinf(marks), np.empty_like(P)
            q[dead] = 0.0
            interior(lay, self.lo, self.hi, middle)
            for h in range(self.layers.horizon):
                first, end = lay[TRIPLE, h], lay[TRIPLE, h + 1]
                rows = np.tile(dead[lay[PAIR, h] : lay[PAIR, h + 1]], int(lay[SIZE, h + 1]))
                P[first:end][rows] = middle[first:end][rows]
        return q, P


def uniform_base(layers: Layers) -> tuple[Vector, Vector]:
    """Logarithms of q(s,a,s') = 1/(n_h A n_{h+1}), as q(s,a) and P(s'|s,a)."""
    pairs = np.array([1, *(n * layers.n_actions for n in layers.sizes)])  # of layers 0..H
    following = np.array(layers.sizes)
    ln_q = np.repeat(-np.log(pairs), pairs)
    ln_P = np.repeat(-np.log(following), pairs[:-1] * following)
    return ln_q, ln_P


# Kernels


@kernel
def _largest_imbalance(W: Work) -> float:
    """Of any state, relative to its flow."""
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
    """Move v along W.dv; the value there, and success."""
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
    """Newton's method until a certified gap is <= goal: the gap, steps and certificates."""
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
    """W.w and W.L for weights that are at least ``floor``, in units of 2^e."""
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
    """Weights as large as the losses, then smaller and smaller, each solution the next start.

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
    before = v.copy()  # the last two solutions, and the weights that they are for
    good = v.copy()
    theta_good = theta.copy()
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
    """The base becomes the best point; pairs that are not in the program keep theirs."""
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
    """One step in place: the base becomes the minimiser. v, theta: where to start.

    ``buffer`` has `work_size` entries. The duals come back in units of 2^e, as in `normalise`.
    """
    H = horizon(lay)
    W = borrowed(carve(lay, buffer))
    excluded = mark(lay, lo, hi, L, W.pair, W.L)
    units = normalise(lay, L, w, W)
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
    return conclude(units, tol, best, steps, certificates, 0, WARM, W)
