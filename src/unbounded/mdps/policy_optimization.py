"""Policy optimization: exponential weights in every state, on estimated losses-to-go with a bonus.

After Luo, Wei & Lee 2021 ("Policy optimization in adversarial MDPs: improved exploration via
dilated bonuses"), made scale-free by clipping as in SCB-RL (Chen & Zhang 2024), and fast: there is
no program over occupancy measures, and the cost goes by the transitions that were seen.

Losses of layer h come as l+ in [0, W_h], with the width W_h of their window; R_h = W_h + ... + W_H.
With u(s), the occupancy of s under the model (`core/occupancy/seen.py`) and gamma_h of order
1/sqrt(n_h A t), the estimates of an episode are

    l_hat(s, a) = ((l+ - W_h/2) 1{visited} - (W_h/2) gamma_h)/(u(s) pi(a|s) + gamma_h),
    Q(s, a)     = l_hat(s, a) + E[V(s')],            V(s) = sum_a pi(a|s) Q(s, a),
    D(s, a)     = b(s) + (1 + 1/H) E[B(s')],         B(s) = sum_a pi(a|s) D(s, a),
    b(s)        = bonus R_h sum_a pi(a|s) gamma_h/(u(s) pi(a|s) + gamma_h),

with E under the model (u by the one before the episode, E by the one after it), and the policy
becomes

    pi(a|s) = (1 - beta) p(a|s) + beta/A,     p(a|s) ~ exp(-eta(s) G(s, a)),
    G += (Q - D) less its mean under pi,      v += variance of Q - D under pi,
    eta(s) = rate sqrt(ln A)/sqrt((R_h A)^2 + v(s)),     beta = min(1/2, mixing/sqrt(t + 1)).

The explicit exploration, beta, is SCB's: an action that is known to lead to where it costs may yet
pay more than anything seen in its layer so far, and would never be tried again without it.

Three things differ from the paper. Q comes through the model and not from the losses of the rest of
the episode, and losses are centered, by a control variate with the optimism of l+/(u + gamma):
both are better (docs/results/index.md). And u is a mean and not an upper bound: that
is one pass over what was seen, for all states. So **there is no theorem** for this learner.

Each layer's numbers are in units of 2^e, the exponent of its R_h: any finite float64 is a legal
loss, and a common factor 2^k changes these exponents and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Mantissas, Scratch, Sizes, Values, Vector, require
from unbounded.core.clipping import LAZY, RANGE, Windows, clip_each, empty_windows
from unbounded.core.occupancy import seen as transitions
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, Layers, horizon
from unbounded.core.occupancy.mdp import Markov
from unbounded.core.occupancy.seen import Seen, expected, fits, mean, nothing_seen, observe, reach
from unbounded.core.scaled import added, sums_from, widths
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners import persistence as documents
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.validation import checked_option, checked_within

_LIMITS = 1e-9, 1e6  # of the constants: no product of them overflows


class Params(NamedTuple):
    clip: int  # RANGE: docs/theory/range-clipping.md; SCALE: the paper's
    rate: float  # of eta
    implicit: float  # of gamma
    bonus: float
    mixing: float  # of beta


class State(NamedTuple):
    t: int
    clipped: int
    version: int
    windows: Windows  # layers
    R: Mantissas  # layers: mantissa of what an episode can cost from there on; 0: nothing yet
    e: Annotated[Vector, Values(-2000, 2000, whole=True)]  # layers: its exponent
    seen: Seen
    G: Vector  # pairs, in units of 2^e of their layer
    v: Sizes  # states, in units of 4^e
    pi: Vector  # pairs
    l: Scratch  # layers: l+ - W/2
    half: Scratch  # layers: W/2
    mass: Scratch  # states: u
    V: Scratch  # states
    B: Scratch  # states
    x: Scratch  # pairs: Q - D, without b(s), which is the same for all actions

    def check(self, params: Params) -> None:
        rest = sums_from(self.windows.W, self.windows.e)
        units = list(zip(self.R, self.e, strict=True))
        require(units == rest, "losses have no such unit")


def init(layers: Layers, params: Params) -> State:
    """Empty windows, nothing seen, uniform actions."""
    H, S, X = layers.horizon, layers.n_states, layers.n_pairs
    return State(
        t=1, clipped=0, version=0, windows=empty_windows(H), R=np.zeros(H), e=np.zeros(H),
        seen=nothing_seen(layers), G=np.zeros(X), v=np.zeros(S), pi=Markov.uniform(layers).pi,
        l=np.zeros(H), half=np.zeros(H), mass=np.zeros(S), V=np.zeros(S), B=np.zeros(S),
        x=np.zeros(X),
    )  # fmt: skip


def grown(state: State) -> State:
    """Return the same with room for more transitions."""
    return state._replace(seen=transitions.grown(state.seen))


# Kernels


@kernel
def room(state: State) -> bool:
    """Return whether the transitions of one more episode fit."""
    return fits(state.R.size, state.seen)


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode; every state's policy changes."""
    for h in range(losses.size):
        state.half[h] = 0.5 * state.windows.W[h]
    clipped = state.clipped + clip_each(state.windows, params.clip, LAZY, losses)
    measure(lay, state)
    reach(lay, state.seen, state.pi, state.mass)  # by the model that was there before the episode
    seen = state.seen
    size = observe(lay, seen, states, actions)
    seen = Seen(size, seen.N, seen.begin, seen.after, seen.to, seen.M)
    for h in range(horizon(lay), 0, -1):
        improve_layer(lay, params, state, h, states[h - 1], actions[h - 1])
    return State(
        state.t + 1, clipped, state.version + 1, state.windows, state.R, state.e, seen, state.G,
        state.v, state.pi, state.l, state.half, state.mass, state.V, state.B, state.x,
    )  # fmt: skip


