"""O-REPS (Zimin & Neu 2013): known transitions and a known range of the losses.

FTRL on pairs with l_hat = l/q over the occupancy measures of the true transitions. On a fixed set
that is cut out by equations, FTRL and the paper's mirror descent are the same.

    q = argmin over Delta(P) of <q, L_hat> + sum_h w_h sum q ln q,   w_h = R_h/eta,
    eta = sqrt(H ln(S A/H)/(T S A)),

where R_h is the width of layer h's range; losses outside of it are clipped and counted. States that
the transitions cannot reach are not in the program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector, require
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, Layers, horizon
from unbounded.core.occupancy.solver.ftrl import PROGRAM
from unbounded.core.scaled import ldexp
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.mdps.steps import boxes as confidence_set
from unbounded.mdps.steps import ftrl
from unbounded.mdps.steps.boxes import Boxes, known_boxes
from unbounded.mdps.steps.ftrl import Estimates, Solver, new_estimates, new_solver
from unbounded.mdps.steps.loss_ranges import checked_ranges
from unbounded.validation import checked_constant, checked_count

_NO_GAMMA = 1e-200  # an occupancy may underflow to zero
_KAPPA = 1e-3  # floor of the weights, relative to their mean (erratum E16)


class Params(NamedTuple):
    eta: float
    tolerance: float
    unit: int  # the widest range is below 2^unit, and losses are kept in units of it
    low: Vector  # layers: the given range
    high: Vector
    W: Vector  # layers: its width, in units of 2^e
    e: Vector
    P: Vector  # triples


class State(NamedTuple):
    t: int
    clipped: int
    version: int
    boxes: Boxes  # that hold P and nothing else
    estimates: Estimates
    solver: Solver

    def check(self, params: Params) -> None:
        L_hat, w = self.estimates.L_hat, self.estimates.w
        require(np.all(L_hat >= 0.0), "there are no such estimates")
        require(np.all((w == 0.0) | (w >= 2.0**-1000)), "there are no such weights")


def init(layers: Layers, params: Params) -> State:
    """Return the most even occupancy measure."""
    boxes = known_boxes(layers, params.P)
    estimates, solver = new_estimates(layers), new_solver(layers, boxes)
    # w_h = R_h/eta, as `weigh` has C_h/eta, of C_h = R_h/2 and eta/2
    halves = 0.5 * np.ldexp(params.W, params.e.astype(np.int64) - params.unit)
    estimates, _ = ftrl.weigh(
        estimates, solver.memory, params.unit, halves, 0.5 * params.eta, _KAPPA
    )
    program = PROGRAM()
    solver = ftrl.solve(layers.table, boxes, 1, estimates, solver, program, params.tolerance)
    return State(1, 0, 1, boxes, estimates, solver)


@kernel
def update(
    lay: Integers, params: Params, state: State, program: Any, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Add the estimates of one episode and solve."""
    boxes, estimates, solver = state.boxes, state.estimates, state.solver
    confidence_set.bound_visited(lay, boxes, solver.pi, states, solver.u)  # which is q itself
    clipped, due = _estimate(lay, params, state, states, actions, losses)
    if due:
        solver = ftrl.solve(lay, boxes, 1, estimates, solver, program, params.tolerance)
    return State(
        state.t + 1, state.clipped + clipped, solver.solves.solves, boxes, estimates, solver
    )


@subroutine
def _estimate(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers,
    losses: Vector,
) -> tuple[int, bool]:  # fmt: skip
    """L_hat += l/q on the visited pairs; how many losses were clipped, and whether any counted."""
    estimates, solver = state.estimates, state.solver
    clipped = 0
    due = False
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        low, e = params.low[h - 1], int(params.e[h - 1])
        loss = min(max(losses[h - 1], low), params.high[h - 1])
        clipped += loss != losses[h - 1]
        l = min(ldexp(loss, -e) - ldexp(low, -e), params.W[h - 1])
        l = math.ldexp(l, e - params.unit)
        q = solver.u[lay[STATE, h] + s] * solver.pi[p]
        if ftrl.estimate(lay, estimates, solver.q, h, p, l, 0.0, q, 1.0, _NO_GAMMA, 0.0):
            due = True
    return clipped, due


class OREPS(MDPLearner):
    """O-REPS for bandit feedback.

    Parameters
    ----------
    transitions : array_like, shape (n_transitions,)
        The true ones, flat: `LayeredMDP.P`.
    loss_range : (low, high) or sequence of H such pairs
    rate : float, default 1
        Multiplies the learning rate sqrt(H ln(S A/H)/(T S A)).

    Examples
    --------
    >>> from unbounded.core.occupancy.mdp import LayeredMDP
    >>> mdp = LayeredMDP([1.0], [[[[0.9, 0.1], [0.2, 0.8]]]])
    >>> learner = OREPS([1, 2], 2, 100, transitions=mdp.P, seed=0)
    >>> learner.policy().tables[0].round(3).tolist()  # the most even occupancy
    [[0.476, 0.524]]
    """

    spec = MDPSpec.of(
        __name__,
        reference="Zimin & Neu 2013",
        policy=attrgetter("solver.pi"),
        solves="solver.solves",
        solver=PROGRAM,
        infinite=("estimates.L_hat",),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        *,
        transitions: npt.ArrayLike,
        loss_range: npt.ArrayLike = (0.0, 1.0),
        rate: float = 1.0,
        tolerance: float = 1e-8,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        T = checked_count("episodes", episodes)
        rate = checked_constant("rate", rate)
        tolerance = checked_constant("tolerance", tolerance)
        loss_range = checked_ranges(loss_range, shape)
        transitions = shape.checked_transitions(transitions)
        H, S, A = shape.horizon, sum(shape.sizes), shape.n_actions
        low, high = loss_range.T.copy()
        W, e = np.frexp(high - low)
        params = Params(
            eta=rate * math.sqrt(H * max(math.log(S * A / H), 1e-3) / (T * S * A)),
            tolerance=tolerance, unit=int(e.max()), low=low, high=high, W=W,
            e=e.astype(np.float64), P=transitions,
        )  # fmt: skip
        self._begin(shape, params, seed, {"loss_range": loss_range, "transitions": transitions})
