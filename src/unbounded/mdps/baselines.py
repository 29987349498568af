"""Baselines: uniform play, explore-then-commit, and an independent SCB in every state."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbounded._arguments import checked_count, checked_option
from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.clipping import LAZY, SCALE, Window, clip, rescale
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    Layers,
    backward_induction,
)
from unbounded.core.simplex.ftrl import tsallis, tsallis_cold
from unbounded.core.simplex.lanes import LANES
from unbounded.core.simplex.sampling import mix
from unbounded.mdps import markov_play
from unbounded.play.learner import Seed
from unbounded.play.mdp_learner import MDPLearner, MDPSpec, checked_layers
from unbounded.play.sections import HEAD, TOLD, VERSION, Sizes

_LARGEST = sys.float_info.max

# ---------------------------------------------------------------------- uniform


class UniformState(NamedTuple):
    head: Vector
    pi: Vector


def _uniform_sizes(layers: Layers, capacity: int) -> Sizes:
    return {"head": HEAD, "pi": layers.n_pairs}


def _uniform_init(layers: Layers, state: UniformState) -> None:
    state.pi[0] = 1.0
    state.pi[1:] = 1.0 / layers.n_actions


@subroutine
def _uniform_learn(
    lay: Integers, params: int, state: UniformState, program: int, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    state.head[TOLD] += 1.0


class UniformPolicy(MDPLearner):
    """Every action with the same probability, for ever.

    Examples
    --------
    >>> UniformPolicy([1, 2], n_actions=2, seed=0).ask().policy[0].tolist()
    [[0.5, 0.5]]
    """

    spec = MDPSpec(
        name="UniformPolicy",
        reference="",
        State=UniformState,
        sizes=_uniform_sizes,
        init=_uniform_init,
        choose=markov_play.choose,
        learn=_uniform_learn,
        expected=markov_play.expected,
        scale_free=True,
    )

    def __init__(self, layers: Sequence[int], n_actions: int, *, seed: Seed = None) -> None:
        shape = checked_layers(layers, n_actions)
        settings = {"layers": list(shape.sizes), "n_actions": shape.n_actions}
        self._start(shape, 0, settings, seed)


# ---------------------------------------------------------------------- explore, then commit


class CommitState(NamedTuple):
    head: Vector
    pi: Vector
    N: Vector  # pairs
    M: Vector  # triples
    loss: Vector  # pairs: sums
    mean: Vector  # pairs
    P: Vector  # triples
    value: Vector  # states


def _commit_sizes(layers: Layers, capacity: int) -> Sizes:
    X, T = layers.n_pairs, layers.n_transitions
    pairs = dict.fromkeys(("pi", "N", "loss", "mean"), X)
    return {"head": HEAD, **pairs, "M": T, "P": T, "value": layers.n_states}


def _commit_init(layers: Layers, state: CommitState) -> None:
    state.pi[0] = 1.0
    state.pi[1:] = 1.0 / layers.n_actions


@subroutine
def _commit_learn(
    lay: Integers, params: int, state: CommitState, program: int, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    H = lay.shape[1] - 2
    state.head[TOLD] += 1.0
    if state.head[TOLD] > params:
        return
    i = 0
    for h in range(H + 1):
        p = lay[PAIR, h] + i
        state.N[p] += 1.0
        if h > 0:
            state.loss[p] += (losses[h - 1] - state.loss[p]) / state.N[p]  # running mean
        if h < H:
            m = lay[SIZE, h] * lay[ACTIONS, h]
            state.M[lay[TRIPLE, h] + states[h] * m + i] += 1.0
            i = states[h] * lay[ACTIONS, h + 1] + actions[h]
    if state.head[TOLD] < params:
        return
    for h in range(H + 1):  # commit: pairs never tried cost as much as the worst of their layer
        worst = -math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if state.N[p] > 0.0:
                worst = max(worst, state.loss[p])
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            state.mean[p] = state.loss[p] if state.N[p] > 0.0 else worst
            if h < H:
                n = lay[SIZE, h + 1]
                for j in range(n):
                    k = lay[TRIPLE, h] + j * m + i
                    state.P[k] = state.M[k] / state.N[p] if state.N[p] > 0.0 else 1.0 / n
    backward_induction(lay, state.P, state.mean, state.value, state.pi)
    state.head[VERSION] += 1.0


class ExploreThenCommit(MDPLearner):
    """Uniform play for a while, then the best policy for what was seen.

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    episodes : int
    explore : int, optional
        Episodes of uniform play; (S A)^(1/3) T^(2/3) by default, at most T/2.
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = ExploreThenCommit([1], 2, 10, explore=2, seed=0)
    >>> for action, loss in [(0, 1.0), (1, 0.0)]:
    ...     learner.tell(learner.ask(), [0], [action], [loss])
    >>> learner.policy().tables[0].tolist()
    [[0.0, 1.0]]
    """

    spec = MDPSpec(
        name="ExploreThenCommit",
        reference="",
        State=CommitState,
        sizes=_commit_sizes,
        init=_commit_init,
        choose=markov_play.choose,
        learn=_commit_learn,
        expected=markov_play.expected,
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        *,
        explore: int | None = None,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions)
        T = checked_count("episodes", episodes)
        if explore is None:
            SA = sum(shape.sizes) * shape.n_actions
            explore = max(1, min(T // 2, math.ceil(SA ** (1 / 3) * T ** (2 / 3))))
        explore = checked_count("explore", explore)
        settings = {
            "layers": list(shape.sizes), "n_actions": shape.n_actions, "episodes": T,
            "explore": explore,
        }  # fmt: skip
        self._start(shape, explore, settings, seed)


# ---------------------------------------------------------------------- SCB in every state


class LocalState(NamedTuple):
    head: Vector
    pi: Vector  # pairs: q_t of each state
    L_hat: Vector  # pairs, in units of 2^e of their state
    t: Vector  # states: visits
    W: Vector  # states: width of the clipping window, in units of 2^e
    e: Vector
    low: Vector
    high: Vector
    lanes: Vector  # scratch
    lane_sums: Vector  # scratch


def _local_sizes(layers: Layers, capacity: int) -> Sizes:
    states = dict.fromkeys(("t", "W", "e", "low", "high"), layers.n_states)
    pairs = dict.fromkeys(("pi", "L_hat"), layers.n_pairs)
    return {"head": HEAD, **pairs, **states, "lanes": 3 * LANES, "lane_sums": LANES}


def _local_init(layers: Layers, state: LocalState) -> None:
    state.pi[0] = 1.0
    state.pi[1:] = 1.0 / layers.n_actions
    state.low[:] = math.inf
    state.high[:] = -math.inf


@subroutine
def _local_learn(
    lay: Integers, way: int, state: LocalState, program: int, component: int,
    states: Integers, actions: Integers, losses: Vector,
) -> None:  # fmt: skip
    state.head[TOLD] += 1.0
    state.head[VERSION] += 1.0
    to_go = 0.0
    for h in range(lay.shape[1] - 2, 0, -1):
        to_go = min(max(to_go + losses[h - 1], -_LARGEST), _LARGEST)  # any finite loss is legal
        k = lay[STATE, h] + states[h - 1]
        A = lay[ACTIONS, h]
        first = lay[PAIR, h] + states[h - 1] * A
        q = state.pi[first : first + A]
        L = state.L_hat[first : first + A]
        before = Window(state.W[k], int(state.e[k]), state.low[k], state.high[k])
        l_plus, _, after = clip(before, way, LAZY, to_go)
        L[actions[h - 1]] += l_plus / q[actions[h - 1]]
        state.t[k] += 1.0
        state.W[k] = after.W
        state.e[k] = after.e
        state.low[k] = after.low
        state.high[k] = after.high
        if A > 1 and after.W > 0.0:
            if after.e != before.e and before.W > 0.0:
                rescale(L, before.e, after.e)
            t = state.t[k] + 1.0
            eta = 1.0 / (after.W * math.sqrt(t))
            anchor = tsallis(L, eta, tsallis_cold(L, eta), q, state.lanes)
            beta = A / (2.0 * A + math.sqrt(A * t))
            mix(q, (1.0 - beta) / anchor.S2, beta / A, state.lane_sums)


class IndependentSCB(MDPLearner):
    """An SCB in every state, on the losses from there to the end of the episode.

    No guarantee: the loss-to-go of a state depends on what the others do.

    Parameters
    ----------
    layers : sequence of int
    n_actions : int
    clip : {"scale", "range"}
    seed : int or SeedSequence, optional

    Examples
    --------
    >>> learner = IndependentSCB([1, 2], n_actions=2, seed=0)
    >>> for _ in range(50):
    ...     plan = learner.ask()
    ...     action = plan.act(0, 0)
    ...     learner.tell(plan, [0, 0], [action, plan.act(1, 0)], [float(action), 0.0])
    >>> bool(learner.policy().tables[0][0, 0] > 0.5)
    True
    """

    spec = MDPSpec(
        name="IndependentSCB",
        reference="Chen & Zhang 2024, Algorithm 1",
        State=LocalState,
        sizes=_local_sizes,
        init=_local_init,
        choose=markov_play.choose,
        learn=_local_learn,
        expected=markov_play.expected,
        scale_free=True,
    )

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        *,
        clip: str = "scale",
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions)
        way = checked_option("clip", clip, ("scale", "range"))
        settings = {"layers": list(shape.sizes), "n_actions": shape.n_actions, "clip": clip}
        self._start(shape, way, settings, seed)

    @property
    def thresholds(self) -> Vector:
        """Clipping threshold (or range) of each state, flat over states 1..S."""
        factor = 0.5 if self._params == SCALE else 1.0
        return np.ldexp(factor * self._state.W[1:], self._state.e[1:].astype(np.int64))
