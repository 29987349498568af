"""CostPolicyOptimization: policy optimization with a theorem, for costs.

Exponential weights in every state with dilated bonuses, after Luo, Wei & Lee 2021, on losses that
are clipped at the m-th largest one seen so far in their layer: docs/theory/policy-optimization.md.
Transitions are bounded from below only. So an episode costs two passes over the transitions that
were seen, and no program is solved. With

    low(s'|s, a)    lower confidence bounds, 0 where nothing was seen,
    q_low(s)        the occupancy of s under them,    slack_h = 1 - sum of q_low over layer h,
    u(s)            = q_low(s) + slack_h, an upper bound of the occupancy,
    R_h             = C_h + ... + C_H, with the thresholds C_h,
    gamma_h         = implicit sqrt(iota/(n_h A t)),

the estimates and the bonuses of an episode, with L_h for its clipped losses from layer h on, are

    Q(s, a) = L_h 1{visited}/(u(s) pi(a|s) + gamma_h),
    D(s, a) = (1 + 1/H)(sum_s' low(s'|s, a) B(s') + (1 - sum_s' low(s'|s, a)) max B),
    B(s)    = R_h sum_a pi(a|s) (bonus gamma_h + slack_h pi(a|s))/(u(s) pi(a|s) + gamma_h)
              + sum_a pi(a|s) D(s, a),

and the policy becomes

    pi(a|s) ~ exp(-eta_h G(s, a)),    G += Q - D,    E_h = R_h + (1 + 1/H) E_{h+1},
    eta_h   = min(2 rate gamma_h/R_h, 1.25/((H + 1) bonus E_{h+1})).

Each layer's numbers are in units of 2^e, the exponent of its R_h: any finite float64 is a legal
loss, and a common factor 2^k changes these exponents and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import (
    Count,
    Integers,
    Mantissas,
    Scratch,
    Sizes,
    Values,
    Vector,
    require,
)  # fmt: skip
from unbounded.core.ceiling import Ceilings, clip_each_above, new_ceilings
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, Layers, horizon
from unbounded.core.occupancy.mdp import Markov
from unbounded.core.occupancy.seen import Seen, nothing_seen, observe
from unbounded.core.scaled import added, sums_from, widths
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners import persistence as documents
from unbounded.learners.costs import Costs
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.mdps.policy_optimization import grown, room
from unbounded.mdps.steps.loss_ranges import as_given, checked_least
from unbounded.validation import checked_constant, checked_count, checked_within

_LIMITS = 1e-9, 1e6  # of the constants: no product of them overflows


class Params(NamedTuple):
    lower: Vector  # layers: known lower bounds on the losses
    m: int  # rank of the thresholds
    rate: float  # of eta
    implicit: float  # of gamma
    bonus: float
    iota: float  # ln(6 S A H/delta)
    log_term: float  # ln(6 X/delta), with X transitions that are possible


class State(NamedTuple):
    t: int
    clipped: int  # losses above the threshold of their layer
    below: Count  # losses below ``lower``
    version: int
    ceilings: Ceilings  # layers: C_h
    R: Mantissas  # layers: mantissa of R_h; 0: nothing yet
    e: Annotated[Vector, Values(-2000, 2000, whole=True)]  # layers: its exponent
    seen: Seen
    G: Sizes  # pairs: above the least of their state, in units of 2^e of their layer
    pi: Vector  # pairs
    q_low: Scratch  # states
    slack: Scratch  # layers, that of s_0 included
    B: Scratch  # states, in units of 2^e

    def check(self, params: Params) -> None:
        self.ceilings.check_for(params.lower)
        losses = (self.t - 1) * params.lower.size
        require(self.clipped + self.below <= losses, "no so many losses")
        rest = sums_from(self.ceilings.C, self.ceilings.e)
        units = list(zip(self.R, self.e, strict=True))
        require(units == rest, "losses have no such unit")


def init(layers: Layers, params: Params) -> State:
    """Start with C_{1,h} = 0, nothing seen, uniform actions."""
    H, S = layers.horizon, layers.n_states
    return State(
        1, 0, 0, 0, new_ceilings(params.lower, params.m), np.zeros(H), np.zeros(H),
        nothing_seen(layers), np.zeros(layers.n_pairs), Markov.uniform(layers).pi,
        np.zeros(S), np.zeros(H + 1), np.zeros(S),
    )  # fmt: skip


# Kernels


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Learn from one episode; every state's policy changes."""
    below, seen = state.below, state.seen
    for h in range(losses.size):
        below += losses[h] < params.lower[h]
    clipped, _ = clip_each_above(state.ceilings, params.lower, losses)
    bound_occupancies(lay, params, state)
    learn(lay, params, state, states, actions)
    size = observe(lay, seen, states, actions)
    improve(lay, params, state)
    seen = Seen(size, seen.N, seen.begin, seen.after, seen.to, seen.M)
    return State(
        state.t + 1, state.clipped + clipped, below, state.version + 1, state.ceilings, state.R,
        state.e, seen, state.G, state.pi, state.q_low, state.slack, state.B,
    )  # fmt: skip


