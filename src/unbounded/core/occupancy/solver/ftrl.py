"""Solve FTRL over the occupancy measures of a confidence set, each solve with its certificate.

    q = argmin over Delta(boxes) of  sum_{s,a} [ L(s,a) q(s,a) + w_h q(s,a) ln q(s,a) ]

The regularizer is the paper's, on pairs, with the convex sign (erratum E14); `certificate` has the
dual and the gap. `solve` makes these attempts, until a certified gap is small enough:

1. the closed form q_h = softmax(-L_h/w_h), while all boxes are the whole simplex (epoch 1): layers
   decouple;
2. Newton's method from the warm start (`newton`), over lists where few transitions are possible
   (`sparse`), there also without a warm start;
3. the interior point method (`interior_point`), from nothing; Newton's method polishes its point;
4. a last resort: the policy before, and a program of larger weights, whose gap bounds the true one.

Known transitions (lo = hi) go through the same code. q(s, a) is unique; the P that carries it is
not, so it is a witness and no more. A loss of +infinity forbids an action. Its pair, and states
that nothing can reach, are not in the program: `reach`. A solve that no attempt brings to the
tolerance takes the best that was certified, and says so: UNSOLVED.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from unbounded.core.arrays import Integers, Vector, require
from unbounded.core.occupancy.confidence import interior
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    TRIPLE,
    Layers,
    horizon,
    roll_forward,
)
from unbounded.core.occupancy.mdp import Markov
from unbounded.core.occupancy.reach import mark, spread
from unbounded.core.occupancy.solver import CLOSED_FORM, COLD, FALLBACK, WARM, Outcome
from unbounded.core.occupancy.solver.certificate import bounds, offer, offer_kept
from unbounded.core.occupancy.solver.dual import project
from unbounded.core.occupancy.solver.interior_point import interior_point
from unbounded.core.occupancy.solver.newton import PACE, newton
from unbounded.core.occupancy.solver.sparse import gather, listed, scatter, sparse
from unbounded.core.occupancy.solver.work import (
    OUTCOME,
    TABLE,
    VECTOR,
    Units,
    Work,
    carve,
    conclude,
    list_scratch,
    normalize,
    wanted_gap,
)
from unbounded.jit.kernel import Pointer, assign, borrowed, kernel, subroutine

KIND, EXPONENT, BOXES = range(3)  # of WarmStart.head
EMPTY, REAL, PLACEHOLDER = range(3)  # kinds: a placeholder's duals have no unit (E16)
_LARGEST_EXPONENT = 1 << 20  # of a unit 2^e, with space for the shifts of a learner's own unit
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


class Progress(NamedTuple):
    """Say how far a solve has come. The best point is in the work arrays, see `offer`."""

    gap: float  # of the best point, infinite if there is none
    method: int  # as in `Outcome`
    steps: int
    certificates: int
    iterations: int


def even_play(layers: Layers, lo: Vector, hi: Vector) -> tuple[Vector, Vector]:
    """Return q and pi before any solve: uniform actions, through the middle of every box."""
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
    """Raise w_h to max(C_h/eta, kappa mean(C)/eta): errata E15, E16. All zero while all C are."""
    total = 0.0
    for h in range(C.size):
        total += C[h]
    least = kappa * (total / C.size) / eta
    for h in range(C.size):
        w[h] = max(w[h], max(C[h] / eta, least))


@subroutine
def solve(
    lay: Integers, lo: Vector, hi: Vector, boxes: int, L: Vector, w: Vector, tol: float,
    memory: WarmStart, buffer: Vector, q: Vector, pi: Vector,
) -> Outcome:  # fmt: skip
    """Move q and pi (n_pairs), the last ones, to the minimizer.

    They stay as they are if nothing at all was found. ``boxes`` is any number that changes when lo,
    hi do (the epoch). ``memory`` (`new_memory`) is the warm start and is updated; ``buffer``
    (`work_size`) is scratch.
    """
    W = borrowed(carve(lay, buffer))
    start = borrowed(memory)
    excluded = mark(lay, lo, hi, L, W.pair, W.L)
    units = normalize(lay, L, w, W)
    goal = wanted_gap(units, tol)
    if _are_simplices(lo, hi):
        found = _closed_form(lay, W)
    else:
        few = sparse(hi)
        found = Progress(math.inf, COLD, 0, 0, 0)
        if _prepare(lay, lo, hi, boxes, few, units, start, W):
            found = _newton(lay, lo, hi, goal, few, start, W)
        if not found.gap <= goal:
            found = _interior_point(lay, lo, hi, goal, found, start, W)
        if not found.gap <= goal:
            found = _polish(lay, lo, hi, goal, found, start, W)
        if not found.gap <= tol * units.w_max:
            found = _last_resort(lay, lo, hi, tol, found, start, q, pi, W)
    start.head[KIND] = EMPTY
    start.head[EXPONENT] = units.e
    start.head[BOXES] = boxes
    if found.gap < math.inf:
        start.head[KIND] = PLACEHOLDER if units.placeholder else REAL
        _store(start, q, pi, W)
        if excluded:
            spread(lay, L, W.L, pi)
    return conclude(
        units, tol, found.gap, found.steps, found.certificates, found.iterations, found.method
    )


@kernel
def _are_simplices(lo: Vector, hi: Vector) -> bool:
    """Test whether all boxes are the whole simplex."""
    whole = True
    for k in range(lo.size):
        if lo[k] > 0.0 or hi[k] < 1.0:
            whole = False
            break
    return whole


@kernel
def _store(start: WarmStart, q: Vector, pi: Vector, W: Work) -> None:
    """Copy the best point to the warm start and to q, pi."""
    assign(start.v, W.best_v)
    assign(start.theta, W.best_theta)
    assign(start.P, W.best_P)
    assign(q, W.best_q)
    assign(pi, W.best_pi)


@subroutine
def _closed_form(lay: Integers, W: Work) -> Progress:
    """Solve over whole simplices: q_h = softmax(-L_h/w_h), v = theta = 0, P(.|s,a) = q_{h+1}."""
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
    gap = offer(lay, W.best_v, W.best_theta, False, math.inf, W)[0]
    return Progress(gap, CLOSED_FORM, 0, 1, 0)


@kernel
def _prepare(
    lay: Integers, lo: Vector, hi: Vector, boxes: int, few: bool, units: Units, start: WarmStart,
    W: Work,
) -> bool:  # fmt: skip
    """Bring the warm start into the boxes and units of this program; False if there is none."""
    head = start.head
    if head[KIND] == EMPTY:
        if few:
            interior(lay, lo, hi, start.P)
        return few
    if head[BOXES] != boxes:
        for h in range(horizon(lay)):
            m = lay[SIZE, h] * lay[ACTIONS, h]
            project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], start.P, W.c, W.pair)
    shift = int(head[EXPONENT]) - units.e
    if head[KIND] == REAL and not units.placeholder and shift != 0:
        for k in range(start.v.size):
            start.v[k] = math.ldexp(start.v[k], shift)
        for k in range(start.theta.size):
            start.theta[k] = math.ldexp(start.theta[k], shift)
    return True


@kernel
def _newton(
    lay: Integers, lo: Vector, hi: Vector, goal: float, few: bool, start: WarmStart, W: Work
) -> Progress:
    """Run Newton's method from the warm start, over lists if ``few`` transitions are possible."""
    method = COLD if start.head[KIND] == EMPTY else WARM
    if few:
        gap, steps, certificates = _by_lists(lay, lo, hi, goal, start, W)
    else:
        gap, steps, certificates = newton(
            lay, lo, hi, goal, math.inf, start.v, start.theta, start.P, start.pace, W
        )
    return Progress(gap, method, steps, certificates, 0)


