"""CostSCBRL's estimates and weights, with and without a half-life.

States have ``estimates``, ``solver``, ``paid`` and ``rates``, and their thresholds in ``ceilings``:
``C`` and ``e``, and of the last losses ``l``, ``C_before`` and ``e_before``. Losses have the weight
``g``; without a half-life that is 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Scratch, Sizes, Vector
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
from unbounded.core.scaled import shift_each
from unbounded.jit.kernel import kernel, section, subroutine
from unbounded.mdps.steps import boxes as confidence_set
from unbounded.mdps.steps import ftrl
from unbounded.mdps.steps.ftrl import Estimates


class Owed(NamedTuple):
    """What all pairs of a layer are to get for past episodes, visited or not."""

    since: Sizes  # layers: sums of g c since the last solve
    sums: Sizes  # layers: of g c, not yet paid
    optimism: Sizes  # layers: of g c^2/C gamma
    low: Scratch  # states: lower bounds of how often the policy visits them


def new_owed(layers: Layers) -> Owed:
    """Return nothing."""
    H = layers.horizon
    return Owed(np.zeros(H), np.zeros(H), np.zeros(H), np.zeros(layers.n_states))


class Params(NamedTuple):
    T: int  # the episodes that rates are for; 0: any number
    m: int  # thresholds are the m-th largest losses
    kappa: float  # floor of the weights (E16)
    skip: float  # solve when some pair's l_hat since the last solve exceeds this x C_h |S_h| A
    center: float  # multiplies what is subtracted from losses before they are divided
    tolerance: float
    width: float  # multiplies the divergence in the boxes
    log_term: float  # of the boxes
    lower: Vector  # layers: lower bounds on the losses
    eta: Vector  # layers: times sqrt(t^)
    gamma: Vector  # layers: times sqrt(t^)
    pairs: Vector  # layers: |S_h| A, with |S_h| the states within reach
    possible: Vector  # triples: 1 or 0, if the support is known; else empty


@kernel
def rounded_up(t: float) -> float:
    """``t``, rounded up to three binary digits: at most 5/4 of it."""
    mantissa, exponent = math.frexp(float(t))
    return math.ldexp(float(math.ceil(8.0 * mantissa)), exponent - 3)


@subroutine
def estimate(
    lay: Integers, params: Params, state: Any, g: float, before: float, root: float,
    states: Integers, actions: Integers,
) -> bool:  # fmt: skip
    """L_hat += g (l - share c)/(u + gamma) on the visited pairs, with share = u/(u + gamma).

    What all pairs get for that is owed (`settle`). ``before`` is the sum of the weights of the
    episodes before, ``root`` is sqrt(t^). Returns whether q~ has become too old (`skip`).
    """
    estimates, solver, ceilings, owed = state.estimates, state.solver, state.ceilings, state.owed
    due = False
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        shift = int(ceilings.e_before[h - 1]) - estimates.unit
        l = math.ldexp(ceilings.l[h - 1], shift)
        C = math.ldexp(ceilings.C_before[h - 1], shift)
        c = center_of(params, state.paid[h - 1], before, C)
        state.paid[h - 1] += g * l
        u = solver.u[lay[STATE, h] + s] * solver.pi[p]
        n = params.pairs[h - 1]
        limit = min(params.skip * n * params.eta[h - 1] / root, 0.25) * estimates.w[h - 1]
        gamma = params.gamma[h - 1] / root
        if c > 0.0:
            owed.sums[h - 1] += g * c
            owed.optimism[h - 1] += g * c * (gamma * (c / C))
            owed.since[h - 1] += g * c
            due = due or owed.since[h - 1] > limit
        l -= c * (u / (u + gamma))
        if ftrl.estimate(lay, estimates, solver.q, h, p, g * l, 0.0, u, 1.0, gamma, limit):
            due = True
    return due


@subroutine
def settle(lay: Integers, params: Params, state: Any, root: float) -> None:
    """Pay what is owed: L_hat += g share c (q_low - share gamma c/C)/(u + gamma) on all pairs, for
    every episode of this q~ that was not paid for.

    ``q_low`` is at most how often the policy visits a pair, under any transitions of the boxes:
    forwards, by their lower ends.
    """
    estimates, solver, boxes, owed = state.estimates, state.solver, state.boxes, state.owed
    low, pi, reached = owed.low, solver.pi, boxes.values
    confidence_set.bound_layers(lay, boxes, pi, owed.sums, solver.u, solver.work)
    low[0] = 1.0
    for h in range(horizon(lay) + 1):
        A = lay[ACTIONS, h]
        m = lay[SIZE, h] * A
        if h > 0 and owed.sums[h - 1] > 0.0:
            gamma = params.gamma[h - 1] / root
            for s in range(lay[SIZE, h]):
                k = lay[STATE, h] + s
                for p in range(lay[PAIR, h] + s * A, lay[PAIR, h] + s * A + A):
                    u = solver.u[k] * pi[p]
                    share = u / (u + gamma)
                    even = owed.sums[h - 1] * (low[k] * pi[p]) - owed.optimism[h - 1] * share
                    estimates.L_hat[p] += share * even / (u + gamma)
            owed.sums[h - 1] = 0.0
            owed.optimism[h - 1] = 0.0
        if h < horizon(lay):
            for s in range(lay[SIZE, h]):
                for i in range(s * A, s * A + A):
                    reached[i] = low[lay[STATE, h] + s] * pi[lay[PAIR, h] + i]
            after = section(low, lay[STATE, h + 1], lay[STATE, h + 2])
            dots(m, lay[SIZE, h + 1], reached, boxes.lo, lay[TRIPLE, h], after)


@kernel
def center_of(params: Params, paid: float, before: float, C: float) -> float:
    """Return the center of a layer with the threshold ``C``: its mean loss so far, at most C/2.

    Most costs may be far below C, and a center far above them would add variance.
    """
    if params.center == 0.0 or C == 0.0 or before == 0.0:
        return 0.0
    return params.center * min(paid / before, 0.5 * C)


@subroutine
def weigh(params: Params, state: Any, t_hat: float, halvings: int) -> Estimates:
    """Move the unit to the largest threshold, and raise the weights to g C_h/eta_h.

    ``t_hat`` is g^2 t^. All sums are halved so many times before.
    """
    ceilings, before = state.ceilings, state.estimates
    unit = ftrl.largest_exponent(ceilings.C, ceilings.e, before.unit)
    shift = before.unit - unit - halvings
    if shift != 0:
        shift_each(state.paid, shift)
    state.owed.since[:] = 0.0
    root = math.sqrt(t_hat)
    for h in range(state.rates.size):
        C = math.ldexp(ceilings.C[h], int(ceilings.e[h]) - unit)
        state.rates[h] = C / (params.eta[h] / root)
    memory = state.solver.memory
    moved = Estimates(unit + shift, before.L_hat, before.since, before.w, before.w_before)
    # Rates differ by layer: what `ftrl.weigh` divides by a common eta is divided already.
    estimates, _ = ftrl.weigh(moved, memory, unit, state.rates, 1.0, params.kappa)
    return estimates
