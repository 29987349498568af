"""APO-MVP with AdaHedge: policy optimization in an MDP whose losses are all seen, full information.

After Tiapkin, Chzhen & Stoltz 2025 ("Narrowing the gap between adversarial and stochastic MDPs via
policy optimization", AISTATS, arXiv 2407.05704): regret O~(sqrt(H^7 S A T)) for losses in [0, 1],
by dynamic programming and a black-box online linear optimization in every state, run on estimated
advantages, with transitions estimated in epochs that end when visits double, as in MVP.
**Reconstructed** from the abstract and the structure of the paper, not from its text: constants,
and what is said below, are ours, and so the theorem is not claimed for them.

An epoch ends with the episode in which the visits N(s, a) of some pair reach 1, 2, 4, ...; P and
the bonus are those of the counts at its beginning. After an episode that was played with pi, with
all losses l(s, a) known, backwards over layers,

    Q(s, a) = l(s, a) - b(s, a) + sum_s' P(s'|s, a) V(s'),       V(s) = sum_a pi(a|s) Q(s, a),
    b(s, a) = R_{h+1} min(1, bonus sqrt(2 ln(S A t^2/delta)/N(s, a))),    R_h = W_h + ... + W_H,

with t the epoch's first episode, S the states of all layers, and W_h the largest range so far,
highest minus lowest loss of an episode, of layer h: H - h takes the place of R_{h+1} in the paper,
where losses are in [0, 1]. V is 0 after the last layer, and nothing is truncated. In every state
AdaHedge (de Rooij et al. 2014) gets Q(s, .): a constant does not matter to it, so that these are
the advantages Q - V. It starts again in every state with each epoch.

A pair without visits has the uniform P and the largest bonus, R_{h+1}. A pair of which it is
certain where it leads has no bonus and ends no epoch: those of the last layer, those before a layer
of one state, the end of episodes that end early.

Losses of a layer are taken less their least one in the episode, which moves V of a layer by a
constant and nothing else. Each layer's numbers are in units of 2^e, the exponent of R_h: any finite
float64 is a legal loss, and a common factor 2^k changes these exponents and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import (
    ROUNDING,
    Count,
    CountsBelowT,
    Exponents,
    Integers,
    Mantissas,
    Scratch,
    Shares,
    Values,
    Vector,
    require,
)
from unbounded.core.occupancy.confidence import told_support
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.core.scaled import added, shift_each, sums_from, widths
from unbounded.core.simplex.hedge import ada_hedge, hedge
from unbounded.core.simplex.sampling import LANES, ROOM, Law
from unbounded.jit.kernel import kernel, section, subroutine
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.validation import checked_constant, checked_flag, checked_within

_LIMITS = 1e-9, 1e6  # of the bonus
_MOST = 1e200  # no sum of Q in units of R comes near


class Params(NamedTuple):
    bonus: float
    log_term: float  # ln(S A/delta)
    restart: bool


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    version: int
    epochs: Count
    W: Mantissas  # layers: the largest range of an episode, mantissa in [0.5, 1); 0: none yet
    e_W: Exponents  # layers: its exponent
    e: Vector  # layers: the exponent of R_h, the unit of what follows
    L: Annotated[Vector, Values(-_MOST, _MOST)]  # pairs: sums of Q; infinite where not allowed
    D: Annotated[Vector, Values(0.0, _MOST)]  # states: sums of AdaHedge's gaps
    pi: Vector  # pairs
    N: CountsBelowT  # pairs: visits
    M: CountsBelowT  # triples: transitions seen
    P: Shares  # triples: the epoch's transitions
    b: Shares  # pairs: the epoch's bonus over R_{h+1}; 0: it is certain where the pair leads
    Q: Scratch  # pairs
    V: Scratch  # states
    lanes: Scratch  # of AdaHedge
    room: Scratch

    def check(self, params: Params) -> None:
        require(self.epochs < self.t, "no so many epochs")
        units = [e for _, e in sums_from(self.W, self.e_W)]
        require(np.array_equal(self.e, units), "losses have no such unit")

    def check_for(self, layers: Layers) -> None:
        """Reject counts that do not fit, transitions that are no distributions, sums of nothing."""
        lay = layers.table
        for h in range(1, layers.horizon + 1):
            L, D = (
                self.L[lay[PAIR, h] : lay[PAIR, h + 1]],
                self.D[lay[STATE, h] : lay[STATE, h + 1]],
            )
            learned = np.any(self.W[h - 1 :] > 0.0)
            nothing = np.all((L == 0.0) | np.isinf(L)) and np.all(D == 0.0)
            require(learned or nothing, "there are no such losses")
        for h in range(1, layers.horizon):
            n, of = int(lay[SIZE, h + 1]), slice(lay[TRIPLE, h], lay[TRIPLE, h + 1])
            visits = self.M[of].reshape(n, -1).sum(axis=0)
            require(np.array_equal(visits, self.N[lay[PAIR, h] : lay[PAIR, h + 1]]), "no visits")
            total = self.P[of].reshape(n, -1).sum(axis=0)
            require(np.all(abs(total - 1.0) <= ROUNDING), "transitions are no distributions")


def init(layers: Layers, params: Params) -> State:
    """No range, no visits, uniform actions, uniform transitions."""
    H, S, X = layers.horizon, layers.n_states, layers.n_pairs
    possible, lay = told_support(layers, None), layers.table
    P, b = possible if possible.size else np.ones(layers.n_transitions), np.zeros(X)
    for h in range(H):
        rows = P[lay[TRIPLE, h] : lay[TRIPLE, h + 1]].reshape(int(lay[SIZE, h + 1]), -1)
        b[lay[PAIR, h] : lay[PAIR, h + 1]] = rows.sum(axis=0) > 1.0
        rows /= rows.sum(axis=0)
    b[0] = 0.0  # nothing depends on where episodes begin
    return State(
        t=1, clipped=0, version=0, epochs=0, W=np.zeros(H), e_W=np.zeros(H), e=np.zeros(H),
        L=layers.barred, D=np.zeros(S), pi=layers.even, N=np.zeros(X),
        M=np.zeros(layers.n_transitions), P=P, b=b, Q=np.zeros(X), V=np.zeros(S),
        lanes=np.zeros(LANES), room=np.zeros(ROOM),
    )  # fmt: skip


# Kernels


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from the losses of all pairs, and from where an episode led."""
    epochs = state.epochs
    ended = count(lay, state, states, actions)
    learn(lay, state, losses)
    if ended:
        epochs += 1
        renew(lay, params, state)
        if params.restart:
            restart(lay, state)
    return State(
        state.t + 1, 0, state.version + 1, epochs, state.W, state.e_W, state.e, state.L, state.D,
        state.pi, state.N, state.M, state.P, state.b, state.Q, state.V, state.lanes,
        state.room,
    )  # fmt: skip


