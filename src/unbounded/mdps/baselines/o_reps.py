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
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, IntScratch, Scratch, Sizes, Values, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, Layers, horizon
from unbounded.core.occupancy.solver import programs
from unbounded.core.occupancy.solver.ftrl import WarmStart, even_play, floor_weights, new_memory
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.core.scaled import ldexp
from unbounded.core.state_validation import require
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import MDPSpec
from unbounded.mdps.steps import markov_play
from unbounded.mdps.steps.loss_ranges import checked_ranges
from unbounded.mdps.steps.solves import NO_SOLVES, Solves, entered
from unbounded.validation import checked_constant, checked_count

_NO_GAMMA = 1e-200  # an occupancy may underflow to zero
_KAPPA = 1e-3  # floor of the weights, relative to their mean (erratum E16)


_MOST = 2.0**200  # of estimates in units of 2^unit


class Params(NamedTuple):
    eta: float
    tolerance: float
    unit: int  # the widest range is below 2^unit, and losses are kept in units of it
    low: Vector  # layers: the range that was told
    high: Vector
    W: Vector  # layers: its width, in units of 2^e
    e: Vector
    P: Vector  # triples


class State(NamedTuple):
    t: int
    clipped: int
    version: int
    solves: Solves
    L_hat: Annotated[Vector, Values(0.0, _MOST)]  # pairs; infinite where not allowed
    w: Sizes  # layers
    q: Sizes  # pairs
    pi: Vector
    room: Vector  # pairs: 1 - sum P, zero but for rounding
    memory: WarmStart  # of the solver
    work: Scratch  # of the solver
    values: Scratch  # of the occupancies
    order: IntScratch

    def check(self, params: Params) -> None:
        """Refuse what cannot have been learned."""
        require(np.all((self.w == 0.0) | (self.w >= 2.0**-1000)), "there are no such weights")


def init(layers: Layers, params: Params) -> State:
    """The most even occupancy measure."""
    H, X, lay = layers.horizon, layers.n_pairs, layers.table
    values, order = scratch(layers)
    q, pi = even_play(layers, params.P, params.P)
    state = State(
        t=1, clipped=0, version=0, solves=NO_SOLVES, L_hat=layers.barred, w=np.zeros(H),
        q=q, pi=pi, room=np.zeros(X), memory=new_memory(layers),
        work=np.zeros(work_size(lay)), values=np.zeros(values.size),
        order=np.zeros(order.size, np.int64),
    )  # fmt: skip
    halves = 0.5 * np.ldexp(params.W, params.e.astype(np.int64) - params.unit)
    floor_weights(halves, 0.5 * params.eta, _KAPPA, state.w)
    spare_mass(lay, params.P, state.room)
    return _solved(lay, params, state, programs.ftrl(), 1, 0)


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: Any, memo: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Add the estimates of one episode and solve."""
    clipped, changed = _estimate(lay, params, state, states, actions, losses)
    t, clipped = state.t + 1, state.clipped + clipped
    if changed:
        return _solved(lay, params, state, solver, t, clipped)
    return _told(state, t, clipped, state.version, state.solves)


@subroutine
def _estimate(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers,
    losses: Vector,
) -> tuple[int, bool]:  # fmt: skip
    """L_hat += l/q on the visited pairs; how many losses were clipped, and whether any counted."""
    clipped = 0
    changed = False
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        low, e = params.low[h - 1], int(params.e[h - 1])
        loss = min(max(losses[h - 1], low), params.high[h - 1])
        clipped += loss != losses[h - 1]
        l_plus = min(ldexp(loss, -e) - ldexp(low, -e), params.W[h - 1])
        l_plus = math.ldexp(l_plus, e - params.unit)
        # Boxes that hold only P: the upper occupancy bound is the occupancy.
        q = u_state(lay, params.P, params.P, state.room, state.pi, h, s, state.values, state.order)
        if l_plus > 0.0:
            state.L_hat[p] += l_plus / (q * state.pi[p] + _NO_GAMMA)
            changed = True
    return clipped, changed


@kernel
def _solved(
    lay: Integers, params: Params, state: State, solver: Any, t: int, clipped: int
) -> State:
    outcome = solver(
        lay, params.P, params.P, 1, state.L_hat, state.w, params.tolerance, state.memory,
        state.work, state.q, state.pi,
    )  # fmt: skip
    return _told(state, t, clipped, state.version + 1, entered(state.solves, outcome))


@kernel
def _told(state: State, t: int, clipped: int, version: int, solves: Solves) -> State:
    return State(
        t, clipped, version, solves, state.L_hat, state.w, state.q, state.pi, state.room,
        state.memory, state.work, state.values, state.order,
    )  # fmt: skip


class OREPS(MDPLearner):
    """O-REPS for bandit feedback.

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    episodes : int
    transitions : array_like, shape (n_transitions,)
        The true ones, flat: `LayeredMDP.P`.
    loss_range : (low, high) or sequence of H such pairs
    rate : float, default 1
        Multiplies the learning rate sqrt(H ln(S A/H)/(T S A)).
    tolerance : float, default 1e-8
    allowed : sequence of array_like of bool, shapes (n_h, n_actions), optional
        Which actions may be taken, as `LayeredMDP.allowed`; all by default.
    ends : bool, default False
        Whether episodes may end early: the last state of each layer but the first is then the end.
    seed : int or SeedSequence, optional

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
        name="OREPS",
        reference="Zimin & Neu 2013",
        act=markov_play.act,
        distribution=markov_play.distribution,
        solves="solves",
        solver=programs.ftrl,
        infinite=("L_hat",),
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
        self._begin(shape, params, locals(), seed)
