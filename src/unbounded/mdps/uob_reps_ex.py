"""UOB-REPS-EX under SCB-RL's thresholds: the steps of one episode (Chen & Zhang 2024, Algs. 4, 5).

Losses of layer h pass through a clipping window of width W_h (2 C_h, or the observed range), which
gives l+ in [0, W_h]. With upper occupancy bounds u over the confidence set,

    L_hat += l+/(u + gamma) on visited pairs,
    q~ = argmin over Delta(boxes) of <q, L_hat> + sum_h w_h sum q ln q,   w_h = W_h/(2 eta),

and the policy of an episode is that of q~ with probability 1 - beta, else one of the explorers',
drawn once for the whole episode (erratum E12). Windows move before q~ is computed (E15); weights
never decrease and have a floor (E16); boxes are nested (E13).

Everything is in units of 2^UNIT, the largest exponent of a window: any finite float64 is a legal
loss, and a common factor 2^k changes that one number and nothing else.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from unbounded._jit import subroutine
from unbounded.core import clipping
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.clipping import Window
from unbounded.core.occupancy.confidence import count, rebuild
from unbounded.core.occupancy.ftrl import EXPONENT, floor_weights, new_memory
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    STATE,
    Layers,
    roll_forward,
)
from unbounded.core.occupancy.outcome import FALLBACK
from unbounded.core.occupancy.outcome import UNSOLVED as NOT_SOLVED
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.core.occupancy.work import work_size
from unbounded.core.simplex.sampling import uniform
from unbounded.mdps import explorer_bounds, mvp, rf_elp
from unbounded.mdps.explorer_bounds import Scratch, library_bounds
from unbounded.mdps.mvp import Bonus, Model
from unbounded.mdps.rf_elp import Library, Search
from unbounded.play.sections import (
    CLIPPED,
    CURRENT,
    EPOCH,
    EXPLORING,
    FALLBACKS,
    HEAD,
    LIBRARY,
    PHASE,
    PLAYING,
    SOLVES,
    STEPS,
    TOLD,
    UNIT,
    UNSOLVED,
    VERSION,
    WORST,
    Sizes,
)


class Params(NamedTuple):
    eta: float
    gamma: float
    beta: float
    kappa: float  # floor of the weights (E16)
    skip: float  # solve when some pair's lhat since the last solve exceeds this x w_h |S_h| A
    tolerance: float
    c1: float  # width of the boxes: c1 sqrt(P ln_/N) + c2 ln_/N
    c2: float
    log_term: float
    clip: int  # SCALE: the paper's; RANGE
    rule: int  # LAZY, or LARGEST (E1)
    mixture: bool  # estimator: mixture, else ftrl_only (E12)
    keep_counts: bool  # of the exploration phase (E28)
    learn_thresholds: bool  # in the exploration phase (E28)
    known: bool  # the boxes hold the true transitions and stay
    fixed: bool  # the windows are told and stay
    search: Search
    bonus: Bonus


class State(NamedTuple):
    head: Vector
    pi: Vector  # pairs: policy of q~
    model: Model
    library: Library
    W: Vector  # layers: width of the window, in units of 2^e
    e: Vector
    low: Vector
    high: Vector
    N: Vector  # pairs
    N_before: Vector  # pairs: at the beginning of the epoch
    M: Vector  # triples
    lo: Vector
    hi: Vector
    room: Vector  # pairs: 1 - sum lo
    L_hat: Vector  # pairs
    since: Vector  # pairs: what was added to L_hat since the last solve
    w: Vector  # layers
    q: Vector  # pairs
    u_main: Vector  # states: upper bounds for pi, -1 if not known yet
    u_explorers: Vector  # pairs: upper bounds for the library, -1 if not known in this epoch
    memory: Vector  # of the solver
    l_plus: Vector  # scratch, layers
    e_before: Vector  # scratch, layers
    C: Vector  # scratch, layers
    w_before: Vector  # scratch, layers
    zeros: Vector  # layers
    work: Vector  # scratch of the solver
    values: Vector  # scratch of the upper bounds
    order: Integers
    explorer_bounds: Scratch


def sizes(layers: Layers, capacity: int) -> Sizes:
    """Lengths of the vectors of a `State`."""
    H, X, T = layers.horizon, layers.n_pairs, layers.n_transitions
    values, order = scratch(layers)
    pairs = dict.fromkeys(("pi", "N", "N_before", "room", "L_hat", "since", "q", "u_explorers"), X)
    horizon = dict.fromkeys(
        ("W", "e", "low", "high", "w", "l_plus", "e_before", "C", "w_before", "zeros"), H
    )
    triples = dict.fromkeys(("M", "lo", "hi"), T)
    return {
        **pairs, **horizon, **triples, "head": HEAD, "model": mvp.sizes(layers),
        "library": rf_elp.sizes(layers, capacity), "u_main": layers.n_states,
        "memory": new_memory(layers).size, "work": int(work_size(layers.table)),
        "values": values.size, "order": order.size,
        "explorer_bounds": explorer_bounds.sizes(layers),
    }  # fmt: skip


def init(layers: Layers, state: State) -> None:
    """No visits, empty windows, whole simplices."""
    state.head[EPOCH] = 1.0
    state.pi[:] = 1.0 / layers.n_actions
    state.pi[0] = 1.0
    state.q[0] = 1.0
    state.low[:] = math.inf
    state.high[:] = -math.inf
    state.hi[:] = 1.0
    state.u_main[:] = -1.0
    state.u_explorers[:] = -1.0
    state.memory[:] = new_memory(layers)


# Kernels


@subroutine
def choose(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """Fill ``pi`` with the policy of the next episode; -1 for that of q~, else which explorer."""
    if state.head[PHASE] == EXPLORING:
        k = int(state.head[CURRENT])
        rf_elp.component(lay, state.library, k, pi)
        return k
    x = uniform(word) - (1.0 - params.beta)
    if x < 0.0 or state.head[LIBRARY] == 0.0:
        pi[:] = state.pi
        return -1
    k = rf_elp.draw_component(state.head, state.library, x / params.beta)
    rf_elp.component(lay, state.library, k, pi)
    return k


@subroutine
def learn(
    lay: Integers, params: Params, state: State, program: Any, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    """Learn from one episode of the policy ``component``; ``program`` is `programs.ftrl()`."""
    head = state.head
    head[TOLD] += 1.0
    if head[PHASE] == EXPLORING:
        if params.learn_thresholds:
            _clip(params, state, losses)
        if params.keep_counts:
            count(lay, states, actions, state.N, state.M, state.N_before)
        done = rf_elp.seek(
            lay, params.bonus, params.search, head, state.model, state.library, states, actions,
            state.zeros,
        )  # fmt: skip
        if done:
            begin(lay, params, state, program)
        return
    due = False
    _bounds(lay, params, state, states)
    unit = int(head[UNIT])
    _clip(params, state, losses)
    for h in range(1, lay.shape[1] - 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        gain = math.ldexp(state.l_plus[h - 1], int(state.e_before[h - 1]) - unit)
        u = (1.0 - params.beta) * (state.u_main[lay[STATE, h] + s] * state.pi[p])
        if params.mixture:
            u += params.beta * state.u_explorers[p]
        elif component >= 0:
            continue
        if gain > 0.0:
            estimate = gain / (u + params.gamma)
            state.L_hat[p] += estimate
            state.since[p] += estimate
            if state.since[p] > params.skip * (lay[PAIR, h + 1] - lay[PAIR, h]) * state.w[h - 1]:
                due = True
    if _weigh(lay, params, state):  # E15: the weight of q~_{t+1} has C_{t+1}
        due = True
    if not params.known and count(lay, states, actions, state.N, state.M, state.N_before):
        _new_epoch(lay, params, state)
        due = True
    if due:
        _solve(lay, params, state, program)


@subroutine
def begin(lay: Integers, params: Params, state: State, program: Any) -> None:
    """Enter the main phase: boxes, weights and q~ from what is known so far."""
    state.head[PHASE] = PLAYING
    if params.keep_counts and not params.known:
        _new_epoch(lay, params, state)
    spare_mass(lay, state.lo, state.room)
    _weigh(lay, params, state)
    _solve(lay, params, state, program)


@subroutine
def _clip(params: Params, state: State, losses: Vector) -> None:
    """l+ of each layer in units of 2^e_before; then move the windows (Alg. 4)."""
    l_plus = state.l_plus
    for h in range(losses.size):
        state.e_before[h] = state.e[h]
        before = Window(state.W[h], int(state.e[h]), state.low[h], state.high[h])
        if params.fixed:
            loss = min(max(losses[h], before.low), before.high)
            unit = before.e
            gain = math.ldexp(loss, -unit) - math.ldexp(before.low, -unit)
            l_plus[h] = min(gain, before.W)
            state.head[CLIPPED] += 1.0 if loss != losses[h] else 0.0
            continue
        gain, clipped, after = clipping.clip(before, params.clip, params.rule, losses[h])
        l_plus[h] = gain
        state.W[h] = after.W
        state.e[h] = after.e
        state.low[h] = after.low
        state.high[h] = after.high
        state.head[CLIPPED] += 1.0 if clipped else 0.0


@subroutine
def _bounds(lay: Integers, params: Params, state: State, states: Integers) -> None:
    """Upper occupancy bounds of the visited states, where they are not known yet."""
    for h in range(1, lay.shape[1] - 1):
        s = states[h - 1]
        at = lay[STATE, h] + s
        if state.u_main[at] < 0.0:
            state.u_main[at] = u_state(
                lay, state.lo, state.hi, state.room, state.pi, h, s, state.values, state.order
            )
    if params.mixture:
        library_bounds(
            lay, state.lo, state.hi, state.room, state.library, int(state.head[LIBRARY]), states,
            state.u_explorers, state.explorer_bounds,
        )  # fmt: skip


@subroutine
def _weigh(lay: Integers, params: Params, state: State) -> bool:
    """Move the unit to the largest window and the weights with the windows; True if any moved."""
    H = lay.shape[1] - 2
    head = state.head
    unit = int(head[UNIT])
    largest = -(1 << 30)
    for h in range(H):
        if state.W[h] > 0.0:
            largest = max(largest, int(state.e[h]))
    if largest == -(1 << 30):
        return False
    heaviest = 0.0
    for h in range(H):
        heaviest = max(heaviest, state.w[h])
    if largest != unit:
        if heaviest > 0.0:
            for p in range(state.L_hat.size):
                state.L_hat[p] = math.ldexp(state.L_hat[p], unit - largest)
                state.since[p] = math.ldexp(state.since[p], unit - largest)
            for h in range(H):
                state.w[h] = math.ldexp(state.w[h], unit - largest)
            state.memory[EXPONENT] += unit - largest
        head[UNIT] = largest
    for h in range(H):
        W = state.W[h]
        state.C[h] = 0.5 * math.ldexp(W, int(state.e[h]) - largest) if W > 0.0 else 0.0
        state.w_before[h] = state.w[h]
    floor_weights(state.C, params.eta, params.kappa, state.w)
    moved = False
    for h in range(H):
        moved = moved or state.w[h] != state.w_before[h]
    return moved


@subroutine
def _new_epoch(lay: Integers, params: Params, state: State) -> None:
    state.head[EPOCH] += 1.0
    state.N_before[:] = state.N
    rebuild(lay, state.N, state.M, params.log_term, params.c1, params.c2, True, state.lo, state.hi)
    spare_mass(lay, state.lo, state.room)
    state.u_main[:] = -1.0
    state.u_explorers[:] = -1.0


@subroutine
def _solve(lay: Integers, params: Params, state: State, program: Any) -> None:
    head = state.head
    outcome = program(
        lay, state.lo, state.hi, int(head[EPOCH]), state.L_hat, state.w, params.tolerance,
        state.memory, state.work, state.q, state.pi,
    )  # fmt: skip
    head[SOLVES] += 1.0
    head[FALLBACKS] += 1.0 if outcome.method == FALLBACK else 0.0
    head[UNSOLVED] += 1.0 if outcome.status == NOT_SOLVED else 0.0
    head[WORST] = max(head[WORST], outcome.gap_over_least)
    head[STEPS] += outcome.steps
    head[VERSION] += 1.0
    state.since[:] = 0.0
    state.u_main[:] = -1.0


@subroutine
def expected(
    lay: Integers, params: Params, state: State, P: Vector, cache: Vector, q: Vector
) -> None:
    """Occupancy under ``P`` of the policy of the next episode, explorers included.

    ``cache`` (1 + 2 n_pairs + n_states) keeps the explorers' part; cache[0] = 0 at first.
    """
    X = q.size
    pi = cache[1 + X : 1 + 2 * X]
    mass = cache[1 + 2 * X :]
    if state.head[PHASE] == EXPLORING:
        rf_elp.component(lay, state.library, int(state.head[CURRENT]), pi)
        roll_forward(lay, P, pi, mass, q)
        return
    explorers = cache[1 : 1 + X]
    if params.beta > 0.0 and cache[0] == 0.0:
        rf_elp.mean_occupancy(lay, state.head, state.library, P, pi, mass, q, explorers)
        cache[0] = 1.0
    roll_forward(lay, P, state.pi, mass, q)
    if params.beta > 0.0 and state.head[LIBRARY] > 0.0:
        for p in range(X):
            q[p] = (1.0 - params.beta) * q[p] + params.beta * explorers[p]
