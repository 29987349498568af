"""UOB-REPS-EX: FTRL over occupancy measures with explicit exploration (Chen & Zhang 2024, Alg. 5).

Losses of layer h come as l+ in [0, W_h], with the width W_h of their window: 2 C_h, or the range.
With upper occupancy bounds u over the confidence set,

    L_hat += l+/(u + gamma) on visited pairs,
    q~ = argmin over Delta(boxes) of <q, L_hat> + sum_h w_h sum q ln q,   w_h = W_h/(2 eta),

and the policy of an episode is that of q~ with probability 1 - beta, else one of the explorers',
drawn once for the whole episode (erratum E12). Windows move before q~ is computed (E15); weights
never decrease and have a floor (E16); boxes are nested (E13). The practical profile subtracts a
centre from l+, for less variance: `centre_of`.

Everything is in units of 2^unit, the largest exponent of a window: any finite float64 is a legal
loss, and a common factor 2^k changes that one number and nothing else.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Counts, Exponent, Integers, IntScratch, Scratch, Sizes, Vector
from unbounded.core.clipping import Windows
from unbounded.core.occupancy.confidence import count, renew
from unbounded.core.occupancy.layout import ACTIONS, PAIR, STATE, Layers, horizon, roll_forward
from unbounded.core.occupancy.solver.ftrl import (
    EXPONENT,
    WarmStart,
    even_play,
    floor_weights,
    new_memory,
)
from unbounded.core.occupancy.solver.sparse import Lists, only_listed
from unbounded.core.occupancy.solver.work import work_size
from unbounded.core.occupancy.upper import scratch, spare_mass, u_unknown
from unbounded.core.scaled import shift_each
from unbounded.core.simplex.sampling import uniform
from unbounded.core.state_validation import (
    ROUNDING,
    require,
    require_boxes,
    require_estimates,
)
from unbounded.jit.kernel import assign, kernel, subroutine
from unbounded.learners.spec import Cache
from unbounded.mdps.steps import explorer_bounds, explorers
from unbounded.mdps.steps.explorer_bounds import Workspace, library_bounds
from unbounded.mdps.steps.explorers import Library
from unbounded.mdps.steps.markov_play import OWN
from unbounded.mdps.steps.solves import NO_SOLVES, Solves, entered

_MOST = 2.0**200  # of estimates in units of 2^unit


class Params(NamedTuple):
    eta: float
    gamma: float
    beta: float
    kappa: float  # floor of the weights (E16)
    skip: float  # solve when some pair's lhat since the last solve exceeds this x w_h |S_h| A
    tolerance: float
    c1: float  # width of the boxes: c1 sqrt(P log_term/N) + c2 log_term/N
    c2: float
    log_term: float
    mixture: bool  # estimator: mixture, else ftrl_only (E12)
    lazy: bool  # renew each pair's box when its own visits have doubled, the explorers' bounds late
    centre: float  # multiplies what is subtracted from l+ before it is divided
    possible: Vector  # triples: 1 or 0, if the support was told; else empty
    lists: Lists  # of the same, if few are possible
    even: Vector  # pairs: the policy that takes all allowed actions evenly


class State(NamedTuple):
    epoch: int
    unit: Exponent
    version: int  # changes with q~
    solves: Solves
    N: Counts  # pairs: visits
    N_before: Counts  # pairs: at the beginning of the epoch
    M: Counts  # triples: transitions seen
    lo: Vector  # triples: the boxes
    hi: Vector
    room: Vector  # pairs: 1 - sum lo
    L_hat: Vector  # pairs; infinite where not allowed
    since: Sizes  # pairs: what was added to L_hat since the last solve
    w: Sizes  # layers
    paid: Sizes  # layers: sum of l+/W_h since W_h last changed
    times: Counts  # layers: of so many losses
    q: Sizes  # pairs: q~
    pi: Vector  # pairs: policy of q~
    u_main: Vector  # states: upper bounds for pi, -1 if not known yet
    u_explorers: Vector  # pairs: upper bounds for the library, -1 if not known in this epoch
    memory: WarmStart  # of the solver
    C: Vector  # layers: C_h in units of 2^unit, of the last window that was weighed
    w_before: Scratch  # layers
    work: Scratch  # of the solver
    values: Scratch  # of the upper bounds
    order: IntScratch  # likewise
    bounds: Workspace  # of the explorers' bounds

    def check(self) -> None:
        """Refuse what cannot have been learned."""
        require(np.all(self.paid <= 2.0 * self.times), "no losses have such a mean")
        require_estimates(abs(self.L_hat), _MOST)
        require_boxes(self.lo, self.hi)
        self.memory.check()
        for bound in (self.u_main, self.u_explorers):
            require(np.all((bound == -1.0) | (abs(bound - 0.5) <= 0.5 + ROUNDING)), "no bounds")


def init(layers: Layers, params: Params) -> State:
    """No visits, whole simplices; q~ is computed by `begin`."""
    H, S, X, T = layers.horizon, layers.n_states, layers.n_pairs, layers.n_transitions
    values, order = scratch(layers)
    lo, hi = np.zeros(T), params.possible.copy() if params.possible.size else np.ones(T)
    q, pi = even_play(layers, lo, hi)
    state = State(
        epoch=1, unit=0, version=0, solves=NO_SOLVES, N=np.zeros(X), N_before=np.zeros(X),
        M=np.zeros(T), lo=lo, hi=hi, room=np.zeros(X), L_hat=layers.barred,
        since=np.zeros(X), w=np.zeros(H), paid=np.zeros(H), times=np.zeros(H), q=q, pi=pi,
        u_main=np.full(S, -1.0), u_explorers=np.full(X, -1.0), memory=new_memory(layers),
        C=np.zeros(H), w_before=np.zeros(H), work=np.zeros(work_size(layers.table)),
        values=np.zeros(values.size), order=np.zeros(order.size, np.int64),
        bounds=explorer_bounds.new_scratch(layers),
    )  # fmt: skip
    spare_mass(layers.table, state.lo, state.room)
    return state


# Kernels


@kernel
def act(
    lay: Integers, params: Params, state: State, library: Library, word: int, pi: Vector
) -> int:
    """Line 11: the policy of q~, or with probability beta an explorer's, and which one."""
    x = uniform(word) - (1.0 - params.beta)
    if x < 0.0 or library.size == 0:
        assign(pi, state.pi)
        return OWN
    k = explorers.draw(library, x / params.beta)
    explorers.fill_component(lay, params.even, library, k, pi)
    return k