@subroutine
def count(lay: Integers, state: State, states: Integers, actions: Integers) -> bool:
    """Count the visits of an episode; whether the epoch ends with it."""
    ended = False
    for h in range(1, horizon(lay)):
        i = states[h - 1] * lay[ACTIONS, h] + actions[h - 1]
        p = lay[PAIR, h] + i
        state.N[p] += 1.0
        state.M[lay[TRIPLE, h] + states[h] * (lay[SIZE, h] * lay[ACTIONS, h]) + i] += 1.0
        if state.b[p] > 0.0 and math.frexp(state.N[p])[0] == 0.5:
            ended = True
    return ended


@subroutine
def learn(lay: Integers, state: State, losses: Vector) -> None:
    """Q, V and a step of AdaHedge in every state, backwards; units follow the ranges."""
    R = 0.0  # of the next layer, in units of 2^e
    e = 0
    for h in range(horizon(lay), 0, -1):
        low, top = measure(lay, state, h, losses)
        R_next = R
        e_next = e
        R, e = added(R, e, state.W[h - 1], int(state.e_W[h - 1]))
        change_unit(lay, state, h, e)
        look_ahead(lay, state, h, R_next, e_next - e)
        add_losses(lay, state, h, losses, low, top)
        improve(lay, state, h)


@subroutine
def measure(lay: Integers, state: State, h: int, losses: Vector) -> tuple[float, int]:
    """Update the largest range of layer ``h``; return its smallest loss in units of 2^top."""
    low = math.inf
    high = -math.inf
    for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
        if state.L[p] < math.inf:
            low = min(low, losses[p])
            high = max(high, losses[p])
    top = math.frexp(max(abs(low), abs(high)))[1]
    low = math.ldexp(low, -top)
    W, e_W = math.frexp(math.ldexp(high, -top) - low)
    e_W += top
    before = state.W[h - 1]
    e_before = int(state.e_W[h - 1])
    if W > 0.0 and (before == 0.0 or e_W > e_before or (e_W == e_before and before < W)):
        state.W[h - 1] = W
        state.e_W[h - 1] = e_W
    return low, top


@kernel
def change_unit(lay: Integers, state: State, h: int, e: int) -> None:
    """Convert from units of layer ``h`` to units of 2^e."""
    shift = int(state.e[h - 1]) - e
    if shift != 0:
        shift_each(section(state.L, lay[PAIR, h], lay[PAIR, h + 1]), shift)
        shift_each(section(state.D, lay[STATE, h], lay[STATE, h + 1]), shift)
        state.e[h - 1] = e


@subroutine
def look_ahead(lay: Integers, state: State, h: int, R: float, shift: int) -> None:
    """Q of layer ``h`` = P V - b; R and V of the next layer come times 2^shift."""
    first = lay[PAIR, h]
    m = lay[PAIR, h + 1] - first
    for p in range(first, first + m):
        state.Q[p] = 0.0
    if h == horizon(lay) or not R > 0.0:
        return
    unit = math.ldexp(1.0, shift)
    for j in range(lay[SIZE, h + 1]):
        V = unit * state.V[lay[STATE, h + 1] + j]
        k = lay[TRIPLE, h] + j * m
        for i in range(m):
            state.Q[first + i] += state.P[k + i] * V
    for p in range(first, first + m):
        state.Q[p] -= state.b[p] * (unit * R)