@kernel
def lower_end(M: float, N: float, level: float) -> float:
    """Bound a probability from below, after M of N draws: where N kl(M/N, P) exceeds ``level``.

    By kl(a, b) >= (a - b)^2/(2 max(a, b)), and the same of 1 - a and 1 - b.
    """
    a, width = M / N, level / N
    return max(
        0.0,
        a - math.sqrt(2.0 * a * width),
        a - width - math.sqrt(width * (2.0 * (1.0 - a) + width)),
    )


@subroutine
def bound_occupancies(lay: Integers, params: Params, state: State) -> None:
    """Set q_low and the slack of every layer, under the policy of the episode."""
    q, seen = state.q_low, state.seen
    q[0] = 1.0
    for h in range(horizon(lay)):
        for s in range(lay[STATE, h + 1], lay[STATE, h + 2]):
            q[s] = 0.0
        for s in range(lay[SIZE, h]):
            for a in range(lay[ACTIONS, h]):
                p = lay[PAIR, h] + s * lay[ACTIONS, h] + a
                share = q[lay[STATE, h] + s] * state.pi[p]
                level = params.log_term + math.log(seen.N[p] + 1.0)
                k = seen.begin[p]
                while k >= 0:
                    q[seen.to[k]] += share * lower_end(seen.M[k], seen.N[p], level)
                    k = seen.after[k]
        slack = 1.0
        for s in range(lay[STATE, h + 1], lay[STATE, h + 2]):
            slack -= q[s]
        state.slack[h + 1] = max(0.0, slack)


@kernel
def largest_mean(params: Params, seen: Seen, p: int, B: Vector, top: float) -> float:
    """Return the largest mean of ``B`` after pair ``p`` that lower bounds admit; its top is top."""
    level = params.log_term + math.log(seen.N[p] + 1.0)
    mean = 0.0
    rest = 1.0
    k = seen.begin[p]
    while k >= 0:
        low = lower_end(seen.M[k], seen.N[p], level)
        mean += low * B[seen.to[k]]
        rest -= low
        k = seen.after[k]
    return mean + max(0.0, rest) * top


@kernel
def gamma_of(lay: Integers, params: Params, h: int, t: int) -> float:
    """Return the implicit exploration of layer ``h`` in episode ``t``."""
    return params.implicit * math.sqrt(params.iota / (lay[SIZE, h] * lay[ACTIONS, h] * float(t)))


@subroutine
def learn(lay: Integers, params: Params, state: State, states: Integers, actions: Integers) -> None:
    """Add Q - D of the episode to G, at the thresholds from before it."""
    H = horizon(lay)
    L = top = 0.0  # of the next layer, in units of that one
    for h in range(H, 0, -1):
        R = state.R[h - 1]
        if not R > 0.0:  # then the next layers have none either
            for s in range(lay[STATE, h], lay[STATE, h + 1]):
                state.B[s] = 0.0
            continue
        unit = 0.0  # of the next layer, in units of this one
        if h < H and state.R[h] > 0.0:
            unit = math.ldexp(1.0, int(state.e[h]) - int(state.e[h - 1]))
        shift = int(state.ceilings.e_before[h - 1]) - int(state.e[h - 1])
        L = math.ldexp(state.ceilings.l[h - 1], shift) + unit * L
        A = lay[ACTIONS, h]
        gamma = gamma_of(lay, params, h, state.t)
        slack = state.slack[h]
        top_here = 0.0
        for s in range(lay[SIZE, h]):
            first = lay[PAIR, h] + s * A
            u = state.q_low[lay[STATE, h] + s] + slack
            b = B = 0.0
            for p in range(first, first + A):
                pi = state.pi[p]
                share = 1.0 / (u * pi + gamma)
                b += pi * (params.bonus * gamma + slack * pi) * share
                if unit > 0.0:
                    D = largest_mean(params, state.seen, p, state.B, top)
                    D *= unit * (1.0 + 1.0 / H)
                    B += pi * D
                    state.G[p] -= D
                if s == states[h - 1] and p == first + actions[h - 1]:
                    state.G[p] += L * share
            state.B[lay[STATE, h] + s] = B + R * b
            top_here = max(top_here, B + R * b)
        top = top_here


@subroutine
def improve(lay: Integers, params: Params, state: State) -> None:
    """Set the units of the next episode, and its policy."""
    H = horizon(lay)
    R = E = 0.0
    e = 0
    for h in range(H, 0, -1):
        after = e
        R, e = added(R, e, state.ceilings.C[h - 1], int(state.ceilings.e[h - 1]))
        factor = 1.0
        if state.R[h - 1] > 0.0:
            factor = math.ldexp(1.0, int(state.e[h - 1]) - e)
        state.R[h - 1] = R
        state.e[h - 1] = e
        if not R > 0.0:
            continue
        eta = 2.0 * params.rate * gamma_of(lay, params, h, state.t + 1) / R
        E = E * math.ldexp(1.0, after - e) if E > 0.0 else 0.0
        if E > 0.0:
            eta = min(eta, 1.25 / ((H + 1.0) * params.bonus * E))
        E = R + (1.0 + 1.0 / H) * E
        for s in range(lay[SIZE, h]):
            first = lay[PAIR, h] + s * lay[ACTIONS, h]
            weigh(state, eta, factor, first, first + lay[ACTIONS, h])