@kernel
def distribution(
    lay: Integers, params: Params, state: State, library: Library, edition: int, P: Vector,
    cache: Cache, q: Vector,
) -> None:  # fmt: skip
    """Occupancy under ``P`` of what `act` plays; the explorers' part is kept in ``cache`` for this
    ``edition`` of the library (``q`` is scratch while it is computed)."""
    if params.beta > 0.0 and cache.known[0] != 1.0 + edition:
        explorers.mean_occupancy(
            lay, params.even, library, P, cache.pi, cache.mass, q, cache.explorers
        )
        cache.known[0] = 1.0 + edition
    roll_forward(lay, P, state.pi, cache.mass, q)
    if params.beta > 0.0 and library.size > 0:
        for p in range(q.size):
            q[p] = (1.0 - params.beta) * q[p] + params.beta * cache.explorers[p]


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: Any, library: Library, component: int,
    states: Integers, actions: Integers, windows: Windows,
) -> State:  # fmt: skip
    """Lines 3 to 10, for an episode of ``component`` whose losses went through ``windows``."""
    bound_visited(lay, params, state, library, states)  # line 3
    due = estimate(lay, params, state, component, states, actions, windows)  # line 4
    unit, moved = weigh(params, state, windows)  # E15: the weight of q~_{t+1} has C_{t+1}
    epoch = state.epoch
    doubled = count(lay, states, actions, state.N, state.M, state.N_before)  # lines 5 and 6
    if doubled and (new_epoch(lay, params, state) or not params.lazy):  # lines 7 to 9
        epoch += 1
        due = True
    if params.lazy and late(int(state.N[0])):
        state.u_explorers[:] = -1.0
    if due or moved:
        return solved(lay, params, state, epoch, unit, solver)  # line 10
    return with_numbers(state, epoch, unit, state.version, state.solves)


