"""UOB-REPS-EX: FTRL over occupancy measures with explicit exploration (Chen & Zhang 2024, Alg. 5).

Losses of layer h come as l+ in [0, W_h], with the width W_h of their window: 2 C_h, or the range.
With upper occupancy bounds u over the confidence set,

    L_hat += l+/(u + gamma) on visited pairs,
    q~ = argmin over Delta(boxes) of <q, L_hat> + sum_h w_h sum q ln q,   w_h = W_h/(2 eta),

and the policy of an episode is that of q~ with probability 1 - beta, else one of the explorers',
drawn once for the whole episode (erratum E12). Windows move before q~ is computed (E15); weights
never decrease and have a floor (E16); boxes are nested (E13).

SCB-RL's practical profile (`practical_scb_rl`) subtracts a center c from l+, and renews boxes
lazily (``growth``); as published, c is 0 and ``growth`` 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Scratch, Sizes, Vector
from unbounded.core.clipping import Windows
from unbounded.core.occupancy.confidence import Bernstein
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, Layers, horizon, roll_forward
from unbounded.core.occupancy.solver.sparse import Lists, only_listed
from unbounded.core.simplex.sampling import uniform
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.mdp_steps import OWN
from unbounded.learners.spec import Cache
from unbounded.mdps.steps import boxes as confidence_set
from unbounded.mdps.steps import explorer_bounds, explorers, ftrl
from unbounded.mdps.steps.boxes import Boxes, new_boxes
from unbounded.mdps.steps.explorer_bounds import Workspace, library_bounds
from unbounded.mdps.steps.explorers import Library
from unbounded.mdps.steps.ftrl import Bounds, Estimates, Solver, new_estimates, new_solver


class Rates(NamedTuple):
    """What depends on the number of episodes."""

    eta: float
    gamma: float
    beta: float
    skip: float  # solve when some pair's l_hat since the last solve exceeds this x w_h |S_h| A
    log_term: float  # of the boxes


class Params(NamedTuple):
    kappa: float  # floor of the weights (E16)
    tolerance: float
    width: Bernstein  # of the boxes
    growth: float  # renew a box when its visits are so many times what it was made from
    mixture: bool  # estimator: mixture, else ftrl_only (E12)
    possible: Vector  # triples: 1 or 0, if the support is known; else empty
    lists: Lists  # of the same, if few are possible
    even: Vector  # pairs: the policy that takes all allowed actions evenly


class State(NamedTuple):
    epoch: int
    boxes: Boxes
    estimates: Estimates
    solver: Solver
    C: Sizes  # layers: C_h in units of 2^unit, of the windows that were weighed
    u_explorers: Bounds  # pairs: upper bounds for the library, -1 if not known in this epoch
    c: Scratch  # layers: what is subtracted from l+; 0 as published
    bounds: Workspace  # of the explorers' bounds


def init(layers: Layers, params: Params) -> State:
    """No visits, whole simplices; q~ is computed by `begin`."""
    H, boxes = layers.horizon, new_boxes(layers, params.possible)
    return State(
        1, boxes, new_estimates(layers), new_solver(layers, boxes), np.zeros(H),
        np.full(layers.n_pairs, -1.0), np.zeros(H), explorer_bounds.new_scratch(layers),
    )  # fmt: skip


# Kernels


@kernel
def act(
    lay: Integers, params: Params, beta: float, state: State, library: Library, word: int,
    pi: Vector,
) -> int:  # fmt: skip
    """Lines 11 and 2: the policy of q~, or with probability beta an explorer's, and which one."""
    x = uniform(word) - (1.0 - beta)
    if x < 0.0 or library.size == 0:
        assign(pi, state.solver.pi)
        return OWN
    k = explorers.draw(library, x / beta)
    explorers.fill_component(lay, params.even, library, k, pi)
    return k


@kernel
def distribution(
    lay: Integers, params: Params, beta: float, state: State, library: Library, edition: int,
    P: Vector, cache: Cache, q: Vector,
) -> None:  # fmt: skip
    """Occupancy under ``P`` of what `act` plays; the explorers' part is kept in ``cache`` for this
    ``edition`` of the library (``q`` is scratch while it is computed)."""
    if beta > 0.0 and cache.known[0] != 1.0 + edition:
        explorers.mean_occupancy(
            lay, params.even, library, P, cache.pi, cache.mass, q, cache.explorers
        )
        cache.known[0] = 1.0 + edition
    roll_forward(lay, P, state.solver.pi, cache.mass, q)
    if beta > 0.0 and library.size > 0:
        for p in range(q.size):
            q[p] = (1.0 - beta) * q[p] + beta * cache.explorers[p]


