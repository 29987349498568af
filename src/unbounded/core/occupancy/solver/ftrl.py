"""FTRL over the occupancy measures of a confidence set, each solve with its certificate.

    q = argmin over Delta(boxes) of  sum_{s,a} [ L(s,a) q(s,a) + w_h q(s,a) ln q(s,a) ]

The regulariser is the paper's, on pairs, with the convex sign (erratum E14). `certificate` has the
dual and the gap, `ssn` the warm solver, `ipm` the cold one. While all boxes are the whole simplex
(epoch 1) layers decouple and q_h = softmax(-L_h/w_h). Known transitions (lo = hi) go through the
same code.

q(s, a) is unique; the P that carries it is not, so it is offered as a witness and no more.

A loss of +infinity forbids an action. Its pair, and states that nothing can reach, are not in the
program: `reach`. A solve that no method brings to the tolerance keeps the better of what it found
and of the policy before, and says so: UNSOLVED.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import check_boxes
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    TRIPLE,
    Layers,
    horizon,
    roll_forward,
)
from unbounded.core.occupancy.policies import Markov
from unbounded.core.occupancy.reach import checked_losses, mark, spread
from unbounded.core.occupancy.solver.certificate import bounds
from unbounded.core.occupancy.solver.incumbent import offer, offer_kept
from unbounded.core.occupancy.solver.interior_point import interior_point
from unbounded.core.occupancy.solver.iterate import interior
from unbounded.core.occupancy.solver.newton import PACE, newton
from unbounded.core.occupancy.solver.outcome import (
    CLOSED_FORM,
    COLD,
    FALLBACK,
    WARM,
    Outcome,
    Solution,
    certificate,
)
from unbounded.core.occupancy.solver.projection import project
from unbounded.core.occupancy.solver.sparse import gather, listed, scatter, sparse
from unbounded.core.occupancy.solver.units import conclude, normalise, wanted_gap
from unbounded.core.occupancy.solver.work import KL, SLACK, Work, carve, list_room, work_size
from unbounded.core.state_validation import require
from unbounded.jit.kernel import assign, borrowed, subroutine
from unbounded.validation import checked_vector

KIND, EXPONENT, BOXES = range(3)  # of WarmStart.head
EMPTY, REAL, PLACEHOLDER = range(3)  # kinds: a placeholder's duals have no unit (E16)
_LARGEST_EXPONENT = 1 << 20  # of a unit 2^e, with room for the shifts of a learner's own unit
_LEAST_WEIGHT = 1e-8  # of the largest loss: smaller ones may be too small to solve for


class WarmStart(NamedTuple):
    """Start the next solve from the last one: its duals, and transitions that carry its q."""

    head: Integers  # KIND, EXPONENT of the unit 2^e of v and theta, BOXES that P is in
    pace: Vector  # of `newton`
    v: Vector  # states
    theta: Vector  # pairs
    P: Vector  # triples

    def check(self) -> None:
        """Reject what no solve can have left."""
        kind, exponent, boxes = self.head.tolist()
        require(kind in (EMPTY, REAL, PLACEHOLDER), "a warm start has no such kind")
        require(abs(exponent) <= _LARGEST_EXPONENT, "a warm start has no such unit")
        require(boxes >= 0, "a warm start has no such boxes")
        require(np.all(self.pace > 0.0), "the pace of Newton's method is positive")


class OccupancyFTRL:
    """Solver with a warm start; one object follows one sequence of losses.

    Parameters
    ----------
    layers : Layers
    lo, hi : array_like, shape (n_transitions,)
        Boxes of the confidence set (`ConfidenceSet.lo`, ``hi``; `known` for known transitions).
    tolerance : float, default 1e-8
        Stop when the certified gap is at most this times the smallest weight.

    Examples
    --------
    >>> layers = Layers([2, 2], n_actions=2)
    >>> solver = OccupancyFTRL(layers, np.zeros(10), np.ones(10))
    >>> losses = layers.pack_pairs([[[1, 0], [0, 0]], [[0, 0], [0, 3]]])
    >>> solution = solver.solve(losses, weights=[1.0, 1.0])
    >>> solution.q[1:5].round(4).tolist()
    [0.1092, 0.2969, 0.2969, 0.2969]
    >>> solution.certificate.solved, solution.certificate.method
    (True, 'closed form')
    """

    def __init__(
        self, layers: Layers, lo: npt.ArrayLike, hi: npt.ArrayLike, tolerance: float = 1e-8
    ) -> None:
        if not tolerance > 0:
            raise ValueError(f"tolerance must be positive, got {tolerance}")
        self.layers = layers
        self.tolerance = float(tolerance)
        self.memory = new_memory(layers)
        self._work = np.empty(work_size(layers.table))
        self._boxes = 0
        self.set_boxes(lo, hi)
        self._q, self._pi = even_play(layers, self.lo, self.hi)

    def set_boxes(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Use these boxes from now on (a new epoch); the warm start is projected on them."""
        lo, hi = check_boxes(self.layers, lo, hi)
        self.lo, self.hi = lo.copy(), hi.copy()
        self._boxes += 1

    def solve(self, losses: npt.ArrayLike, weights: npt.ArrayLike) -> Solution:
        """Minimise for cumulative ``losses`` (n_pairs,) and ``weights`` (H,) of layers 1..H.

        Weights must be positive, or all zero while no scale is known: then the losses must be
        zero too and q has the largest entropy (erratum E16). A loss of +inf forbids an action.
        """
        L = checked_losses(self.layers, losses)
        w = checked_vector("weights", weights, self.layers.horizon)
        if not (np.all(np.isfinite(w)) and (np.all(w > 0) or not np.any(w))):
            raise ValueError(
                f"weights must be finite and positive, or all zero; got {w.tolist()}: "
                "floor_weights keeps a layer without losses positive"
            )
        if not np.any(w) and np.any(L[1:][np.isfinite(L[1:])]):
            raise ValueError("losses must be zero while all weights are zero")
        outcome = solve(
            self.layers.table, self.lo, self.hi, self._boxes, L, w, self.tolerance, self.memory,
            self._work, self._q, self._pi,
        )  # fmt: skip
        q, pi = self._q.copy(), self._pi.copy()
        last, e = self.memory, int(self.memory.head[EXPONENT])
        v, theta = np.ldexp(last.v, e), np.ldexp(last.theta, e)
        return Solution(q, pi, certificate(outcome), last.P.copy(), v, theta)

    def policy(self, solution: Solution) -> Markov:
        """The solution's policy as an object."""
        return Markov(self.layers, solution.pi)