@kernel
def begin(
    lay: Integers, params: Params, state: State, solver: Any, windows: Windows, keep_counts: bool
) -> State:
    """The first q~ with these explorers, from what was learned before, of transitions too if
    ``keep_counts`` (E28)."""
    epoch = state.epoch
    state.u_explorers[:] = -1.0
    if keep_counts:
        epoch += 1
        new_epoch(lay, params, state)
    unit, _ = weigh(params, state, windows)
    return solved(lay, params, state, epoch, unit, solver)


@kernel
def at_rates(
    params: Params, eta: float, gamma: float, beta: float, skip: float, log_term: float
) -> Params:
    """The same with other rates."""
    return Params(
        eta, gamma, beta, params.kappa, skip, params.tolerance, params.c1, params.c2, log_term,
        params.mixture, params.lazy, params.centre, params.possible, params.lists, params.even,
    )  # fmt: skip


@kernel
def with_numbers(state: State, epoch: int, unit: int, version: int, solves: Solves) -> State:
    """The same arrays with other numbers."""
    return State(
        epoch, unit, version, solves, state.N, state.N_before, state.M, state.lo, state.hi,
        state.room, state.L_hat, state.since, state.w, state.paid, state.times, state.q,
        state.pi, state.u_main, state.u_explorers, state.memory, state.C, state.w_before,
        state.work, state.values, state.order, state.bounds,
    )  # fmt: skip


@kernel
def before_losses(state: State, windows: Windows) -> None:
    """Note the windows that the losses of this episode will go through."""
    for h in range(state.C.size):
        W = windows.W[h]
        state.C[h] = 0.5 * math.ldexp(W, int(windows.e[h]) - state.unit) if W > 0.0 else 0.0


@subroutine
def bound_visited(
    lay: Integers, params: Params, state: State, library: Library, states: Integers
) -> None:
    """Comp-UOB: upper occupancy bounds of the visited states, where they are not known yet."""
    u_unknown(
        lay, state.lo, state.hi, state.room, state.pi, states, state.u_main, state.values,
        state.order,
    )  # fmt: skip
    if params.mixture:
        listed = only_listed(lay, params.lists, state.N, state.M)
        library_bounds(
            lay, params.even, state.lo, state.hi, state.room, library, states, params.lists, listed,
            state.u_explorers, state.bounds,
        )  # fmt: skip


@subroutine
def estimate(
    lay: Integers, params: Params, state: State, component: int, states: Integers,
    actions: Integers, windows: Windows,
) -> bool:  # fmt: skip
    """L_hat += (l+ - c)/(u + gamma) on the visited pairs, L_hat -= c gamma/((1 - beta) q~ + gamma)
    on all. Returns whether q~ has become too old (`skip`)."""
    due = False
    for h in range(1, horizon(lay) + 1):
        s = states[h - 1]
        p = lay[PAIR, h] + s * lay[ACTIONS, h] + actions[h - 1]
        l_plus = math.ldexp(windows.l_plus[h - 1], int(windows.e_before[h - 1]) - state.unit)
        u = (1.0 - params.beta) * (state.u_main[lay[STATE, h] + s] * state.pi[p])
        if params.mixture:
            u += params.beta * state.u_explorers[p]
        c = centre_of(params, state, h, l_plus)
        l_plus -= c
        if l_plus != 0.0 and (params.mixture or component == OWN):
            l_hat = l_plus / (u + params.gamma)
            state.L_hat[p] += l_hat
            state.since[p] += abs(l_hat)
            pairs = lay[PAIR, h + 1] - lay[PAIR, h]
            if state.since[p] > params.skip * pairs * state.w[h - 1]:
                due = True
        if c > 0.0:
            c *= params.gamma
            for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
                state.L_hat[p] -= c / ((1.0 - params.beta) * state.q[p] + params.gamma)
    return due