@kernel
def update(
    lay: Integers, params: Params, rates: Rates, state: State, program: Any, library: Library,
    component: int, states: Integers, actions: Integers, windows: Windows,
) -> State:  # fmt: skip
    """Lines 3 to 10, for an episode of ``component`` whose losses went through ``windows``."""
    epoch, solver = state.epoch, state.solver
    bound_visited(lay, params, state, library, states)  # line 3
    due = estimate(lay, params, rates, state, component, states, actions, windows)  # line 4
    estimates, moved = weigh(params, rates, state, windows)  # E15: q~_{t+1} has C_{t+1}
    doubled = confidence_set.count_episode(lay, state.boxes, states, actions)  # lines 5 and 6
    # Lines 7 to 9. As published an epoch begins even if its boxes are those of the last one.
    if doubled and (new_epoch(lay, params, rates, state) or params.growth == 1.0):
        epoch += 1
        due = True
    if due or moved:  # line 10
        solver = ftrl.solve(lay, state.boxes, epoch, estimates, solver, program, params.tolerance)
    return with_(state, epoch, estimates, solver)


@kernel
def begin(
    lay: Integers, params: Params, rates: Rates, state: State, program: Any, windows: Windows,
    keep_counts: bool,
) -> State:  # fmt: skip
    """Return the first q~ with these explorers, from what was learned before, of transitions too if
    ``keep_counts`` (E28)."""
    epoch = state.epoch
    state.u_explorers[:] = -1.0
    if keep_counts:
        epoch += 1
        new_epoch(lay, params, rates, state)
    estimates, _ = weigh(params, rates, state, windows)
    solver = ftrl.solve(lay, state.boxes, epoch, estimates, state.solver, program, params.tolerance)
    return with_(state, epoch, estimates, solver)


@kernel
def with_(state: State, epoch: int, estimates: Estimates, solver: Solver) -> State:
    """Return the state with other boxes, estimates and solution."""
    return State(
        epoch, state.boxes, estimates, solver, state.C, state.u_explorers, state.c, state.bounds
    )


@kernel
def bound_visited(
    lay: Integers, params: Params, state: State, library: Library, states: Integers
) -> None:
    """Comp-UOB: upper occupancy bounds of the visited states, where they are not known yet."""
    boxes, solver = state.boxes, state.solver
    confidence_set.bound_visited(lay, boxes, solver.pi, states, solver.u)
    if params.mixture:
        listed = only_listed(lay, params.lists, boxes.N, boxes.M)
        library_bounds(
            lay, params.even, boxes.lo, boxes.hi, boxes.spare, library, states, params.lists,
            listed, state.u_explorers, state.bounds,
        )  # fmt: skip


@kernel
def estimate(
    lay: Integers, params: Params, rates: Rates, state: State, component: int, states: Integers,
    actions: Integers, windows: Windows,
) -> bool:  # fmt: skip
    """L_hat += (l+ - c)/(u + gamma) on the visited pairs; return whether q~ is too old (`skip`)."""
    estimates, solver, own = state.estimates, state.solver, 1.0 - rates.beta
    due = False
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        l = math.ldexp(windows.l_plus[h - 1], int(windows.e_before[h - 1]) - estimates.unit)
        u = own * (solver.u[lay[STATE, h] + s] * solver.pi[p])
        if params.mixture:
            u += rates.beta * state.u_explorers[p]
        elif component != OWN:
            l = state.c[h - 1]  # nothing is learned from an explorer's losses
        limit = rates.skip * (lay[PAIR, h + 1] - lay[PAIR, h]) * estimates.w[h - 1]
        if ftrl.estimate(
            lay, estimates, solver.q, h, p, l, state.c[h - 1], u, own, rates.gamma, limit
        ):
            due = True
    return due


@kernel
def weigh(params: Params, rates: Rates, state: State, windows: Windows) -> tuple[Estimates, bool]:
    """Move the unit to the largest window and the weights with the windows; return the estimates,
    and whether any weight moved."""
    unit = ftrl.largest_exponent(windows.W, windows.e, state.estimates.unit)
    for h in range(state.C.size):
        W = windows.W[h]
        state.C[h] = 0.5 * math.ldexp(W, int(windows.e[h]) - unit) if W > 0.0 else 0.0
    memory = state.solver.memory
    return ftrl.weigh(state.estimates, memory, unit, state.C, rates.eta, params.kappa)


@kernel
def new_epoch(lay: Integers, params: Params, rates: Rates, state: State) -> bool:
    """Line 9, in `core.occupancy.confidence`: make boxes from the counts so far, and forget the
    explorers' bounds; return whether any box changed."""
    changed = confidence_set.renew(lay, state.boxes, rates.log_term, params.width, params.growth)
    if changed and params.growth == 1.0:
        state.u_explorers[:] = -1.0
    return changed