def even_play(layers: Layers, lo: Vector, hi: Vector) -> tuple[Vector, Vector]:
    """q and pi before any solve: uniform actions, through the middle of every box."""
    pi, P = Markov.uniform(layers).pi, np.empty(layers.n_transitions)
    q = np.empty(layers.n_pairs)
    interior(layers.table, lo, hi, P)
    roll_forward(layers.table, P, pi, np.empty(layers.n_states), q)
    return q, pi


def new_memory(layers: Layers) -> WarmStart:
    """Make an empty warm start."""
    return WarmStart(
        np.zeros(3, np.int64), np.array(PACE), np.zeros(layers.n_states),
        np.zeros(layers.n_pairs), np.zeros(layers.n_transitions),
    )  # fmt: skip


# Kernels


@subroutine
def floor_weights(C: Vector, eta: float, kappa: float, w: Vector) -> None:
    """w_h = max(w_h, C_h/eta, kappa mean(C)/eta): errata E15, E16. All zero while all C are."""
    total = 0.0
    for h in range(C.size):
        total += C[h]
    least = kappa * (total / C.size) / eta
    for h in range(C.size):
        w[h] = max(w[h], max(C[h] / eta, least))


@subroutine
def _decoupled(lay: Integers, W: Work) -> float:
    """Whole simplices: q_h = softmax(-L_h/w_h), v = theta = 0, P(.|s,a) = q_{h+1}; the gap."""
    W.best_v[:] = 0.0
    W.best_theta[:] = 0.0
    W.bound[:] = 0.0
    W.slack[:] = 0.0
    for h in range(1, horizon(lay) + 1):
        n = lay[SIZE, h]
        A = lay[ACTIONS, h]
        before = lay[SIZE, h - 1] * lay[ACTIONS, h - 1]
        z = 0.0
        for i in range(n * A):
            W.x[i] = math.exp(-W.L[lay[PAIR, h] + i] / W.w[h])
            z += W.x[i]
        for s in range(n):
            t = 0.0
            for i in range(s * A, s * A + A):
                t += W.x[i]
            for k in range(before):
                W.P[lay[TRIPLE, h - 1] + s * before + k] = t / z
    return offer(lay, W.best_v, W.best_theta, False, math.inf, W)[0]


@subroutine
def _last_resort(
    lay: Integers, lo: Vector, hi: Vector, tol: float, best: float, pi: Vector, W: Work
) -> tuple[float, int]:
    """For a program that could not be solved: a policy that is good and a gap that is proved.

    The policy ``pi`` of an earlier solve may be better than what was found. And where weights are
    tiny beside the losses, larger ones w' >= w give a program that can be solved. As q ln q <= 0
    its bound holds for the true one, and with the entropies of q_h

        F_w(q) - min F_w <= F_w'(q) - g_w' + sum_h (w'_h - w_h) entropy_h.

    Returns the best gap and the interior point method's iterations.
    """
    if best < math.inf:
        assign(W.P, W.best_P)
        bounds(lay, lo, hi, W.best_v, W.best_theta, W.P, W.bound, W.slack)
        best = offer_kept(lay, pi, best, W)
    top = 0.0
    for p in range(1, W.L.size):
        if W.L[p] < math.inf:
            top = max(top, W.L[p])
    w = np.zeros(W.w.size)
    assign(w, W.w)
    least = math.inf
    for h in range(w.size):
        W.w[h] = max(w[h], _LEAST_WEIGHT * top)
        least = min(least, W.w[h])
    best_v, best_theta = np.zeros(W.best_v.size), np.zeros(W.best_theta.size)
    best_P, best_q, best_pi = np.zeros(W.P.size), np.zeros(W.best_q.size), np.zeros(W.best_pi.size)
    assign(best_v, W.best_v)
    assign(best_theta, W.best_theta)
    assign(best_P, W.best_P)
    assign(best_q, W.best_q)
    assign(best_pi, W.best_pi)
    kl, slack = W.parts[KL], W.parts[SLACK]
    goal = tol * least
    gap, iterations = interior_point(lay, lo, hi, goal, math.inf, W)
    for h in range(1, w.size):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.best_q[p] > 0.0 and gap < math.inf:
                rise = -(W.w[h] - w[h]) * W.best_q[p] * math.log(W.best_q[p])
                gap += rise
                W.parts[KL] += rise
    assign(W.w, w)
    if gap < best:
        return gap, iterations
    assign(W.best_v, best_v)
    assign(W.best_theta, best_theta)
    assign(W.best_P, best_P)
    assign(W.best_q, best_q)
    assign(W.best_pi, best_pi)
    W.parts[KL] = kl
    W.parts[SLACK] = slack
    return best, iterations