@subroutine
def measure(lay: Integers, state: State) -> None:
    """R_h of the new windows, what is in units of it, and the episode's losses in these units."""
    R = 0.0
    e = 0
    for h in range(state.R.size - 1, -1, -1):
        R, e = added(R, e, state.windows.W[h], int(state.windows.e[h]))
        if state.R[h] > 0.0 and state.e[h] != e:
            factor = math.ldexp(1.0, int(state.e[h]) - e)
            for p in range(lay[PAIR, h + 1], lay[PAIR, h + 2]):
                state.G[p] *= factor
            for s in range(lay[STATE, h + 1], lay[STATE, h + 2]):
                state.v[s] *= factor * factor
        state.R[h] = R
        state.e[h] = e
        half = state.half[h]
        shift = int(state.windows.e_before[h]) - e
        state.l[h] = math.ldexp(state.windows.l_plus[h] - half, shift) if half > 0.0 else 0.0
        state.half[h] = math.ldexp(half, shift) if half > 0.0 else 0.0


@subroutine
def improve_layer(
    lay: Integers, params: Params, state: State, h: int, visited: int, action: int
) -> None:
    """V, B and the policy of layer ``h``, given V and B of the next one."""
    H = horizon(lay)
    A = lay[ACTIONS, h]
    R = state.R[h - 1]
    if not R > 0.0:  # then the next layers have none either: there is nothing to learn from
        for s in range(lay[STATE, h], lay[STATE, h + 1]):
            state.V[s] = 0.0
            state.B[s] = 0.0
        return
    gamma = params.implicit / math.sqrt(lay[SIZE, h] * A * float(state.t))
    unit = 0.0  # of the next layer, in units of this one
    V_mean = B_mean = 0.0
    if h < H and state.R[h] > 0.0:
        unit = math.ldexp(1.0, int(state.e[h]) - int(state.e[h - 1]))
        V_mean = mean(state.V, lay[STATE, h + 1], lay[STATE, h + 2])
        B_mean = mean(state.B, lay[STATE, h + 1], lay[STATE, h + 2])
    dilated = unit * (1.0 + 1.0 / H)
    pi = state.pi
    for s in range(lay[SIZE, h]):
        first = lay[PAIR, h] + s * A
        u = state.mass[lay[STATE, h] + s]
        V = B = b = 0.0
        for p in range(first, first + A):
            share = 1.0 / (u * pi[p] + gamma)  # what divides l_hat and b
            Q = -state.half[h - 1] * gamma * share
            D = 0.0
            if p == first + action and s == visited:
                Q += state.l[h - 1] * share
            if unit > 0.0:
                v, d = expected(state.seen, p, state.V, state.B, V_mean, B_mean)
                Q += unit * v
                D = dilated * d
            b += pi[p] * gamma * share
            V += pi[p] * Q
            B += pi[p] * D
            state.x[p] = Q - D
        state.V[lay[STATE, h] + s] = V
        state.B[lay[STATE, h] + s] = B + params.bonus * R * b  # with b(s)
        follow(params, state, lay[STATE, h] + s, first, A, V - B, R)


