"""A library of exploration policies: for each state, policies that seek it.

Components are deterministic before the layer of the state that they seek and even from there on:
all allowed actions with the same probability (each is then equally good for reaching it). So the
library keeps one action per state. A finished library is an episode-level mixture: one component is
drawn per episode (erratum E12). It has all the policies of RF-ELP, or few of them that were chosen
by counts, even actions everywhere among them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import (
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    Layers,
    backward_induction,
    horizon,
    roll_forward,
)
from unbounded.core.occupancy.mdp import Markov, Mixture
from unbounded.jit.kernel import subroutine

_CAPACITY = 32  # policies that fit at first, at least


class Library(NamedTuple):
    """Policies 0 .. size - 1, with room for more."""

    size: int
    choice: Vector  # (capacity * n_states): action of each state
    weight: Vector  # (capacity): episodes played; in the end probabilities
    target: Vector  # (capacity): number of the state sought, 0 .. S - 1


def new_library(layers: Layers, capacity: int = _CAPACITY) -> Library:
    """Return an empty one, with room for at least a policy per state."""
    capacity = max(capacity, layers.n_states + 1)
    return Library(0, np.zeros(capacity * layers.n_states), np.zeros(capacity), np.zeros(capacity))


def grown(library: Library) -> Library:
    """Return the same policies, with room for twice as many."""
    more = (np.concatenate([part, np.zeros_like(part)]) for part in library[1:])
    return Library(library.size, *more)


def oracle_transitions(layers: Layers, explorer: str, transitions: npt.ArrayLike | None) -> Vector:
    """Return the transitions that the explorer "oracle" is given, checked; none for the others."""
    if explorer == "oracle":
        if transitions is None:
            raise ValueError("explorer='oracle' needs transitions, as LayeredMDP.P")
        return layers.checked_transitions(transitions)
    if transitions is not None:
        raise ValueError(f"transitions are for explorer='oracle', not {explorer!r}")
    return np.empty(0)


def oracle(layers: Layers, P: Vector) -> Library:
    """The best policy for each state that can be reached, given the true transitions; not for the
    end, whose loss is known."""
    S, lay = layers.n_states, layers.table
    library = new_library(layers)
    value, pi = np.empty(S), np.empty(layers.n_pairs)
    k = 0
    for number in range(S - 1):
        h, s = place(lay, number)
        losses = layers.barred
        first = layers.index(h, s)
        losses[first : first + layers.n_actions] -= 1.0
        if backward_induction(lay, P, losses, value, pi) == 0.0 or layers.is_end(h, s):
            continue
        tables = layers.unpack_pairs(pi)
        choice = np.concatenate([[0.0], *[np.argmax(table, axis=1) for table in tables]])
        library.choice[k * S : (k + 1) * S] = choice
        library.target[k] = number
        k += 1
    library.weight[:k] = 1.0 / k
    return library._replace(size=k)


def mixtures(
    layers: Layers, library: Library, done: int, serves: Vector | None = None
) -> dict[tuple[int, int], Mixture]:
    """Return the policies for states 0 .. done - 1, by ``(h, s)`` with h = 0 .. H - 1.

    Those that seek a state, or the one that ``serves`` it. States that nothing reaches have none.
    """
    lay = layers.table
    out: dict[tuple[int, int], Mixture] = {}
    target = library.target[: library.size]
    for number in range(done):
        h, s = place(lay, number)
        policies, weights = [], []
        found = np.flatnonzero(target == number).tolist()
        if serves is not None:
            found = [int(serves[number])] if serves[number] >= 0.0 else []
        for k in found:
            pi = np.empty(layers.n_pairs)
            fill_component(lay, layers.even, library, k, pi)
            policies.append(Markov(layers, pi))
            weights.append(1.0 if serves is not None else library.weight[k])
        if policies:
            out[h - 1, s] = Mixture(np.array(weights) / np.sum(weights), policies)
    return out


# Kernels


@subroutine
def place(lay: Integers, number: int) -> tuple[int, int]:
    """Return layer 1..H and number within it of state ``number`` in 0 .. S - 1."""
    h = 1
    while number >= lay[SIZE, h]:
        number -= lay[SIZE, h]
        h += 1
    return h, number


@subroutine
def fill_policy(lay: Integers, even: Vector, choice: Vector, layer: int, pi: Vector) -> None:
    """One-hot ``pi`` of the actions ``choice``; ``even`` from layer ``layer`` on (0: nowhere)."""
    pi[0] = 1.0
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            p = lay[PAIR, h] + s * A
            for a in range(A):
                pi[p + a] = 1.0 if a == int(choice[lay[STATE, h] + s]) else 0.0
            if 0 < layer <= h:  # Alg. 3, line 3
                for a in range(A):
                    pi[p + a] = even[p + a]


@subroutine
def fill_component(lay: Integers, even: Vector, library: Library, k: int, pi: Vector) -> None:
    """Fill ``pi`` with policy ``k``."""
    S = lay[STATE, lay.shape[1] - 1]
    layer, _ = place(lay, int(library.target[k]))
    fill_policy(lay, even, library.choice[k * S : (k + 1) * S], layer, pi)


@subroutine
def same(lay: Integers, library: Library, k: int, choice: Vector, layer: int) -> bool:
    """Whether policy ``k`` takes the actions ``choice`` before ``layer``; later ones are even."""
    S = lay[STATE, lay.shape[1] - 1]
    equal = True
    for i in range(1, lay[STATE, layer]):
        equal = equal and library.choice[k * S + i] == choice[i]
    return equal


@subroutine
def draw(library: Library, x: float) -> int:
    """Return the policy that x in [0, 1) falls on, by weight."""
    total = 0.0
    last = 0
    for k in range(library.size):
        if library.weight[k] > 0.0:
            total += library.weight[k]
            last = k
            if x < total:
                return k
    return last


@subroutine
def mean_occupancy(
    lay: Integers, even: Vector, library: Library, P: Vector, pi: Vector, mass: Vector,
    part: Vector, q: Vector,
) -> None:  # fmt: skip
    """Occupancy under ``P`` of the finished library, into ``q``; pi, mass, part are scratch."""
    q[:] = 0.0
    for k in range(library.size):
        fill_component(lay, even, library, k, pi)
        roll_forward(lay, P, pi, mass, part)
        for p in range(q.size):
            q[p] += library.weight[k] * part[p]