@subroutine
def _by_lists(
    lay: Integers, lo: Vector, hi: Vector, goal: float, start: WarmStart, W: Work
) -> tuple[float, int, int]:
    """Run `newton` over lists of the possible transitions; W.best_P is over all of them again."""
    few = borrowed(listed(lay, hi, W))
    low, high, P = list_scratch(few, 0), list_scratch(few, 1), list_scratch(few, 2)
    gather(lay, lo, few, low)
    gather(lay, hi, few, high)
    gather(lay, start.P, few, P)
    best, steps, certificates = newton(
        lay, low, high, goal, math.inf, start.v, start.theta, P, start.pace, few
    )
    if best < math.inf:
        for k in range(P.size):
            P[k] = few.best_P[k]
        W.best_P[:] = 0.0
        scatter(lay, P, few, W.best_P)
    return best, steps, certificates


@subroutine
def _interior_point(
    lay: Integers, lo: Vector, hi: Vector, goal: float, found: Progress, start: WarmStart, W: Work
) -> Progress:
    """Run the interior point method, from nothing."""
    method = COLD if start.head[KIND] == EMPTY else FALLBACK
    gap, iterations = interior_point(lay, lo, hi, goal, found.gap, W)
    return Progress(gap, method, found.steps, found.certificates, iterations)


