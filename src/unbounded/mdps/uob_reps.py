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

from unbounded._arguments import checked_count, checked_positive
from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy import programs
from unbounded.core.occupancy.confidence import JIN, count, log_term, rebuild
from unbounded.core.occupancy.kl import uniform_base
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    Layers,
)
from unbounded.core.occupancy.outcome import UNSOLVED as NOT_SOLVED
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.core.occupancy.work import work_size
from unbounded.mdps import markov_play
from unbounded.play.learner import Seed
from unbounded.play.mdp_learner import MDPLearner, MDPSpec, checked_layers
from unbounded.play.sections import (
    CLIPPED,
    EPOCH,
    HEAD,
    SOLVES,
    STEPS,
    TOLD,
    UNSOLVED,
    VERSION,
    WORST,
    Sizes,
)


class Params(NamedTuple):
    eta: float
    gamma: float
    tolerance: float
    c1: float
    c2: float
    log_term: float
    exponent: int  # the widest range is below 2^exponent: at any scale nothing overflows


class State(NamedTuple):
    head: Vector
    pi: Vector
    low: Vector  # layers: the range that was told
    width: Vector  # layers, in units of 2^exponent
    N: Vector
    N_before: Vector
    M: Vector
    lo: Vector
    hi: Vector
    room: Vector
    ln_q: Vector  # pairs: logarithms of the iterate q(s,a) P(s'|s,a)
    ln_P: Vector  # triples
    L: Vector  # pairs: this episode's estimates
    w: Vector  # layers
    v: Vector  # states: dual variables, zero before each step
    theta: Vector  # pairs
    work: Vector
    values: Vector
    order: Integers


def sizes(layers: Layers, capacity: int) -> Sizes:
    """Lengths of the vectors of a `State`."""
    H, X, T = layers.horizon, layers.n_pairs, layers.n_transitions
    values, order = scratch(layers)
    pairs = dict.fromkeys(("pi", "N", "N_before", "room", "ln_q", "L", "theta"), X)
    return {
        **pairs, **dict.fromkeys(("low", "width", "w"), H),
        **dict.fromkeys(("M", "lo", "hi", "ln_P"), T), "head": HEAD, "v": layers.n_states,
        "work": int(work_size(layers.table)), "values": values.size,
        "order": order.size,
    }  # fmt: skip


def init(layers: Layers, state: State) -> None:
    """Uniform occupancy, whole simplices."""
    state.head[EPOCH] = 1.0
    state.ln_q[:], state.ln_P[:] = uniform_base(layers)
    state.pi[0] = 1.0
    state.pi[1:] = 1.0 / layers.n_actions
    state.hi[:] = 1.0
    spare_mass(layers.table, state.lo, state.room)


@subroutine
def learn(
    lay: Integers, params: Params, state: State, program: Any, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    """One step of mirror descent; ``program`` is `programs.mirror()`."""
    head = state.head
    head[TOLD] += 1.0
    state.L[:] = 0.0
    for h in range(1, lay.shape[1] - 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        l_plus = math.ldexp(losses[h - 1] - state.low[h - 1], -params.exponent)
        if l_plus < 0.0 or l_plus > state.width[h - 1]:
            head[CLIPPED] += 1.0
            l_plus = min(max(l_plus, 0.0), state.width[h - 1])
        u = u_state(lay, state.lo, state.hi, state.room, state.pi, h, s, state.values, state.order)
        state.L[p] = l_plus / (u * state.pi[p] + params.gamma)
        state.w[h - 1] = state.width[h - 1] / params.eta
    if count(lay, states, actions, state.N, state.M, state.N_before):
        head[EPOCH] += 1.0
        state.N_before[:] = state.N
        rebuild(
            lay, state.N, state.M, params.log_term, params.c1, params.c2, False, state.lo, state.hi
        )
        spare_mass(lay, state.lo, state.room)
    state.v[:] = 0.0
    state.theta[:] = 0.0
    outcome = program(
        lay, state.lo, state.hi, state.L, state.w, params.tolerance, state.ln_q, state.ln_P,
        state.v, state.theta, state.work, state.pi,
    )  # fmt: skip
    head[SOLVES] += 1.0
    head[UNSOLVED] += 1.0 if outcome.status == NOT_SOLVED else 0.0
    head[WORST] = max(head[WORST], outcome.gap_over_least)
    head[STEPS] += outcome.steps
    head[VERSION] += 1.0


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
    eta_factor, gamma_factor, width_factor : float, default 1
        Multiply the paper's rates and the width of the confidence set.
    tolerance : float, default 1e-8
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = UOBREPS([1, 2], 2, episodes=100, loss_range=(-1, 1), seed=0)
    >>> plan = learner.ask()
    >>> learner.tell(plan, [0, 1], [0, 0], [0.5, -0.5])
    >>> bool(learner.policy().tables[0][0, 0] < 0.5)  # it cost 0.5 more than the least
    True
    """

    spec = MDPSpec(
        name="UOBREPS",
        reference="Jin, Jin, Luo, Sra & Yu 2020, Algorithm 2",
        State=State,
        sizes=sizes,
        init=init,
        choose=markov_play.choose,
        learn=learn,
        expected=markov_play.expected,
        program=programs.mirror,
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        delta: float = 0.05,
        *,
        loss_range: npt.ArrayLike = (0.0, 1.0),
        eta_factor: float = 1.0,
        gamma_factor: float = 1.0,
        width_factor: float = 1.0,
        tolerance: float = 1e-8,
        seed: Seed = None,
    ) -> None:
        settings = {k: v for k, v in locals().items() if k not in ("self", "seed", "__class__")}
        shape = checked_layers(layers, n_actions)
        T = checked_count("episodes", episodes)
        checked_positive("delta", delta, below=1.0)
        for name in ("eta_factor", "gamma_factor", "width_factor", "tolerance"):
            checked_positive(name, settings[name])
        self._ranges = checked_ranges(loss_range, shape)
        settings["layers"] = list(shape.sizes)
        settings["loss_range"] = self._ranges.tolist()
        H, S, A = shape.horizon, sum(shape.sizes), shape.n_actions
        eta = math.sqrt(H * math.log(H * S * A / delta) / (T * S * A))
        params = Params(
            eta * eta_factor, eta * gamma_factor, float(tolerance), JIN.c1 * width_factor,
            JIN.c2 * width_factor, log_term(shape, T, delta),
            math.frexp(float(np.diff(self._ranges).max()))[1],
        )  # fmt: skip
        self._start(shape, params, settings, seed)

    def _prepare(self, state: State) -> None:
        state.low[:] = self._ranges[:, 0]
        state.width[:] = np.ldexp(np.diff(self._ranges)[:, 0], -self._params.exponent)


def checked_ranges(loss_range: npt.ArrayLike, layers: Layers) -> Vector:
    """``loss_range`` as an array (H, 2), or a clear error."""
    ranges = np.array(loss_range, dtype=np.float64)
    if ranges.shape == (2,):
        ranges = np.tile(ranges, (layers.horizon, 1))
    if ranges.shape != (layers.horizon, 2):
        raise ValueError(
            f"loss_range must be (low, high), or {layers.horizon} such pairs; "
            f"got shape {ranges.shape}"
        )
    width = ranges[:, 1] - ranges[:, 0]
    if not (np.all(np.isfinite(width)) and np.all(width > 0)):
        raise ValueError(f"loss_range needs finite low < high, got {ranges.tolist()}")
    return ranges
