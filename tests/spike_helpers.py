"""Where the spikes of adversaries are, by recursions over tables."""

from __future__ import annotations

from functools import cache

import numpy as np

from unbounded.core.occupancy.mdp import LayeredMDP


@cache
def _hardest(mdp: LayeredMDP) -> tuple[int, int]:
    """Layer, from 0, and state that uniform play reaches least often, but does."""
    mass = [mdp.initial]
    for P in mdp.transitions:
        mass.append(mass[-1] @ P.mean(axis=1))
    return min(
        ((h, s) for h, row in enumerate(mass) for s in np.flatnonzero(row)),
        key=lambda state: mass[state[0]][state[1]],
    )


def _first_of_layer(mdp: LayeredMDP, h: int) -> int:
    return 1 + mdp.layers.n_actions * sum(mdp.layers.sizes[:h])


def hard_pairs(mdp: LayeredMDP) -> slice:
    """The pairs of the hardest state."""
    h, s = _hardest(mdp)
    first = _first_of_layer(mdp, h) + s * mdp.layers.n_actions
    return slice(first, first + mdp.layers.n_actions)


@cache
def on_the_way(mdp: LayeredMDP) -> np.ndarray:
    """Those, and in every state of the layers before the action that leads there best."""
    way = np.zeros(mdp.layers.n_pairs, dtype=bool)
    way[hard_pairs(mdp)] = True
    h, s = _hardest(mdp)
    value = np.arange(mdp.layers.sizes[h]) == s
    for before in range(h - 1, -1, -1):
        chances = mdp.transitions[before] @ value
        A, first = mdp.layers.n_actions, _first_of_layer(mdp, before)
        way[first + A * np.arange(len(chances)) + chances.argmax(axis=1)] = True
        value = chances.max(axis=1)
    return way
