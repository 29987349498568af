"""UOB-REPS (Jin et al. 2020): the baseline that is told the range of the losses.

Mirror descent with relative entropy on triples over the confidence set, whose boxes need not be
nested; implicit exploration gamma = eta = sqrt(H ln(H S A/delta)/(T S A)). With the range
[low_h, high_h] of each layer, w_h = (high_h - low_h)/eta; losses outside are clipped and counted.
Reconstructed from the paper's Algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Counts, Integers, IntScratch, Scratch, Vector
from unbounded.core.occupancy.confidence import JIN, count, log_term, rebuild, told_support
from unbounded.core.occupancy.layout import ACTIONS, PAIR, Layers, horizon
from unbounded.core.occupancy.policies import Markov
from unbounded.core.occupancy.solver import programs
from unbounded.core.occupancy.solver.kl import LEAST, uniform_base
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.core.scaled import ldexp
from unbounded.core.state_validation import ROUNDING, require, require_boxes
from unbounded.jit.kernel import assign, kernel, subroutine
from unbounded.learners.mdp import MDPLearner, checked_layers
from unbounded.learners.seeds import Seed
from unbounded.learners.spec import MDPSpec
from unbounded.mdps.steps import markov_play
from unbounded.mdps.steps.loss_ranges import checked_ranges
from unbounded.mdps.steps.solves import NO_SOLVES, Solves, entered
from unbounded.validation import checked_constant, checked_count


class Params(NamedTuple):
    eta: float
    gamma: float
    tolerance: float
    c1: float  # width of the boxes: c1 sqrt(P log_term/N) + c2 log_term/N
    c2: float
    log_term: float
    unit: int  # the widest range is below 2^unit: at any scale nothing overflows
    low: Vector  # layers: the range that was told
    width: Vector  # layers, in units of 2^unit
    possible: Vector  # triples: 1 or 0, if the support was told; else empty


class State(NamedTuple):
    t: int
    clipped: int
    version: int
    solves: Solves
    pi: Vector
    N: Counts  # pairs: visits
    N_before: Counts  # pairs: at the beginning of the epoch
    M: Counts  # triples
    lo: Vector  # triples: the boxes
    hi: Vector
    room: Vector  # pairs: 1 - sum lo
    ln_q: Vector  # pairs: logarithms of the iterate q(s,a) P(s'|s,a)
    ln_P: Vector  # triples
    l_hat: Vector  # pairs: this episode's estimates, infinite where not allowed
    w: Vector  # layers
    v: Vector  # states: dual variables, zero before each step
    theta: Vector  # pairs
    work: Scratch  # of the solver
    values: Scratch  # of the upper bounds
    order: IntScratch

    def check(self, params: Params) -> None:
        """Refuse what cannot have been learned."""
        require_boxes(self.lo, self.hi)
        logarithms = np.concatenate([self.ln_q, self.ln_P])
        legal = (logarithms >= math.log(LEAST) - ROUNDING) & (logarithms <= ROUNDING)
        require(np.all(legal), "there are no such probabilities")


def init(layers: Layers, params: Params) -> State:
    """Uniform occupancy, whole simplices."""
    H, X, T, lay = layers.horizon, layers.n_pairs, layers.n_transitions, layers.table
    ln_q, ln_P = uniform_base(layers)
    values, order = scratch(layers)
    state = State(
        t=1, clipped=0, version=0, solves=NO_SOLVES, pi=Markov.uniform(layers).pi, N=np.zeros(X),
        N_before=np.zeros(X), M=np.zeros(T), lo=np.zeros(T),
        hi=params.possible.copy() if params.possible.size else np.ones(T), room=np.zeros(X),
        ln_q=ln_q, ln_P=ln_P, l_hat=layers.barred, w=np.zeros(H), v=np.zeros(layers.n_states),
        theta=np.zeros(X), work=np.zeros(work_size(lay)), values=np.zeros(values.size),
        order=np.zeros(order.size, np.int64),
    )  # fmt: skip
    spare_mass(lay, state.lo, state.room)
    return state


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: Any, memo: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """One step of mirror descent."""
    clipped = _estimate(lay, params, state, states, actions, losses)
    if count(lay, states, actions, state.N, state.M, state.N_before):
        _new_epoch(lay, params, state)
    state.v[:] = 0.0
    state.theta[:] = 0.0
    outcome = solver(
        lay, state.lo, state.hi, state.l_hat, state.w, params.tolerance, state.ln_q, state.ln_P,
        state.v, state.theta, state.work, state.pi,
    )  # fmt: skip
    return State(
        state.t + 1, state.clipped + clipped, state.version + 1, entered(state.solves, outcome),
        state.pi, state.N, state.N_before, state.M, state.lo, state.hi, state.room, state.ln_q,
        state.ln_P, state.l_hat, state.w, state.v, state.theta, state.work, state.values,
        state.order,
    )  # fmt: skip


@subroutine
def _estimate(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers,
    losses: Vector,
) -> int:  # fmt: skip
    """l_hat = l+/(u + gamma) on the visited pairs; how many losses were clipped."""
    clipped = 0
    for p in range(state.l_hat.size):
        if state.l_hat[p] < math.inf:  # not what is not allowed
            state.l_hat[p] = 0.0
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        l_plus = ldexp(losses[h - 1] - params.low[h - 1], -params.unit)
        if l_plus < 0.0 or l_plus > params.width[h - 1]:
            clipped += 1
            l_plus = min(max(l_plus, 0.0), params.width[h - 1])
        u = u_state(lay, state.lo, state.hi, state.room, state.pi, h, s, state.values, state.order)
        state.l_hat[p] = l_plus / (u * state.pi[p] + params.gamma)
        state.w[h - 1] = params.width[h - 1] / params.eta
    return clipped


@subroutine
def _new_epoch(lay: Integers, params: Params, state: State) -> None:
    """Boxes from the counts so far."""
    assign(state.N_before, state.N)
    rebuild(lay, state.N, state.M, params.log_term, params.c1, params.c2, False, state.lo, state.hi)
    spare_mass(lay, state.lo, state.room)


class UOBREPS(MDPLearner):
    """UOB-REPS, told the range of the losses (true: an oracle; wrong: what people do).

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    episodes : int
    delta : float, default 0.05
    loss_range : (low, high) or sequence of H such pairs
        Of every layer, or of each.
    rate, implicit, width : float, default 1
        Multiply the paper's learning rate, its implicit exploration and the width of its
        confidence set.
    tolerance : float, default 1e-8
    support : array_like of bool, shape (n_transitions,), optional
        Which transitions are possible, flat as ``LayeredMDP.P > 0``; by default all are.
    allowed : sequence of array_like of bool, shapes (n_h, n_actions), optional
        Which actions may be taken, as `LayeredMDP.allowed`; all by default.
    ends : bool, default False
        Whether episodes may end early: the last state of each layer but the first is then the end.
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = UOBREPS([1, 2], 2, episodes=100, loss_range=(-1, 1), seed=0)
    >>> plan = learner.ask()
    >>> learner.tell(plan, [0, 1], [0, 0], [0.5, -0.5])
    >>> bool(learner.policy().tables[0][0, 0] < 0.5)  # it cost 0.5 more than the least
    True
    """

    spec = MDPSpec.of(
        __name__,
        name="UOBREPS",
        reference="Jin, Jin, Luo, Sra & Yu 2020, Algorithm 2",
        act=markov_play.act,
        distribution=markov_play.distribution,
        solves="solves",
        solver=programs.mirror,
        infinite=("l_hat",),
        examples=({}, {"loss_range": [-2.0, 3.0], "rate": 2.0, "implicit": 0.3, "width": 0.4}),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        loss_range: npt.ArrayLike = (0.0, 1.0),
        rate: float = 1.0,
        implicit: float = 1.0,
        width: float = 1.0,
        tolerance: float = 1e-8,
        support: npt.ArrayLike | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        T = checked_count("episodes", episodes)
        delta = checked_constant("delta", delta, below=1.0)
        rate, implicit = checked_constant("rate", rate), checked_constant("implicit", implicit)
        width = checked_constant("width", width)
        tolerance = checked_constant("tolerance", tolerance)
        loss_range = checked_ranges(loss_range, shape)
        H, S, A = shape.horizon, sum(shape.sizes), shape.n_actions
        eta = math.sqrt(H * math.log(H * S * A / delta) / (T * S * A))
        widths = np.diff(loss_range)[:, 0]
        unit = math.frexp(float(widths.max()))[1]
        params = Params(
            eta=eta * rate, gamma=eta * implicit, tolerance=tolerance, c1=JIN.c1 * width,
            c2=JIN.c2 * width, log_term=log_term(shape, T, delta), unit=unit,
            low=loss_range[:, 0].copy(), width=np.ldexp(widths, -unit),
            possible=told_support(shape, support),
        )  # fmt: skip
        self._begin(shape, params, locals(), seed)
