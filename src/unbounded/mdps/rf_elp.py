"""RF-ELP and RF-ELP-ES: policies that reach each state (Chen & Zhang 2024, Algorithms 3 and 6).

For each state s in turn an explorer seeks the reward 1{. = s} for N episodes; what is returned is
the uniform mixture of the policies it played, drawn once an episode (erratum E12), with uniform
actions at s in every component (E33). RF-ELP-ES stops at the first episode that brings the visits
of s to m (E26). Guarantee: q(s) of the mixture is at least half of the best possible one for every
state that can be reached with probability above 9 C^2 S A H/N.

Every action of the layers from s on is equally good for reaching s: there, ties are split evenly
and actions are uniform. Before, components are deterministic, so the library keeps one action a
state. A policy is planned when a model is renewed and not before, so there are few: repeated ones
get more weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbounded._jit import subroutine
from unbounded.core.arrays import (
    Integers,
    Vector,
)
from unbounded.core.occupancy.layout import (
    SIZE,
    STATE,
    Layers,
    backward_induction,
    roll_forward,
)
from unbounded.core.occupancy.policies import Markov, Mixture
from unbounded.mdps import mvp
from unbounded.mdps.mvp import Bonus, Model
from unbounded.play.sections import (
    BEGAN,
    CURRENT,
    EXPLORED,
    LIBRARY,
    SPENT,
    TARGET,
    VERSION,
    VISITS,
)


class Search(NamedTuple):
    """How long a state is sought."""

    N: int  # episodes a state, at most
    m: int  # stop after so many visits (RF-ELP-ES); 0: never
    share: bool  # keep the model from one state to the next


class Library(NamedTuple):
    """Exploration policies: an episode-level mixture once all states are done."""

    choice: Vector  # (capacity * n_states): action of each state
    weight: Vector  # (capacity): episodes played; in the end probabilities
    target: Vector  # (capacity): number of the state sought, 0 .. S - 1


def sizes(layers: Layers, capacity: int) -> dict[str, int]:
    """Lengths of the vectors of a `Library`."""
    return {"choice": capacity * layers.n_states, "weight": capacity, "target": capacity}


# Kernels


@subroutine
def place(lay: Integers, number: int) -> tuple[int, int]:
    """Layer 1..H and number within it of state ``number`` in 0 .. S - 1."""
    h = 1
    while number >= lay[SIZE, h]:
        number -= lay[SIZE, h]
        h += 1
    return h, number


@subroutine
def component(lay: Integers, library: Library, k: int, pi: Vector) -> None:
    """Fill ``pi`` with policy ``k`` of the library."""
    S = lay[STATE, lay.shape[1] - 1]
    layer, _ = place(lay, int(library.target[k]))
    mvp.fill_policy(lay, library.choice[k * S : (k + 1) * S], layer, pi)


@subroutine
def draw_component(head: Vector, library: Library, x: float) -> int:
    """The policy that x in [0, 1) falls on, by weight."""
    total = 0.0
    last = 0
    for k in range(int(head[LIBRARY])):
        if library.weight[k] > 0.0:
            total += library.weight[k]
            last = k
            if x < total:
                return k
    return last


@subroutine
def mean_occupancy(
    lay: Integers, head: Vector, library: Library, P: Vector, pi: Vector, mass: Vector,
    part: Vector, q: Vector,
) -> None:  # fmt: skip
    """Occupancy under ``P`` of the finished library, into ``q``; pi, mass, part are scratch."""
    q[:] = 0.0
    for k in range(int(head[LIBRARY])):
        component(lay, library, k, pi)
        roll_forward(lay, P, pi, mass, part)
        for p in range(q.size):
            q[p] += library.weight[k] * part[p]


@subroutine
def _plan(lay: Integers, bonus: Bonus, head: Vector, model: Model, library: Library) -> None:
    """Plan for the target and make the policy the current one; stored if it is new."""
    S = lay[STATE, lay.shape[1] - 1]
    number = int(head[TARGET])
    layer, target = place(lay, number)
    mvp.plan(lay, bonus, model, layer, target)
    head[VERSION] += 1.0
    count = int(head[LIBRARY])
    for k in range(int(head[BEGAN]), count):
        same = True
        for s in range(1, lay[STATE, layer]):  # later layers do not matter: uniform actions
            if library.choice[k * S + s] != model.choice[s]:
                same = False
                break
        if same:
            head[CURRENT] = k
            return
    library.choice[count * S : (count + 1) * S] = model.choice
    library.weight[count] = 0.0
    library.target[count] = number
    head[CURRENT] = count
    head[LIBRARY] = count + 1


@subroutine
def begin_target(
    lay: Integers, bonus: Bonus, search: Search, head: Vector, model: Model, library: Library
) -> None:
    """Start to seek state number head[TARGET]."""
    head[SPENT] = 0.0
    head[VISITS] = 0.0
    head[BEGAN] = head[LIBRARY]
    if not search.share:
        mvp.forget(model)
    _plan(lay, bonus, head, model, library)


@subroutine
def seek(
    lay: Integers, bonus: Bonus, search: Search, head: Vector, model: Model, library: Library,
    states: Integers, actions: Integers, zeros: Vector,
) -> bool:  # fmt: skip
    """Learn from one episode of the current policy; True when all states are done.

    It stores at most one policy. ``zeros`` (H) are the rewards to be estimated: none, as the
    reward is known.
    """
    H = lay.shape[1] - 2
    S = lay[STATE, H + 1] - 1
    layer, target = place(lay, int(head[TARGET]))
    library.weight[int(head[CURRENT])] += 1.0
    head[SPENT] += 1.0
    head[EXPLORED] += 1.0
    if states[layer - 1] == target:
        head[VISITS] += 1.0
    renewed = mvp.observe(lay, bonus.kind, model, states, actions, zeros)
    if head[SPENT] >= search.N or (search.m > 0 and head[VISITS] >= search.m):
        for k in range(int(head[BEGAN]), int(head[LIBRARY])):
            library.weight[k] /= head[SPENT] * S
        head[TARGET] += 1.0
        if head[TARGET] >= S:
            return True
        begin_target(lay, bonus, search, head, model, library)
    elif renewed:
        _plan(lay, bonus, head, model, library)
    return False


def know(layers: Layers, P: Vector, head: Vector, library: Library) -> None:
    """Fill the library with the best policy for each state, given the true transitions."""
    S, lay = layers.n_states, layers.table
    value, pi = np.empty(S), np.empty(layers.n_pairs)
    for number in range(S - 1):
        h, s = place(lay, number)
        losses = np.zeros(layers.n_pairs)
        first = layers.index(h, s)
        losses[first : first + layers.n_actions] = -1.0
        backward_induction(lay, P, losses, value, pi)
        tables = layers.unpack_pairs(pi)
        choice = np.concatenate([[0.0], *[np.argmax(table, axis=1) for table in tables]])
        library.choice[number * S : (number + 1) * S] = choice
        library.weight[number] = 1.0 / (S - 1)
        library.target[number] = number
    head[LIBRARY] = S - 1
    head[TARGET] = S - 1


def found(layers: Layers, head: Vector, library: Library) -> dict[tuple[int, int], Mixture]:
    """A library as mixtures, by state."""
    lay = layers.table
    out: dict[tuple[int, int], Mixture] = {}
    target = library.target[: int(head[LIBRARY])]
    for number in range(int(head[TARGET])):
        h, s = place(lay, number)
        policies, weights = [], []
        for k in np.flatnonzero(target == number):
            pi = np.empty(layers.n_pairs)
            component(lay, library, int(k), pi)
            policies.append(Markov(layers, pi))
            weights.append(library.weight[k])
        out[h - 1, s] = Mixture(np.array(weights) / np.sum(weights), policies)
    return out
