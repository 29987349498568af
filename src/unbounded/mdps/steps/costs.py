"""CostSCBRL's estimates and weights, with and without a half-life.

States have ``estimates``, ``solver``, ``paid`` and ``rates``, and their thresholds in ``ceilings``:
``C`` and ``e``, and of the last losses ``l``, ``C_before`` and ``e_before``. Losses have the weight
``g``; without a half-life that is 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.confidence import Bernstein
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, horizon
from unbounded.core.scaled import shift_each
from unbounded.jit.kernel import kernel, subroutine
from unbounded.mdps.steps import ftrl
from unbounded.mdps.steps.ftrl import Estimates


class Params(NamedTuple):
    T: int  # the episodes that rates are for; 0: any number
    m: int  # thresholds are the m-th largest losses
    kappa: float  # floor of the weights (E16)
    skip: float  # solve when some pair's l_hat since the last solve exceeds this x C_h |S_h| A
    center: float  # multiplies what is subtracted from losses before they are divided
    tolerance: float
    width: Bernstein  # of the boxes, with ln_ = log_term + ln t
    log_term: float
    lower: Vector  # layers: lower bounds on the losses
    eta: Vector  # layers: times sqrt(t^)
    gamma: Vector  # layers: times sqrt(t^)
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
    """L_hat += g (l - c)/(u + gamma) on the visited pairs, L_hat -= g c gamma/(q~ + gamma) on all.

    ``before`` is the sum of the weights of the episodes before, ``root`` is sqrt(t^). Returns
    whether q~ has become too old (`skip`).
    """
    estimates, solver, ceilings = state.estimates, state.solver, state.ceilings
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
        C = params.eta[h - 1] / root * estimates.w[h - 1]  # g C_h, or the floor of its weight
        limit = params.skip * (lay[PAIR, h + 1] - lay[PAIR, h]) * C
        gamma = params.gamma[h - 1] / root
        if ftrl.estimate(lay, estimates, solver.q, h, p, g * l, g * c, u, 1.0, gamma, limit):
            due = True
    return due


@kernel
def center_of(params: Params, paid: float, before: float, C: float) -> float:
    """What losses of a layer with the threshold ``C`` are taken from: their mean so far, C/2.

    The lesser of the two. Most costs may be far below C, and a center far above them would add
    variance; one above C/2 would take away that estimates are optimistic where u > q~.
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
    root = math.sqrt(t_hat)
    for h in range(state.rates.size):
        C = math.ldexp(ceilings.C[h], int(ceilings.e[h]) - unit)
        state.rates[h] = C / (params.eta[h] / root)
    memory = state.solver.memory
    moved = Estimates(unit + shift, before.L_hat, before.since, before.w, before.w_before)
    # Rates differ by layer: what `ftrl.weigh` divides by a common eta is divided already.
    estimates, _ = ftrl.weigh(moved, memory, unit, state.rates, 1.0, params.kappa)
    return estimates
