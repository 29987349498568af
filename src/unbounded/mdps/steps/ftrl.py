"""FTRL over the occupancy measures of a confidence set: estimate, weigh, solve.

    L_hat += l_hat,   q~ = argmin over Delta(boxes) of <q, L_hat> + sum_h w_h sum q ln q.

Estimates and weights are in units of 2^unit, the largest exponent of a layer's scale: any finite
float64 is a legal loss, and a common factor 2^k changes that one number and nothing else.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, NamedTuple

import numpy as np

from unbounded.core.arrays import ROUNDING, Exponent, Integers, Scratch, Sizes, Values, Vector
from unbounded.core.occupancy.layout import PAIR, Layers
from unbounded.core.occupancy.solver import FALLBACK, UNSOLVED, Outcome
from unbounded.core.occupancy.solver.ftrl import (
    EXPONENT,
    WarmStart,
    even_play,
    floor_weights,
    new_memory,
)
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.scaled import shift_each
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.spec import NO_SOLVES, Solves
from unbounded.mdps.steps.boxes import Boxes

_MOST = 2.0**200  # of estimates in units of 2^unit
_LARGEST = sys.float_info.max  # in place of infinity, which no saved learner has
_NONE = -(1 << 30)  # below every exponent

Bounds = Annotated[Vector, Values(-1.0, 1.0 + ROUNDING)]  # probabilities; -1: not known


class Estimates(NamedTuple):
    """Estimated losses so far and the weights of the regularizer."""

    unit: Exponent
    L_hat: Annotated[Vector, Values(-_MOST, _MOST)]  # pairs; infinite where not allowed
    since: Sizes  # pairs: sizes of what was added to L_hat since the last solve
    w: Sizes  # layers
    w_before: Scratch  # layers


class Solver(NamedTuple):
    """The last solution and what the next solve begins with."""

    solves: Solves
    q: Sizes  # pairs: q~
    pi: Vector  # pairs: its policy
    u: Bounds  # states: upper occupancy bounds of pi, -1 if not known yet
    memory: WarmStart
    work: Scratch


def new_estimates(layers: Layers) -> Estimates:
    """Return zeros, infinite where an action is not allowed."""
    X, H = layers.n_pairs, layers.horizon
    return Estimates(0, layers.barred, np.zeros(X), np.zeros(H), np.zeros(H))


def new_solver(layers: Layers, boxes: Boxes) -> Solver:
    """Return even play, before any solve."""
    q, pi = even_play(layers, boxes.lo, boxes.hi)
    return Solver(
        NO_SOLVES, q, pi, np.full(layers.n_states, -1.0), new_memory(layers),
        np.zeros(work_size(layers.table)),
    )  # fmt: skip


# Kernels


@kernel
def estimate(
    lay: Integers, estimates: Estimates, q: Vector, h: int, p: int, l: float, c: float, u: float,
    own: float, gamma: float, limit: float,
) -> bool:  # fmt: skip
    """Estimate a loss ``l`` of pair ``p`` of layer ``h``, less the center ``c``.

    L_hat += (l - c)/(u + gamma) on p, and L_hat -= c gamma/(own q~ + gamma) on the whole layer.
    Returns whether p has more than ``limit`` since the last solve.
    """
    due = False
    l -= c
    if l != 0.0:
        l_hat = l / (u + gamma)
        estimates.L_hat[p] += l_hat
        estimates.since[p] += abs(l_hat)
        due = estimates.since[p] > limit
    if c > 0.0:
        c *= gamma
        for k in range(lay[PAIR, h], lay[PAIR, h + 1]):
            estimates.L_hat[k] -= c / (own * q[k] + gamma)
    return due


@kernel
def largest_exponent(widths: Vector, exponents: Vector, otherwise: int) -> int:
    """Return the largest exponent of a width above 0, if there is one."""
    largest = _NONE
    for h in range(widths.size):
        if widths[h] > 0.0:
            largest = max(largest, int(exponents[h]))
    return otherwise if largest == _NONE else largest


@kernel
def weigh(
    estimates: Estimates, memory: WarmStart, unit: int, C: Vector, eta: float, kappa: float
) -> tuple[Estimates, bool]:
    """Move to ``unit``, in which ``C`` is, and raise the weights to C_h/eta (errata E15, E16).

    Returns the estimates, and whether any weight moved.
    """
    w, w_before = estimates.w, estimates.w_before
    heaviest = 0.0
    for h in range(w.size):
        heaviest = max(heaviest, w[h])
    shift = estimates.unit - unit
    if shift != 0 and heaviest > 0.0:
        shift_each(estimates.L_hat, shift)
        shift_each(estimates.since, shift)
        shift_each(w, shift)
        memory.head[EXPONENT] += shift
    assign(w_before, w)
    floor_weights(C, eta, kappa, w)
    moved = False
    for h in range(w.size):
        moved = moved or w[h] != w_before[h]
    return Estimates(unit, estimates.L_hat, estimates.since, w, w_before), moved


@kernel
def solve(
    lay: Integers, boxes: Boxes, epoch: int, estimates: Estimates, solver: Solver, program: Any,
    tolerance: float,
) -> Solver:  # fmt: skip
    """Compute q~ and its policy; ``epoch`` changes with the boxes."""
    outcome = program(
        lay, boxes.lo, boxes.hi, epoch, estimates.L_hat, estimates.w, tolerance, solver.memory,
        solver.work, solver.q, solver.pi,
    )  # fmt: skip
    estimates.since[:] = 0.0
    solver.u[:] = -1.0
    return Solver(
        entered(solver.solves, outcome), solver.q, solver.pi, solver.u, solver.memory, solver.work
    )


@kernel
def entered(solves: Solves, outcome: Outcome) -> Solves:
    """Return the tally with one more solve."""
    return Solves(
        solves.solves + 1,
        max(solves.worst_gap, min(outcome.gap_over_least, _LARGEST)),
        solves.fallbacks + (1 if outcome.method == FALLBACK else 0),
        solves.unsolved + (1 if outcome.status == UNSOLVED else 0),
        solves.newton_steps + outcome.steps,
    )
