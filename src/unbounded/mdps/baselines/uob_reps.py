"""UOB-REPS (Jin et al. 2020): the baseline that is given the range of the losses.

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

from unbounded.core.arrays import ROUNDING, Integers, Scratch, Vector, require
from unbounded.core.occupancy.confidence import JIN, Bernstein, log_term, told_support
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, Layers, horizon
from unbounded.core.occupancy.mdp import Markov
from unbounded.core.occupancy.solver.kl import LEAST, PROGRAM, uniform_base
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.scaled import ldexp
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, Seed, checked_layers
from unbounded.learners.spec import NO_SOLVES, MDPSpec, Solves
from unbounded.mdps.steps import boxes as confidence_set
from unbounded.mdps.steps.boxes import Boxes, new_boxes
from unbounded.mdps.steps.ftrl import entered
from unbounded.mdps.steps.loss_ranges import checked_ranges
from unbounded.validation import checked_constant, checked_count


class Params(NamedTuple):
    eta: float
    gamma: float
    tolerance: float
    width: Bernstein  # of the boxes
    log_term: float
    unit: int  # the widest range is below 2^unit: at any scale nothing overflows
    low: Vector  # layers: the given range
    range: Vector  # layers: its width, in units of 2^unit
    w: Vector  # layers: range/eta
    possible: Vector  # triples: 1 or 0, if the support is known; else empty


class State(NamedTuple):
    t: int
    clipped: int
    version: int
    solves: Solves
    pi: Vector
    boxes: Boxes
    ln_q: Vector  # pairs: logarithms of the iterate q(s,a) P(s'|s,a)
    ln_P: Vector  # triples
    l_hat: Vector  # pairs: this episode's estimates, infinite where not allowed
    u: Scratch  # states: upper occupancy bounds of the visited ones
    v: Scratch  # states: dual variables, zero before each step
    theta: Scratch  # pairs
    work: Scratch  # of the solver

    def check(self, params: Params) -> None:
        logarithms = np.concatenate([self.ln_q, self.ln_P])
        legal = (logarithms >= math.log(LEAST) - ROUNDING) & (logarithms <= ROUNDING)
        require(np.all(legal), "there are no such probabilities")


def init(layers: Layers, params: Params) -> State:
    """Return uniform occupancy, whole simplices."""
    X, S = layers.n_pairs, layers.n_states
    ln_q, ln_P = uniform_base(layers)
    return State(
        t=1, clipped=0, version=0, solves=NO_SOLVES, pi=Markov.uniform(layers).pi,
        boxes=new_boxes(layers, params.possible), ln_q=ln_q, ln_P=ln_P, l_hat=layers.barred,
        u=np.zeros(S), v=np.zeros(S), theta=np.zeros(X),
        work=np.zeros(work_size(layers.table)),
    )  # fmt: skip


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: Any, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Take one step of mirror descent."""
    boxes = state.boxes
    state.u[:] = -1.0
    confidence_set.bound_visited(lay, boxes, state.pi, states, state.u)
    clipped = _estimate(lay, params, state, states, actions, losses)
    if confidence_set.count_episode(lay, boxes, states, actions):
        confidence_set.rebuild(lay, boxes, params.log_term, params.width)
    state.v[:] = 0.0
    state.theta[:] = 0.0
    outcome = solver(
        lay, boxes.lo, boxes.hi, state.l_hat, params.w, params.tolerance, state.ln_q, state.ln_P,
        state.v, state.theta, state.work, state.pi,
    )  # fmt: skip
    return State(
        state.t + 1, state.clipped + clipped, state.version + 1, entered(state.solves, outcome),
        state.pi, boxes, state.ln_q, state.ln_P, state.l_hat, state.u, state.v,
        state.theta, state.work,
    )  # fmt: skip


@subroutine
def _estimate(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers,
    losses: Vector,
) -> int:  # fmt: skip
    """Set l_hat = l+/(u + gamma) on the visited pairs; return how many losses were clipped."""
    clipped = 0
    for p in range(state.l_hat.size):
        if state.l_hat[p] < math.inf:  # not what is not allowed
            state.l_hat[p] = 0.0
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        l_plus = ldexp(losses[h - 1] - params.low[h - 1], -params.unit)
        if l_plus < 0.0 or l_plus > params.range[h - 1]:
            clipped += 1
            l_plus = min(max(l_plus, 0.0), params.range[h - 1])
        u = state.u[lay[STATE, h] + s] * state.pi[p]
        state.l_hat[p] = l_plus / (u + params.gamma)
    return clipped


class UOBREPS(MDPLearner):
    """UOB-REPS, given the range of the losses (true: an oracle; wrong: what people do).

    Parameters
    ----------
    loss_range : (low, high) or sequence of H such pairs
        Of every layer, or of each.
    rate, implicit, width : float, default 1
        Multiply the paper's learning rate, its implicit exploration and the width of its
        confidence set.

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
        reference="Jin, Jin, Luo, Sra & Yu 2020, Algorithm 2",
        solves="solves",
        solver=PROGRAM,
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
            eta=eta * rate, gamma=eta * implicit, tolerance=tolerance,
            log_term=log_term(shape, T, delta),
            width=Bernstein(JIN.c1 * width, JIN.c2 * width), unit=unit,
            low=loss_range[:, 0].copy(), range=np.ldexp(widths, -unit),
            w=np.ldexp(widths, -unit) / (eta * rate),
            possible=told_support(shape, support),
        )  # fmt: skip
        self._begin(shape, params, seed, {"loss_range": loss_range})
