"""FTRL over the occupancy measures of a confidence set, each solve with its certificate.

    q = argmin over Delta(boxes) of  sum_{s,a} [ L(s,a) q(s,a) + w_h q(s,a) ln q(s,a) ]

The regulariser is the paper's, on pairs, with the convex sign (erratum E14).
``occupancy_certificate`` has the dual and the gap, ``occupancy_ssn`` the warm solver,
``occupancy_ipm`` the cold one. While all boxes are the whole simplex (epoch 1) layers decouple and
q_h = softmax(-L_h/w_h). Known transitions (lo = hi) go through the same code.

q(s, a) is unique; the P that carries it is not, so it is offered as a witness and no more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.certificate import certify, project
from unbounded.core.occupancy.confidence import check_boxes
from unbounded.core.occupancy.dual import Work, carve, work_size
from unbounded.core.occupancy.ipm import interior_point
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
    _flat,
)
from unbounded.core.occupancy.policies import Markov
from unbounded.core.occupancy.ssn import newton

METHODS = ("closed form", "warm", "cold", "fallback")
_HEADER = 7  # kind (0 empty, 1 real, 2 under the placeholder), exponent, boxes, whole, pace (3)
_ROUNDING = 1e-13  # no gap below this, relative to the largest weight, is asked for


class Certificate(NamedTuple):
    """What is proved about a solve: F(q) - min F <= gap, in the units of the losses.

    ``solved`` says that the gap is at most tolerance times the *smallest* weight, or at most 1e-13
    times the largest where that is more (rounding); ``relative_gap`` is the gap over the largest.
    """

    gap: float
    relative_gap: float
    solved: bool
    method: str
    newton_steps: int
    interior_iterations: int


class Solution(NamedTuple):
    """Occupancy measure, policy, certificate, and the dual point that proves it.

    ``q`` and ``pi`` are flat over pairs; ``transitions`` (a P in the boxes that carries q), ``v``
    (over states) and ``theta`` (over pairs) reproduce the certificate, see
    `unbounded.core.occupancy.certificate`.
    """

    q: Vector
    pi: Vector
    certificate: Certificate
    transitions: Vector
    v: Vector
    theta: Vector


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
        self._info = np.zeros(INFO)
        self._boxes = 0
        self.set_boxes(lo, hi)

    def set_boxes(self, lo: npt.ArrayLike, hi: npt.ArrayLike) -> None:
        """Use these boxes from now on (a new epoch); the warm start is projected on them."""
        lo, hi = check_boxes(self.layers, lo, hi)
        self.lo, self.hi = lo.copy(), hi.copy()
        self._boxes += 1

    def solve(self, losses: npt.ArrayLike, weights: npt.ArrayLike) -> Solution:
        """Minimise for cumulative ``losses`` (n_pairs,) and ``weights`` (H,) of layers 1..H.

        Weights must be positive, or all zero while no scale is known: then the losses must be
        zero too and q has the largest entropy (erratum E16).
        """
        L = _flat(losses, self.layers.n_pairs, "losses")
        w = _flat(weights, self.layers.horizon, "weights")
        if not np.all(np.isfinite(L)):
            raise ValueError("losses must be finite")
        if not (np.all(np.isfinite(w)) and (np.all(w > 0) or not np.any(w))):
            raise ValueError(
                f"weights must be finite and positive, or all zero; got {w.tolist()}: "
                "floor_weights keeps a layer without losses positive"
            )
        if not np.any(w) and np.any(L[1:]):
            raise ValueError("losses must be zero while all weights are zero")
        q, pi = np.empty(self.layers.n_pairs), np.empty(self.layers.n_pairs)
        solve(
            self.layers.table, self.lo, self.hi, self._boxes, L, w, self.tolerance, self.memory,
            self._work, q, pi, self._info,
        )  # fmt: skip
        info = self._info
        S, X = self.layers.n_states, self.layers.n_pairs
        e = int(self.memory[1])
        body = self.memory[_HEADER:]
        return Solution(
            q, pi,
            Certificate(
                gap=float(info[0]), relative_gap=float(info[2]), solved=bool(info[7] == 2.0),
                method=METHODS[int(info[6])], newton_steps=int(info[3]),
                interior_iterations=int(info[5]),
            ),
            transitions=body[S + X :].copy(),
            v=np.ldexp(body[:S], e), theta=np.ldexp(body[S : S + X], e),
        )  # fmt: skip

    def policy(self, solution: Solution) -> Markov:
        """The solution's policy as an object."""
        return Markov(self.layers, solution.pi)


INFO = 10


def new_memory(layers: Layers) -> Vector:
    """An empty warm start: a flat array, to be saved and loaded as it is."""
    memory = np.zeros(_HEADER + layers.n_states + layers.n_pairs + layers.n_transitions)
    memory[4:_HEADER] = 1.0, 1.0, 0.1
    return memory


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
def normalise(lay: Integers, L: Vector, w: Vector, W: Work) -> tuple[int, float, bool]:
    """Losses and weights in units of 2^e, the largest weight in [1/2, 1); smallest weight.

    Scaling is exact and comes first; then each layer's least loss is subtracted.
    """
    H = lay.shape[1] - 2
    top = 0.0
    for h in range(H):
        top = max(top, w[h])
    placeholder = not top > 0.0
    e = 0
    if not placeholder:
        _, e = math.frexp(top)
    least_w = 1.0
    W.L[0] = 0.0
    for h in range(1, H + 1):
        W.w[h] = 1.0 if placeholder else math.ldexp(w[h - 1], -e)
        least_w = min(least_w, W.w[h])
        least = math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            W.L[p] = 0.0 if placeholder else math.ldexp(L[p], -e)
            least = min(least, W.L[p])
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            W.L[p] -= least
    W.w[0] = W.w[1]
    return e, least_w, placeholder