@kernel
def centre_of(params: Params, state: State, h: int, l_plus: float) -> float:
    """What the loss ``l_plus`` of layer ``h`` is taken from: the mean of those before it, W/2.

    The lesser of the two. Where most losses are near the low end, as with many actions of which
    one is charged, a centre far above them would add variance; one above W/2 would take away that
    estimates are optimistic where u > q~. The mean begins anew when the window has changed, with
    one loss in the middle.
    """
    W = 2.0 * state.C[h - 1]
    if params.centre == 0.0 or W == 0.0:
        return 0.0
    share = (0.5 + state.paid[h - 1]) / (1.0 + state.times[h - 1])
    state.paid[h - 1] += l_plus / W
    state.times[h - 1] += 1.0
    return params.centre * min(share, 0.5) * W


@subroutine
def weigh(params: Params, state: State, windows: Windows) -> tuple[int, bool]:
    """Move the unit to the largest window and the weights with the windows.

    Returns the unit, and whether any weight moved.
    """
    none = -(1 << 30)
    largest = none
    heaviest = 0.0
    for h in range(state.w.size):
        heaviest = max(heaviest, state.w[h])
        if windows.W[h] > 0.0:
            largest = max(largest, int(windows.e[h]))
    if largest == none:
        return state.unit, False
    shift = state.unit - largest
    if shift != 0 and heaviest > 0.0:
        shift_each(state.L_hat, shift)
        shift_each(state.since, shift)
        shift_each(state.w, shift)
        state.memory.head[EXPONENT] += shift
    for h in range(state.w.size):
        W = windows.W[h]
        before = math.ldexp(state.C[h], shift)
        state.C[h] = 0.5 * math.ldexp(W, int(windows.e[h]) - largest) if W > 0.0 else 0.0
        if state.C[h] != before:
            state.paid[h] = 0.0
            state.times[h] = 0.0
        state.w_before[h] = state.w[h]
    floor_weights(state.C, params.eta, params.kappa, state.w)
    moved = False
    for h in range(state.w.size):
        moved = moved or state.w[h] != state.w_before[h]
    return largest, moved


@kernel
def late(t: int) -> bool:
    """Whether the explorers' bounds are computed again after ``t`` episodes: four times while t
    doubles. Boxes are nested, so that older bounds are bounds, if larger than need be."""
    step = 1
    while 8 * step <= t:
        step *= 2
    return t % step == 0


@subroutine
def new_epoch(lay: Integers, params: Params, state: State) -> bool:
    """Boxes from the counts so far, whether any changed; then the bounds change, too."""
    growth = 2.0 if params.lazy else 1.0
    changed = renew(
        lay, state.N, state.N_before, state.M, params.log_term, params.c1, params.c2, growth,
        state.lo, state.hi,
    )  # fmt: skip
    if changed:
        spare_mass(lay, state.lo, state.room)
        state.u_main[:] = -1.0
        if not params.lazy:
            state.u_explorers[:] = -1.0
    return changed


@kernel
def solved(
    lay: Integers, params: Params, state: State, epoch: int, unit: int, solver: Any
) -> State:
    """Compute q~ and its policy."""
    outcome = solver(
        lay, state.lo, state.hi, epoch, state.L_hat, state.w, params.tolerance, state.memory,
        state.work, state.q, state.pi,
    )  # fmt: skip
    state.since[:] = 0.0
    state.u_main[:] = -1.0
    return with_numbers(state, epoch, unit, state.version + 1, entered(state.solves, outcome))