@subroutine
def _by_lists(
    lay: Integers, lo: Vector, hi: Vector, goal: float, v: Vector, theta: Vector, P: Vector,
    pace: Vector, W: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """`newton` over the possible transitions; W.best_P is over all of them again."""
    few = borrowed(listed(lay, hi, W))
    low, high, start = list_room(few, 0), list_room(few, 1), list_room(few, 2)
    gather(lay, lo, few, low)
    gather(lay, hi, few, high)
    gather(lay, P, few, start)
    best, steps, certificates = newton(lay, low, high, goal, math.inf, v, theta, start, pace, few)
    if best < math.inf:
        for k in range(start.size):
            start[k] = few.best_P[k]
        W.best_P[:] = 0.0
        scatter(lay, start, few, W.best_P)
    return best, steps, certificates


@subroutine
def solve(
    lay: Integers, lo: Vector, hi: Vector, boxes: int, L: Vector, w: Vector, tol: float,
    memory: WarmStart, buffer: Vector, q: Vector, pi: Vector,
) -> Outcome:  # fmt: skip
    """One solve, which moves q and pi (n_pairs), the last ones, to the minimiser.

    They stay as they are if nothing at all was found. ``boxes`` is any number that changes when lo,
    hi do (the epoch). ``memory`` (`new_memory`) is the warm start and is updated; ``buffer``
    (`work_size`) is scratch.
    """
    W = borrowed(carve(lay, buffer))
    excluded = mark(lay, lo, hi, L, W.pair, W.L)
    units = normalise(lay, L, w, W)
    head, pace, v, theta, P = borrowed(memory)
    goal = wanted_gap(units, tol)
    kind = head[KIND]
    whole = True
    for k in range(lo.size):
        if lo[k] > 0.0 or hi[k] < 1.0:
            whole = False
            break
    few = not whole and sparse(hi)
    if kind == EMPTY or head[BOXES] != boxes:
        head[BOXES] = boxes
        if not whole and kind != EMPTY:
            for h in range(horizon(lay)):
                m = lay[SIZE, h] * lay[ACTIONS, h]
                project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], P, W.c, W.pair)
    best = math.inf
    steps = 0
    certificates = 0
    iterations = 0
    method = CLOSED_FORM
    if whole:
        best = _decoupled(lay, W)
        certificates = 1
    else:
        if kind == EMPTY and few:
            interior(lay, lo, hi, P)
        if kind != EMPTY or few:
            method = WARM if kind != EMPTY else COLD
            shift = int(head[EXPONENT]) - units.e
            if kind == REAL and not units.placeholder and shift != 0:
                for k in range(v.size):
                    v[k] = math.ldexp(v[k], shift)
                for k in range(theta.size):
                    theta[k] = math.ldexp(theta[k], shift)
            if few:
                best, steps, certificates = _by_lists(lay, lo, hi, goal, v, theta, P, pace, W)
            else:
                best, steps, certificates = newton(lay, lo, hi, goal, best, v, theta, P, pace, W)
        if not best <= goal:
            method = COLD if kind == EMPTY else FALLBACK
            best, iterations = interior_point(lay, lo, hi, goal, best, W)
            if not best <= goal:  # polish
                assign(v, W.best_v)
                assign(theta, W.best_theta)
                assign(P, W.best_P)
                best, more, again = newton(lay, lo, hi, goal, best, v, theta, P, pace, W)
                steps += more
                certificates += again
        if not best <= tol * units.w_max:
            best, more = _last_resort(lay, lo, hi, tol, best, pi, W)
            iterations += more
    head[KIND] = PLACEHOLDER if units.placeholder else REAL
    head[EXPONENT] = units.e
    if best < math.inf:
        assign(v, W.best_v)
        assign(theta, W.best_theta)
        assign(P, W.best_P)
        assign(q, W.best_q)
        assign(pi, W.best_pi)
        if excluded:
            spread(lay, L, W.L, pi)
    else:
        head[KIND] = EMPTY
    return conclude(units, tol, best, steps, certificates, iterations, method, W)
