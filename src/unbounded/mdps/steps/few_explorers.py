"""Few exploration policies: how SCB-RL explores in practice, in RF-ELP's place.

A state is sought, as RF-ELP does it, until it was met m times, whoever was sought then; in rounds,
of 8 episodes a state at first and then of as many as it had before. All states together have a
budget. The search comes back with a larger budget for what was not met yet.

The policies that are kept are not those that were played. They are chosen by what was counted: few
that reach every state at least half as often as any policy does, even actions before all others.
How often one of them reaches a state is reckoned with transitions M / N, and how often any policy
can with max(0, M - 1) / (N + 1), as what was seen once may be chance. So it is RF-ELP's promise by
the counts, and not its guarantee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded.core.arrays import Counts, Integers, Scratch, Vector, require_numbers
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers, horizon
from unbounded.jit.kernel import kernel, subroutine
from unbounded.mdps import rf_elp
from unbounded.mdps.rf_elp import Goal, Params, Progress
from unbounded.mdps.steps import explorers, optimism
from unbounded.mdps.steps.explorers import Library

_FIRST = 8  # episodes for a state in the first round


class State(NamedTuple):
    """What RF-ELP does not need to know."""

    tried: Counts  # states 0 .. S - 1: episodes that sought each
    serves: Vector  # states 0 .. S - 1: number of the policy for each; -1: none
    best: Scratch  # likewise

    def check_for(self, size: int) -> None:
        """Reject what cannot have been learned with ``size`` policies."""
        require_numbers(self.serves + 1.0, size + 1, "policies")


def init(layers: Layers) -> State:
    """Nothing was tried yet."""
    S = sum(layers.sizes)
    return State(np.zeros(S), np.full(S, -1.0), np.zeros(S))


# Kernels


@subroutine
def next_target(
    lay: Integers, params: Params, N: int, few: State, search: rf_elp.State, number: int
) -> int:
    """Return the first state to be sought from ``number`` on."""
    while number < rf_elp.n_states(lay) and not _is_sought(lay, params, N, few, search, number):
        number += 1
    return number


@subroutine
def _is_sought(
    lay: Integers, params: Params, N: int, few: State, search: rf_elp.State, number: int
) -> bool:
    """Return whether it may be reached, and was neither met nor tried enough."""
    if not rf_elp.may_be_reached(params, number) or few.tried[number] >= N:
        return False
    return bool(optimism.met(lay, search.model, number) < params.m)


@kernel
def update(
    lay: Integers, params: Params, goal: Goal, budget: int, few: State, search: rf_elp.State,
    states: Integers, actions: Integers,
) -> rf_elp.State:  # fmt: skip
    """Learn from an episode that sought the target; plan again, or go on to another state."""
    renewed = rf_elp.observe(lay, params, search, states, actions)
    version, target, spent, _, _, _, size, explored = search.progress
    few.tried[target] += 1.0
    spent += 1
    explored += 1
    over = explored >= budget
    enough = max(_FIRST, few.tried[target] - spent)  # as many as before, in this round
    if over or spent >= enough or not _is_sought(lay, params, goal.N, few, search, target):
        target = next_target(lay, params, goal.N, few, search, target + 1)
        if target == rf_elp.n_states(lay):  # another round
            target = next_target(lay, params, goal.N, few, search, 0)
        if over:
            target = rf_elp.n_states(lay)
        return rf_elp.seeking(lay, params, goal.bonus, search, search.t + 1, target, explored)
    # One policy is kept at a time, the current one.
    progress = Progress(version, target, spent, 0, 0, 0, 0 if renewed else size, explored)
    if renewed:
        progress = rf_elp.planned(lay, params, goal.bonus, progress, search.model, search.library)
    return rf_elp.with_progress(search, search.t + 1, progress)


@kernel
def reopened(
    lay: Integers, params: Params, goal: Goal, few: State, search: rf_elp.State
) -> rf_elp.State:
    """Go on with the search, for states that were not met yet."""
    few.serves[:] = -1.0
    target = next_target(lay, params, goal.N, few, search, 0)
    return rf_elp.seeking(
        lay, params, goal.bonus, search, search.t, target, search.progress.explored
    )


@kernel
def chosen(
    lay: Integers, params: Params, few: State, search: rf_elp.State, N: Vector, M: Vector
) -> rf_elp.State:
    """End the search: few policies, chosen by all that was counted."""
    model, progress = search.model, search.progress
    size = choose(
        lay, params.even, N, M, params.sought, search.library, few.best, few.serves, model.V,
        model.Q,
    )  # fmt: skip
    version, explored = progress.version + 1, progress.explored
    return rf_elp.with_progress(
        search, search.t, Progress(version, progress.target, 0, 0, 0, 0, size, explored)
    )


@subroutine
def choose(
    lay: Integers, even: Vector, N: Vector, M: Vector, sought: Vector, library: Library,
    best: Vector, serves: Vector, value: Vector, q: Vector,
) -> int:  # fmt: skip
    """Fill ``library`` with few policies that reach every state at least half as often as any does.

    By the counts: what a policy reaches is reckoned with M / N (where N is 0, nothing), what any
    policy can reach with max(0, M - 1) / (N + 1); a state with nothing of the latter has no policy
    of its own. A policy serves states in or after the layer of its target, where its actions are
    even. Even actions everywhere are policy 0. It gets the share of the states that were never met,
    too. ``best``, ``value`` and ``q`` are scratch. Returns how many policies there are.
    """
    S = lay[STATE, lay.shape[1] - 1]
    serves[:] = -1.0
    n_sought = 0
    for number in range(S - 1):
        if sought.size == 0 or sought[number] > 0.0:
            n_sought += 1
        best[number] = _seek(lay, even, N, M, number, library.choice[:S], value, q)
    library.weight[:] = 0.0
    library.target[0] = 0.0  # in the first layer: even from there on
    size = 1
    _serve(lay, even, N, M, library, 0, best, serves, value, q)
    for number in range(S - 1):
        if best[number] == 0.0 or serves[number] >= 0.0:
            continue
        library.target[size] = number
        choice = library.choice[size * S : (size + 1) * S]
        _seek(lay, even, N, M, number, choice, value, q)
        _serve(lay, even, N, M, library, size, best, serves, value, q)
        size += 1
    for number in range(S - 1):
        if sought.size == 0 or sought[number] > 0.0:
            library.weight[max(0, int(serves[number]))] += 1.0 / n_sought
    return size


@subroutine
def _seek(
    lay: Integers, even: Vector, N: Vector, M: Vector, number: int, choice: Vector, value: Vector,
    reach: Vector,
) -> float:  # fmt: skip
    """Bound how often a policy can reach state ``number``, and fill in its actions, ``choice``.

    The counts have one success less, as what was seen once may be chance. ``reach`` is scratch.
    """
    layer, target = explorers.place(lay, number)
    for s in range(lay[SIZE, layer]):
        value[lay[STATE, layer] + s] = 1.0 if s == target else 0.0
    for h in range(layer - 1, -1, -1):
        A = lay[ACTIONS, h]
        m = lay[SIZE, h] * A
        first = lay[PAIR, h]
        reach[first : first + m] = 0.0
        for y in range(lay[SIZE, h + 1]):
            after = value[lay[STATE, h + 1] + y]
            if after > 0.0:
                for i in range(m):
                    reach[first + i] += max(0.0, M[lay[TRIPLE, h] + y * m + i] - 1.0) * after
        for s in range(lay[SIZE, h]):
            most = -1.0
            for p in range(first + s * A, first + s * A + A):
                if even[p] > 0.0 and reach[p] / (N[p] + 1.0) > most:  # else it is not allowed
                    most = reach[p] / (N[p] + 1.0)
                    choice[lay[STATE, h] + s] = p - first - s * A
            value[lay[STATE, h] + s] = most
    return float(value[0])


@subroutine
def _serve(
    lay: Integers, even: Vector, N: Vector, M: Vector, library: Library, k: int, best: Vector,
    serves: Vector, mass: Vector, pi: Vector,
) -> None:  # fmt: skip
    """Let policy ``k`` serve the states that it reaches half as often as any policy, by the counts:
    by M / N at least half of ``best``, which `_seek` reckons with less.

    ``mass`` and ``pi`` are scratch."""
    explorers.fill_component(lay, even, library, k, pi)
    layer, _ = explorers.place(lay, int(library.target[k]))
    mass[0] = 1.0
    for h in range(horizon(lay)):
        m = lay[SIZE, h] * lay[ACTIONS, h]
        first = lay[PAIR, h]
        for i in range(m):
            visits = N[first + i]
            share = mass[lay[STATE, h] + i // lay[ACTIONS, h]]
            pi[first + i] = share * pi[first + i] / visits if visits > 0.0 else 0.0
        for y in range(lay[SIZE, h + 1]):
            reach = 0.0
            for i in range(m):
                reach += pi[first + i] * M[lay[TRIPLE, h] + y * m + i]
            mass[lay[STATE, h + 1] + y] = reach
            number = lay[STATE, h + 1] + y - 1
            new = serves[number] < 0.0 and best[number] > 0.0
            if h + 1 >= layer and new and 2.0 * reach >= best[number]:
                serves[number] = k