@kernel
def weigh(state: State, eta: float, factor: float, first: int, end: int) -> None:
    """Exponential weights on G, which is multiplied by ``factor``, of the pairs of one state."""
    least = math.inf
    for p in range(first, end):
        least = min(least, state.G[p])
    total = 0.0
    for p in range(first, end):
        state.G[p] = (state.G[p] - least) * factor
        state.pi[p] = math.exp(-eta * state.G[p])
        total += state.pi[p]
    for p in range(first, end):
        state.pi[p] /= total


class CostPolicyOptimization(MDPLearner, Costs):
    """Policy optimization for large layered MDPs with costs, with a regret bound.

    Like `PolicyOptimization` it works state by state, and keeps only the transitions that it has
    seen. Its regret is bounded for losses with a known lower bound, which an adversary may choose:
    docs/theory/policy-optimization.md. It learns more slowly, and `CostSCBRL` has the better bound.

    Parameters
    ----------
    lower : float or sequence of H floats, optional
        The lower bound on the losses, of all layers or of each; 0 by default. It should not be far
        below the losses that occur.
    best_reward : float or sequence of H floats, optional
        Instead of ``lower``, for rewards: the largest ones possible.
    outliers : int, default 0
        How many huge losses of each layer say nothing about their actions: the learner works at the
        scale of the largest loss but these.
    rate, implicit : float, default 2.0 and 0.3
        Multiply the learning rates and the implicit exploration.
    bonus : float, default 4.0
        Multiplies the dilated bonus. The theorem needs ``bonus > 1 + rate``.

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.

    Examples
    --------
    >>> learner = CostPolicyOptimization(layers=[1, 2], n_actions=2, seed=0)
    >>> for _ in range(1000):
    ...     plan = learner.ask()
    ...     action = plan.act(0, 0)
    ...     actions, costs = [action, plan.act(1, action)], [0.0, 0.0 if action == 1 else 5e9]
    ...     learner.tell(plan, states=[0, action], actions=actions, losses=costs)
    >>> int(learner.policy().tables[0][0].argmax())  # the other one leads to where it costs
    1
    >>> learner.thresholds.tolist()
    [0.0, 5000000000.0]
    """

    _keeps_transitions = False

    spec = MDPSpec.of(
        __name__,
        reference="docs/theory/policy-optimization.md",
        room=room,
        grown=grown,
        scale_free=True,
        examples=({}, {"outliers": 2, "rate": 1.0, "implicit": 0.1, "bonus": 0.5}),
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        delta: float = 0.05,
        *,
        lower: float | Sequence[float] | None = None,
        best_reward: float | Sequence[float] | None = None,
        outliers: SupportsIndex = 0,
        rate: float = 2.0,
        implicit: float = 0.3,
        bonus: float = 4.0,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions)
        delta = checked_constant("delta", delta, below=1.0)
        least = checked_least(lower, best_reward, shape)
        outliers = checked_count("outliers", outliers, least=0)
        S, H = sum(shape.sizes), shape.horizon
        params = Params(
            lower=least,
            m=outliers + 1,
            rate=checked_within("rate", rate, *_LIMITS),
            implicit=checked_within("implicit", implicit, *_LIMITS),
            bonus=checked_within("bonus", bonus, *_LIMITS),
            iota=math.log(6.0 * S * shape.n_actions * H / delta),
            log_term=math.log(6.0 * shape.n_transitions / delta),
        )
        kept = {
            "delta": delta, "outliers": outliers, "lower": as_given(lower, least),
            "best_reward": as_given(best_reward, 0.0 - least), "rate": params.rate,
            "implicit": params.implicit, "bonus": params.bonus,
        }  # fmt: skip
        self._begin(shape, params, seed, kept)
        self._least = least

    @property
    def thresholds(self) -> Vector:
        """What the losses of each layer are clipped at, above ``lower``."""
        ceilings = self._state().ceilings
        return widths(ceilings.C, ceilings.e)

    @property
    def transitions_seen(self) -> int:
        """Return the number of different transitions seen, with those of the first state."""
        return int(self._scalar("seen.size"))

    @classmethod
    def _fewest_entries(cls, settings: Mapping[str, Any]) -> int:
        sizes = [documents.whole_number(n, 2**48) for n in settings["layers"]]
        losses = len(sizes) * documents.whole_number(settings["outliers"], 2**48)
        return 1 + documents.whole_number(settings["n_actions"], 2**48) * sum(sizes) + losses

    def _check_state(self) -> None:
        super()._check_state()
        self._state().seen.check_for(self.layers)