@subroutine
def _polish(
    lay: Integers, lo: Vector, hi: Vector, goal: float, found: Progress, start: WarmStart, W: Work
) -> Progress:
    """Run Newton's method from the best point."""
    assign(start.v, W.best_v)
    assign(start.theta, W.best_theta)
    assign(start.P, W.best_P)
    gap, steps, certificates = newton(
        lay, lo, hi, goal, found.gap, start.v, start.theta, start.P, start.pace, W
    )
    steps += found.steps
    certificates += found.certificates
    return Progress(gap, found.method, steps, certificates, found.iterations)


@subroutine
def _last_resort(
    lay: Integers, lo: Vector, hi: Vector, tol: float, found: Progress, start: WarmStart,
    q: Vector, pi: Vector, W: Work,
) -> Progress:  # fmt: skip
    """Find a good policy, with a gap that is proved, where the program could not be solved.

    The policy ``pi`` of an earlier solve may be better than what was found. And where weights are
    tiny beside the losses, larger ones w' >= w give a program that can be solved. As q ln q <= 0
    its bound holds for the true one, and with the entropies of q_h

        F_w(q) - min F_w <= F_w'(q) - g_w' + sum_h (w'_h - w_h) entropy_h.
    """
    best = found.gap
    if best < math.inf:
        assign(W.P, W.best_P)
        bounds(lay, lo, hi, W.best_v, W.best_theta, W.P, W.bound, W.slack)
        best = offer_kept(lay, pi, best, W)
        _store(start, q, pi, W)  # where it would go anyway; the work arrays are needed
    top = 0.0
    for p in range(1, W.L.size):
        if W.L[p] < math.inf:
            top = max(top, W.L[p])
    w = W.rho
    assign(w, W.w)
    least = math.inf
    for h in range(w.size):
        W.w[h] = max(w[h], _LEAST_WEIGHT * top)
        least = min(least, W.w[h])
    goal = tol * least
    gap, iterations = interior_point(lay, lo, hi, goal, math.inf, W)
    iterations += found.iterations
    for h in range(1, w.size):
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if W.best_q[p] > 0.0 and gap < math.inf:
                gap += -(W.w[h] - w[h]) * W.best_q[p] * math.log(W.best_q[p])
    assign(W.w, w)
    if gap < best:
        best = gap
    elif best < math.inf:
        assign(W.best_v, start.v)
        assign(W.best_theta, start.theta)
        assign(W.best_P, start.P)
        assign(W.best_q, q)
        assign(W.best_pi, pi)
    return Progress(best, found.method, found.steps, found.certificates, iterations)


_WARM_START = types.NamedTuple([types.int64[::1], *[VECTOR] * 4], WarmStart)
TYPE = OUTCOME(
    TABLE, VECTOR, VECTOR, types.int64, VECTOR, VECTOR, types.float64, _WARM_START, *[VECTOR] * 3
)
PROGRAM = Pointer(solve, TYPE)