@subroutine
def _decoupled(lay: Integers, W: Work) -> float:
    """Whole simplices: q_h = softmax(-L_h/w_h), v = theta = 0, P(.|s,a) = q_{h+1}."""
    H = lay.shape[1] - 2
    W.best_v[:] = 0.0
    W.best_theta[:] = 0.0
    W.bound[:] = 0.0
    W.slack[:] = 0.0
    for h in range(1, H + 1):
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
                W.best_P[lay[TRIPLE, h - 1] + s * before + k] = t / z
    gap = certify(
        lay, W.L, W.w, W.best_v, W.best_P, W.bound, W.slack, False, W.best_pi, W.best_q, W.mass,
        W.ln_x, W.gap,
    )  # fmt: skip
    W.gap[2] = W.gap[0]
    W.gap[3] = W.gap[1]
    return gap


@subroutine
def solve(
    lay: Integers, lo: Vector, hi: Vector, boxes: int, L: Vector, w: Vector, tol: float,
    memory: Vector, buffer: Vector, q: Vector, pi: Vector, info: Vector,
) -> bool:  # fmt: skip
    """One solve. ``boxes`` is any number that changes when lo, hi do (the epoch).

    ``memory`` (`new_memory`) is the warm start and is updated; ``buffer`` (`work_size`) is scratch.
    Fills q, pi (n_pairs) and info = [gap, gap/w_min, gap/w_max, Newton steps, certificates,
    interior iterations, method (index into METHODS), status (2: gap <= tol w_min, 1: gap <= tol
    w_max, 0: neither), KL part/w_max, slack part/w_max]. Returns status > 0.
    """
    H = lay.shape[1] - 2
    S = lay[STATE, H + 1]
    X = lay[PAIR, H + 1]
    W = carve(lay, buffer)
    e, w_min, placeholder = normalise(lay, L, w, W)
    v = memory[_HEADER : _HEADER + S]
    theta = memory[_HEADER + S : _HEADER + S + X]
    P = memory[_HEADER + S + X :]
    w_max = 0.0
    for h in range(1, H + 1):
        w_max = max(w_max, W.w[h])
    goal = max(tol * w_min, _ROUNDING * w_max)
    kind = memory[0]
    if kind == 0.0 or memory[2] != boxes:
        whole = 1.0
        for k in range(lo.size):
            if lo[k] > 0.0 or hi[k] < 1.0:
                whole = 0.0
                break
        memory[2] = boxes
        memory[3] = whole
        if whole == 0.0 and kind > 0.0:
            for h in range(H):
                m = lay[SIZE, h] * lay[ACTIONS, h]
                project(m, lay[SIZE, h + 1], lo, hi, lay[TRIPLE, h], P, W.c, W.pair)
    best = math.inf
    steps = 0
    certificates = 0
    iterations = 0
    method = 0
    if memory[3] == 1.0:
        best = _decoupled(lay, W)
        certificates = 1
    else:
        if kind > 0.0:
            method = 1
            if kind == 1.0 and not placeholder and e != memory[1]:
                shift = int(memory[1]) - e
                for k in range(S):
                    v[k] = math.ldexp(v[k], shift)
                for k in range(X):
                    theta[k] = math.ldexp(theta[k], shift)
            best, steps, certificates = newton(
                lay, lo, hi, goal, best, v, theta, P, memory[4:_HEADER], W
            )
        if not best <= goal:
            method = 3 if kind > 0.0 else 2
            best, iterations = interior_point(lay, lo, hi, goal, best, W)
            if not best <= goal:  # polish
                v[:] = W.best_v
                theta[:] = W.best_theta
                P[:] = W.best_P
                best, more, again = newton(
                    lay, lo, hi, goal, best, v, theta, P, memory[4:_HEADER], W
                )
                steps += more
                certificates += again
    memory[0] = 2.0 if placeholder else 1.0
    memory[1] = e
    if best < math.inf:
        v[:] = W.best_v
        theta[:] = W.best_theta
        P[:] = W.best_P
        q[:] = W.best_q
        pi[:] = W.best_pi
    else:
        memory[0] = 0.0
    info[0] = math.ldexp(best, e)
    info[1] = best / w_min
    info[2] = best / w_max
    info[3] = steps
    info[4] = certificates
    info[5] = iterations
    info[6] = method
    info[7] = (
        2.0 if best <= max(tol * w_min, _ROUNDING * w_max) else 1.0 if best <= tol * w_max else 0.0
    )
    info[8] = W.gap[2] / w_max
    info[9] = W.gap[3] / w_max
    return best <= tol * w_max