@kernel
def add_losses(lay: Integers, state: State, h: int, losses: Vector, low: float, top: int) -> None:
    """Q of layer ``h`` gets its losses, less their least one."""
    shift = top - int(state.e[h - 1])
    for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
        if state.L[p] < math.inf:
            above = math.ldexp(losses[p], -top) - low
            if above > 0.0:
                state.Q[p] += math.ldexp(above, shift)


@subroutine
def improve(lay: Integers, state: State, h: int) -> None:
    """V of layer ``h`` under the policy that was played, and the next policy."""
    A = lay[ACTIONS, h]
    for s in range(lay[SIZE, h]):
        first = lay[PAIR, h] + s * A
        k = lay[STATE, h] + s
        n = 0
        V = 0.0
        for p in range(first, first + A):
            if state.L[p] < math.inf:
                n += 1
                V += state.pi[p] * state.Q[p]
        state.V[k] = V
        if n > 1:
            L = section(state.L, first, first + A)
            Q = section(state.Q, first, first + A)
            state.D[k] = ada_hedge(n, L, state.D[k], Q, law_of(state, first, A))


@kernel
def law_of(state: State, first: int, A: int) -> Law:
    """Return the policy of a state."""
    return Law(section(state.pi, first, first + A), state.lanes, state.room)


@subroutine
def renew(lay: Integers, params: Params, state: State) -> None:
    """Transitions and bonuses of the epoch that begins, from the counts so far."""
    ln_ = params.log_term + 2.0 * math.log(float(state.t + 1))
    for h in range(1, horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            N = state.N[p]
            if state.b[p] > 0.0 and N > 0.0:
                state.b[p] = min(1.0, params.bonus * math.sqrt(2.0 * ln_ / N))
                for j in range(lay[SIZE, h + 1]):
                    k = lay[TRIPLE, h] + j * m + i
                    state.P[k] = state.M[k] / N


@subroutine
def restart(lay: Integers, state: State) -> None:
    """AdaHedge begins again in every state."""
    for p in range(state.L.size):
        if state.L[p] < math.inf:
            state.L[p] = 0.0
    for s in range(state.D.size):
        state.D[s] = 0.0
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for first in range(lay[PAIR, h], lay[PAIR, h + 1], A):
            hedge(section(state.L, first, first + A), math.inf, law_of(state, first, A))


class APOMVP(MDPLearner):
    """APO-MVP with AdaHedge: layered MDPs where the losses of all states and actions are seen.

    A baseline with *full information*: after an episode `tell` gets the whole tables of losses, one
    per layer, and not only what was paid; where the actions lead is learned from the episodes. It
    is scale-free, and translation-invariant in every layer and episode (unless episodes end early:
    the end costs 0). Reconstructed from the abstract and the structure of the paper, not its text.

    Parameters
    ----------
    bonus : float, default 1
        Multiplies the bonus that leads to where transitions are not known well. The default is that
        of the theory, as reconstructed; smaller ones did better (docs/guide/scb-rl.md).
    restart : bool, default True
        Whether the policies of all states begin again, uniform, with each epoch, as in the theory.

    Examples
    --------
    >>> learner = APOMVP(layers=[1, 2], n_actions=2, seed=0)
    >>> losses = [[[0.0, 0.0]], [[5e9, 5e9], [-3e9, -3e9]]]
    >>> for _ in range(100):
    ...     plan = learner.ask()
    ...     action = plan.act(0, 0)  # which leads to the state of that number
    ...     learner.tell(plan, [0, action], [action, plan.act(1, action)], losses)
    >>> bool(learner.policy().tables[0][0, 1] > 0.9)
    True
    >>> learner.ranges.tolist()
    [0.0, 8000000000.0]
    """

    spec = MDPSpec.of(
        __name__,
        reference="Tiapkin, Chzhen & Stoltz 2025, arXiv 2407.05704, reconstructed",
        feedback="full",
        infinite=("L",),
        scale_free=True,
        examples=({}, {"bonus": 0.1, "restart": False}),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        delta: float = 0.05,
        *,
        bonus: float = 1.0,
        restart: bool = True,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        delta = checked_constant("delta", delta, below=1.0)
        bonus = checked_within("bonus", bonus, *_LIMITS)
        restart = checked_flag("restart", restart)
        log_term = math.log(sum(shape.sizes) * shape.n_actions / delta)
        self._begin(shape, Params(bonus, log_term, restart), seed)

    @property
    def ranges(self) -> Vector:
        """The largest range of each layer's losses in an episode so far."""
        state = self._state()
        return widths(state.W, state.e_W)

    @property
    def epochs(self) -> int:
        """Return the number of epochs that are over."""
        return int(self._scalar("epochs"))

    def _check_state(self) -> None:
        super()._check_state()
        self._state().check_for(self.layers)
