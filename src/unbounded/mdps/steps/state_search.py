"""The search for policies that reach a state, by optimism: what `rf_elp` and `few_explorers` share.

An explorer (MVP, or UCBVI) learns the transitions of every episode and plans for the reward
1{. = target} (Chen & Zhang 2024, Algorithm 3); what it plans is stored in a library of policies,
and played. Which state is the target, and for how long, is for those two to say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import STATE, Layers, horizon, roll_forward
from unbounded.core.occupancy.reach import reachable
from unbounded.core.simplex.sampling import uniform
from unbounded.core.state_validation import (
    require,
    require_counts,
    require_distribution,
    require_numbers,
)
from unbounded.jit.kernel import assign, kernel, subroutine
from unbounded.learners.spec import Cache
from unbounded.mdps import mvp, ucbvi
from unbounded.mdps.steps import explorers, optimism
from unbounded.mdps.steps.explorers import Library
from unbounded.mdps.steps.optimism import Bonus, Model

MVP, UCBVI = 0, 1  # explorers


class Params(NamedTuple):
    N: int  # episodes per state, at most
    m: int  # stop after so many visits (RF-ELP-ES); 0: never
    n_sought: int  # how many states are sought
    share: bool  # keep the model from one state to the next
    explorer: int  # MVP, or UCBVI
    bonus: Bonus
    sought: Vector  # states 0 .. S - 1: 1 or 0, if some are not sought; else empty
    even: Vector  # pairs: the policy that takes all allowed actions evenly


class Progress(NamedTuple):
    """How far the search is."""

    version: int
    target: int  # which state is being sought, 0 .. S - 1; S: all are done
    spent: int  # episodes spent on it
    visits: int  # ... of which so many reached it
    began: int  # the first policy of the library that belongs to the target
    current: int  # the policy that is being played
    size: int  # of the library
    explored: int  # episodes of exploration in all


class State(NamedTuple):
    t: int
    clipped: int  # nothing is ever clipped
    version: int
    progress: Progress
    model: Model
    library: Library
    zeros: Vector  # layers: no reward is to be estimated, as the reward is known

    def check(self, params: Params) -> None:
        """Refuse what cannot have been learned."""
        self.model.check()
        progress, library = self.progress, self.library
        states, size = self.model.V.size, library.size
        require(0 <= progress.target < states, "there is no such state")
        done = progress.target == states - 1
        require(0 <= size <= library.weight.size, "there are no such policies")
        require(progress.size == size or done, "there are no such policies")
        require(0 <= progress.began <= progress.size, "there are no such policies")
        require(0 <= progress.current < max(progress.size, 1), "there is no such policy")
        require(0 <= progress.visits <= progress.spent, "there are no such visits")
        require_counts(library.weight)
        require_numbers(library.target, states - 1, "states")
        n_actions = (self.model.N.size - 1) // (states - 1)
        require_numbers(library.choice, n_actions, "actions")
        if done and size > 0:
            require_distribution(library.weight[:size], "the mixture of policies")


def init(layers: Layers, params: Params) -> State:
    """The first state is sought."""
    lay, library = layers.table, explorers.new_library(layers)
    model, zeros = optimism.new_model(layers), np.zeros(layers.horizon)
    nothing = Progress(0, next_target(lay, params, 0), 0, 0, 0, 0, 0, 0)
    progress = planned(lay, params, nothing, model, library)
    library = library._replace(size=progress.size)
    return State(1, 0, 0, progress, model, library, zeros)


def sought_states(layers: Layers, possible: Vector) -> Vector:
    """`Params.sought`: the states that ``possible`` transitions (1 or 0; empty: all) can reach, but
    for the end, whose loss is known."""
    if possible.size == 0:
        return possible
    sought = reachable(layers, np.zeros_like(possible), possible)[1:].astype(np.float64)
    if layers.ends:
        sought[np.cumsum(layers.sizes)[1:] - 1] = 0.0
    return sought


def grown(state: State) -> State:
    """The same with room for more policies."""
    return state._replace(library=explorers.grown(state.library))


# Kernels


@kernel
def done(lay: Integers, state: State) -> bool:
    """Whether every state has had its episodes."""
    return state.progress.target >= n_states(lay)


@kernel
def n_states(lay: Integers) -> int:
    """How many there are, without s_0."""
    return lay[STATE, horizon(lay) + 1] - 1


@subroutine
def next_target(lay: Integers, params: Params, number: int) -> int:
    """The first state to be sought from ``number`` on."""
    while number < n_states(lay) and not may_be_reached(params, number):
        number += 1
    return number


@subroutine
def may_be_reached(params: Params, number: int) -> bool:
    """As far as was told."""
    return params.sought.size == 0 or params.sought[number] > 0.0


@kernel
def room(state: State) -> bool:
    """Whether one more policy fits into the library."""
    return state.library.size < state.library.weight.size - 1


@kernel
def act(lay: Integers, params: Params, state: State, word: int, pi: Vector) -> int:
    """The policy that seeks the target; when all states are done, one of those found."""
    k = state.progress.current
    if done(lay, state):
        k = explorers.draw(state.library, uniform(word))
    explorers.fill_component(lay, params.even, state.library, k, pi)
    return k


@kernel
def distribution(
    lay: Integers, params: Params, state: State, P: Vector, cache: Cache, q: Vector
) -> None:
    """Occupancy under ``P`` of what `act` plays."""
    library = state.library
    if done(lay, state):
        explorers.mean_occupancy(
            lay, params.even, library, P, cache.pi, cache.mass, cache.explorers, q
        )
    else:
        explorers.fill_component(lay, params.even, library, state.progress.current, cache.pi)
        roll_forward(lay, P, cache.pi, cache.mass, q)


@subroutine
def seeking(
    lay: Integers, params: Params, state: State, t: int, target: int, explored: int
) -> State:
    """On to ``target``, with nothing in the library."""
    progress = Progress(state.progress.version + 1, target, 0, 0, 0, 0, 0, explored)
    if target < n_states(lay):
        progress = planned(lay, params, progress, state.model, state.library)
    return with_progress(state, t, progress)


@kernel
def with_episodes(params: Params, N: int, log_term: float) -> Params:
    """The same for another number of episodes, and the logarithm of the bonus that goes with it."""
    old = params.bonus
    bonus = Bonus(old.c1, old.c2, old.c3, log_term, old.B)
    return Params(
        N, params.m, params.n_sought, params.share, params.explorer, bonus, params.sought,
        params.even,
    )  # fmt: skip


@subroutine
def with_progress(state: State, t: int, progress: Progress) -> State:
    """The same with other numbers."""
    old = state.library
    library = Library(progress.size, old.choice, old.weight, old.target)
    return State(t, 0, progress.version, progress, state.model, library, state.zeros)


@subroutine
def observe(
    lay: Integers, params: Params, state: State, states: Integers, actions: Integers
) -> bool:
    """Learn the transitions of an episode; whether the model was renewed."""
    if params.explorer == UCBVI:
        return ucbvi.observe(lay, state.model, states, actions, state.zeros)
    return mvp.observe(lay, state.model, states, actions, state.zeros)


@subroutine
def planned(
    lay: Integers, params: Params, progress: Progress, model: Model, library: Library
) -> Progress:
    """Plan for the target (Alg. 3, lines 1 and 2); the policy is stored if it is new."""
    version, target, spent, visits, began, current, size, explored = progress
    layer, s = explorers.place(lay, target)
    if params.explorer == UCBVI:
        ucbvi.plan(lay, params.bonus, model, layer, s)
    else:
        mvp.plan(lay, params.bonus, model, layer, s)
    S = n_states(lay) + 1
    current = began
    while current < size and not explorers.same(lay, library, current, model.choice, layer):
        current += 1
    if current == size:
        assign(library.choice[current * S : (current + 1) * S], model.choice)
        library.weight[current] = 0.0
        library.target[current] = target
        size += 1
    return Progress(version + 1, target, spent, visits, began, current, size, explored)
