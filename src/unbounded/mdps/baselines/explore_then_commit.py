"""Explore, then commit: uniform play, and then the best policy for what was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Counts, Integers, Scratch, Vector
from unbounded.core.occupancy import layout
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, TRIPLE, Layers, horizon
from unbounded.core.occupancy.mdp import Markov
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.mdp import MDPLearner, MDPSpec, Seed, checked_layers
from unbounded.validation import checked_count

_HUGE = 2.0**900
_SMALL_UNIT = 2.0**-200


class Params(NamedTuple):
    explore: int  # episodes of uniform play


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    version: int
    pi: Vector
    N: Counts  # pairs: visits; infinite where an action is not allowed
    M: Counts  # triples
    unit: float  # of the means: 1 until a loss exceeds 2^900, then 2^-200, so that none overflows
    mean: Vector  # pairs: mean loss, times the unit
    P: Vector  # triples: estimated transitions
    losses: Scratch  # pairs
    value: Scratch  # states


def init(layers: Layers, params: Params) -> State:
    """No visits, uniform actions."""
    X, T = layers.n_pairs, layers.n_transitions
    return State(
        t=1, clipped=0, version=0, pi=Markov.uniform(layers).pi, N=layers.barred, M=np.zeros(T),
        unit=1.0, mean=np.zeros(X), P=np.zeros(T), losses=np.zeros(X),
        value=np.zeros(layers.n_states),
    )  # fmt: skip


@kernel
def update(
    lay: Integers, params: Params, state: State, solver: int, ask_info: int,
    states: Integers, actions: Integers, losses: Vector,
) -> State:  # fmt: skip
    """Count the episode while exploring; commit after the last of these."""
    version, unit = state.version, state.unit
    if state.t <= params.explore:
        unit = _observe(lay, state, states, actions, losses)
        if state.t == params.explore:
            _commit(lay, state)
            version += 1
    return State(
        state.t + 1, 0, version, state.pi, state.N, state.M, unit, state.mean, state.P,
        state.losses, state.value,
    )  # fmt: skip


@subroutine
def _observe(
    lay: Integers, state: State, states: Integers, actions: Integers, losses: Vector
) -> float:
    """Count an episode; return the unit that the means are in now."""
    unit = state.unit
    for h in range(losses.size):
        if unit == 1.0 and abs(losses[h]) > _HUGE:
            unit = _SMALL_UNIT
            for p in range(state.mean.size):
                state.mean[p] *= unit
    i = 0
    for h in range(horizon(lay) + 1):
        p = lay[PAIR, h] + i
        state.N[p] += 1.0
        if h > 0:
            state.mean[p] += (losses[h - 1] * unit - state.mean[p]) / state.N[p]
        if h < horizon(lay):
            m = lay[SIZE, h] * lay[ACTIONS, h]
            state.M[lay[TRIPLE, h] + states[h] * m + i] += 1.0
            i = states[h] * lay[ACTIONS, h + 1] + actions[h]
    return unit


@subroutine
def _commit(lay: Integers, state: State) -> None:
    """The best policy for the means; pairs never tried cost as much as the worst of their layer."""
    for h in range(horizon(lay) + 1):
        worst = -math.inf
        for p in range(lay[PAIR, h], lay[PAIR, h + 1]):
            if 0.0 < state.N[p] < math.inf:
                worst = max(worst, state.mean[p])
        m = lay[SIZE, h] * lay[ACTIONS, h]
        for i in range(m):
            p = lay[PAIR, h] + i
            state.losses[p] = state.mean[p] if state.N[p] > 0.0 else worst
            if state.N[p] == math.inf:
                state.losses[p] = math.inf
            if h < horizon(lay):
                n = lay[SIZE, h + 1]
                for j in range(n):
                    k = lay[TRIPLE, h] + j * m + i
                    state.P[k] = state.M[k] / state.N[p] if state.N[p] > 0.0 else 1.0 / n
    layout.backward_induction(lay, state.P, state.losses, state.value, state.pi)


class ExploreThenCommit(MDPLearner):
    """Uniform play for a while, then the best policy for what was seen.

    Scale-free, but means of losses below 1e-290 or so are rounded.

    Parameters
    ----------
    explore : int, optional
        Episodes of uniform play; (S A)^(1/3) T^(2/3) by default, at most T/2.

    Examples
    --------
    >>> learner = ExploreThenCommit([1], 2, 10, explore=2, seed=0)
    >>> for action, loss in [(0, 1.0), (1, 0.0)]:
    ...     learner.tell(learner.ask(), [0], [action], [loss])
    >>> learner.policy().tables[0].tolist()
    [[0.0, 1.0]]
    """

    spec = MDPSpec.of(__name__, reference="", scale_free=True, infinite=("N",))

    def __init__(
        self,
        layers: Sequence[int],
        n_actions: int,
        episodes: int,
        *,
        explore: int | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
        seed: Seed = None,
    ) -> None:
        shape = checked_layers(layers, n_actions, allowed, ends)
        episodes = checked_count("episodes", episodes)
        if explore is None:
            SA = sum(shape.sizes) * shape.n_actions
            explore = max(1, min(episodes // 2, math.ceil(SA ** (1 / 3) * episodes ** (2 / 3))))
        explore = checked_count("explore", explore)
        self._begin(shape, Params(explore), seed, {"explore": explore})
