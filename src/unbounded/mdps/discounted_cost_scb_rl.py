"""CostSCBRL with a half-life: for costs whose best policy changes, where transitions stay.

`cost_scb_rl` on losses weighted by 2^(t/tau) (docs/theory/one-sided-mdp.md, section 8):

    L_hat += g min(l, C_h)/(u + gamma_h) on visited pairs,   g = 2^(t/tau), halved with all sums,
    w_h = g C_h/eta_h,   eta_h = 2 gamma_h = sqrt(iota/(|S_h| A N^)),

where C_h is the m-th largest loss of this block of tau episodes or of the last, and N is the sum of
the weights so far over that of now. g^2 N is rounded up to three binary digits, so that weights
change rarely. In units in which nothing is halved, they never decrease. Counts and boxes of
transitions forget nothing.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from unbounded.core import discounting
from unbounded.core.arrays import Count, Integers, Scratch, Sizes, Vector, require
from unbounded.core.discounting import HalfLife, Memory
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.solver.ftrl import PROGRAM
from unbounded.jit.kernel import kernel
from unbounded.learners.mdp import MDPSpec
from unbounded.mdps.steps import boxes as confidence_set
from unbounded.mdps.steps import costs, forgetting, ftrl
from unbounded.mdps.steps.boxes import Boxes, new_boxes
from unbounded.mdps.steps.forgetting import Fading, RecentCeilings
from unbounded.mdps.steps.ftrl import Estimates, Solver, new_estimates, new_solver


class Params(NamedTuple):
    costs: costs.Params
    half_life: HalfLife


class State(NamedTuple):
    t: int
    clipped: int  # losses above the threshold of their layer
    below: Count  # losses below ``lower``
    version: int
    epoch: int  # changes with the boxes
    fading: Fading
    ceilings: RecentCeilings  # layers: C_h
    boxes: Boxes
    estimates: Estimates
    solver: Solver
    paid: Sizes  # layers: weighted sum of the clipped losses, in units of 2^unit
    owed: costs.Owed
    rates: Scratch  # layers: g C_h/eta_h, of `costs.weigh`

    def check(self, params: Params) -> None:
        self.fading.memory.check_for(params.half_life, self.t)
        forgetting.check_fading(self.fading, self.ceilings.C, self.ceilings.e)
        self.ceilings.check_for(params.costs.lower)
        losses = (self.t - 1) * params.costs.lower.size
        require(self.clipped + self.below <= losses, "no so many losses")
        signed = params.costs.center > 0.0
        require(signed or np.all(self.estimates.L_hat >= 0.0), "there are no such estimates")


def init(layers: Layers, params: Params) -> State:
    """Start with C_{1,h} = 0, no visits, whole simplices but for what is impossible."""
    given, H = params.costs, layers.horizon
    boxes, ceilings = new_boxes(layers, given.possible), forgetting.new_recent_ceilings
    return State(
        1, 0, 0, 0, 1, forgetting.NEW, ceilings(given.lower, given.m), boxes,
        new_estimates(layers), new_solver(layers, boxes), np.zeros(H),
        costs.new_owed(layers), np.zeros(H),
    )  # fmt: skip


@kernel
def clock(params: Params, memory: Memory) -> float:
    """g^2 N^: what the weights of an episode are for, in units in which sums are halved."""
    N = memory.g * float(params.costs.T) if params.costs.T > 0 else memory.N
    return costs.rounded_up(memory.g * N)


@kernel
def update(
    lay: Integers, params: Params, state: State, program: Any, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode of the policy of q~."""
    given, ceilings, memory = params.costs, state.ceilings, state.fading.memory
    below, epoch, boxes = state.below, state.epoch, state.boxes
    estimates, solver = state.estimates, state.solver
    for h in range(losses.size):
        below += losses[h] < given.lower[h]
    after, ended = discounting.advanced(memory, params.half_life)
    clipped, changed = forgetting.clip_each_recent(ceilings, given.lower, losses, ended)
    fading, halvings = forgetting.faded(state.fading, after, ended, ceilings.C, ceilings.e)
    confidence_set.bound_visited(lay, boxes, solver.pi, states, solver.u)  # Comp-UOB
    before, root = memory.N - memory.g, math.sqrt(clock(params, memory)) / memory.g
    due = costs.estimate(lay, given, state, memory.g, before, root, states, actions)
    if changed or ended or clock(params, fading.memory) != clock(params, memory):
        due = True
    costs.settle(lay, given, state, root)  # gamma_h changes with g
    doubled = confidence_set.count_episode(lay, boxes, states, actions)
    if doubled and confidence_set.renew_visited(
        lay, boxes, given.log_term, given.width, states, actions
    ):
        epoch += 1
        due = True
    if due:  # whenever there are halvings
        estimates = costs.weigh(given, state, clock(params, fading.memory), halvings)
        solver = ftrl.solve(lay, boxes, epoch, estimates, solver, program, given.tolerance)
    return State(
        state.t + 1, state.clipped + clipped, below, solver.solves.solves, epoch, fading, ceilings,
        boxes, estimates, solver, state.paid, state.owed, state.rates,
    )  # fmt: skip


SPEC = MDPSpec.of(
    __name__,
    name="CostSCBRL",
    reference="docs/theory/one-sided-mdp.md, section 8",
    policy=attrgetter("solver.pi"),
    solves="solver.solves",
    solver=PROGRAM,
    infinite=("estimates.L_hat",),
    scale_free=True,
)