@kernel
def follow(
    params: Params, state: State, s: int, first: int, A: int, center: float, R: float
) -> None:
    """Exponential weights on what ``state.x`` has for the actions of state ``s``, mixed."""
    least = math.inf
    variance = 0.0
    for p in range(first, first + A):
        x = state.x[p] - center
        variance += state.pi[p] * (x * x)
        state.G[p] += x
        least = min(least, state.G[p])
    state.v[s] += variance
    eta = params.rate * math.sqrt(math.log(float(A)) / (R * A * (R * A) + state.v[s]))
    beta = min(0.5, params.mixing / math.sqrt(float(state.t + 1)))
    total = 0.0
    for p in range(first, first + A):
        weight = math.exp(-eta * (state.G[p] - least))
        state.pi[p] = weight
        total += weight
    for p in range(first, first + A):
        state.pi[p] = (1.0 - beta) * (state.pi[p] / total) + beta / A


class PolicyOptimization(MDPLearner):
    """Fast scale-free learner for large layered MDPs: exponential weights in every state.

    For worlds of hundreds or thousands of states, where `SCBRL` takes more time and memory. It
    needs neither the number of episodes nor a phase of exploration, and keeps only the transitions
    that it has seen. There is no theorem for it; docs/results/index.md has what was
    measured.

    Parameters
    ----------
    clip : {"range", "scale"}
        Clip to the observed range, or to [-C, C] with a threshold C that starts at 0.
    rate : float, default 0.5
        Multiplies the learning rates.
    implicit : float, default 0.3
        Multiplies the implicit exploration, 1/sqrt(n_h A t).
    bonus : float, default 2.0
        Multiplies the dilated bonus, which leads the learner to where it seldom is.
    mixing : float, default 0.5
        Multiplies the share of explicit exploration, 1/sqrt(t), in every state.

    Examples
    --------
    >>> learner = PolicyOptimization(layers=[1, 2], n_actions=2, seed=0)
    >>> for _ in range(300):
    ...     plan = learner.ask()
    ...     action = plan.act(0, 0)
    ...     actions, losses = [action, plan.act(1, action)], [0.0, -3e9 if action == 1 else 5e9]
    ...     learner.tell(plan, states=[0, action], actions=actions, losses=losses)
    >>> bool(learner.policy().tables[0][0, 1] > 0.9)  # the other one leads to where it costs
    True
    >>> learner.thresholds.tolist(), learner.transitions_seen
    ([0.0, 8000000000.0], 3)
    """

    _keeps_transitions = False

    spec = MDPSpec.of(
        __name__,
        reference="after Luo, Wei & Lee 2021, Algorithm 1",
        room=room,
        grown=grown,
        scale_free=True,
        examples=({}, {"clip": "scale", "rate": 1.0, "implicit": 1.0, "bonus": 1.0, "mixing": 2.0}),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        *,
        clip: Literal["range", "scale"] = "range",
        rate: float = 0.5,
        implicit: float = 0.3,
        bonus: float = 2.0,
        mixing: float = 0.5,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions)
        params = Params(
            clip=checked_option("clip", clip, ("scale", "range")),
            rate=checked_within("rate", rate, *_LIMITS),
            implicit=checked_within("implicit", implicit, *_LIMITS),
            bonus=checked_within("bonus", bonus, *_LIMITS),
            mixing=checked_within("mixing", mixing, *_LIMITS),
        )
        self._begin(shape, params, seed, params._asdict() | {"clip": clip})

    @property
    def thresholds(self) -> Vector:
        """Observed range of each layer's losses, or with ``clip="scale"`` its threshold."""
        windows = self._state().windows
        W = windows.W if self._params.clip == RANGE else 0.5 * windows.W
        return widths(W, windows.e)

    @property
    def transitions_seen(self) -> int:
        """Return the number of different transitions seen, with those of the first state."""
        return int(self._scalar("seen.size"))

    @classmethod
    def _fewest_entries(cls, settings: Mapping[str, Any]) -> int:
        sizes = [documents.whole_number(n, 2**48) for n in settings["layers"]]
        return 1 + documents.whole_number(settings["n_actions"], 2**48) * sum(sizes)

    def _check_state(self) -> None:
        super()._check_state()
        self._state().seen.check_for(self.layers)
