"""Markov policies, episode-level mixtures, and their exact occupancy measures.

A *mixture* draws one component when the episode starts and follows it to the end (erratum E12).
It is not a Markov policy, but its occupancy measure is the mixture of the components':
``q = sum_k weights[k] q_k``. Mixing action probabilities state by state would instead reach a
state of depth H through a component of weight beta with probability of order beta^H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import Layers, backward_induction, roll_forward
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.validation import checked_vector


@dataclass(frozen=True, eq=False)
class Markov:
    """A Markov policy as a flat vector over pairs: ``pi[layers.index(h, s, a)] = pi(a|s)``.

    Examples
    --------
    >>> layers = Layers([1, 2], n_actions=2)
    >>> policy = Markov.uniform(layers)
    >>> policy.tables[1].tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    >>> Markov(layers, [1.0, 0.5, 0.6, 1.0, 0.0, 1.0, 0.0])
    Traceback (most recent call last):
    ...
    ValueError: the probabilities of layer 1, state 0 are [0.5, 0.6]; they must be >= 0 and sum to 1
    """

    layers: Layers
    pi: Vector

    def __init__(self, layers: Layers, pi: npt.ArrayLike) -> None:
        flat = checked_vector("pi", pi, layers.n_pairs).copy()
        flat[0] = 1.0
        for h, table in enumerate(layers.unpack_pairs(flat), start=1):
            bad = ~(np.all(table >= 0, axis=1) & (np.abs(table.sum(axis=1) - 1) <= 1e-9))
            if np.any(bad):
                s = int(np.argmax(bad))
                raise ValueError(
                    f"the probabilities of layer {h}, state {s} are {table[s].tolist()}; "
                    "they must be >= 0 and sum to 1"
                )
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "pi", flat)

    @classmethod
    def from_tables(cls, layers: Layers, tables: Sequence[npt.ArrayLike]) -> Markov:
        """From one array of shape (n_h, A) per layer."""
        return cls(layers, layers.pack_pairs(tables, first=1.0))

    @classmethod
    def uniform(cls, layers: Layers) -> Markov:
        """Play every allowed action with the same probability."""
        return cls(layers, layers.even)

    @property
    def tables(self) -> list[Vector]:
        """Action probabilities of shape (n_h, A), one array per layer."""
        return self.layers.unpack_pairs(self.pi)


@dataclass(frozen=True, eq=False)
class Mixture:
    """An episode-level mixture: one component is drawn when the episode starts.

    Examples
    --------
    >>> layers = Layers([1, 2], n_actions=2)
    >>> left, right = (Markov.from_tables(layers, [[a], [a, a]]) for a in ([1, 0], [0, 1]))
    >>> mixture = Mixture([0.25, 0.75], [left, right])
    >>> mdp = LayeredMDP([1.0], [[[[1.0, 0.0], [0.0, 1.0]]]])
    >>> layers.unpack_pairs(occupancy(mdp, mixture))[1].tolist()
    [[0.25, 0.0], [0.0, 0.75]]
    """

    weights: Vector
    policies: tuple[Markov, ...]

    def __init__(self, weights: npt.ArrayLike, policies: Sequence[Markov]) -> None:
        w = np.array(weights, dtype=np.float64)
        if w.shape != (len(policies),) or not len(policies):
            raise ValueError(
                f"weights must have one entry per policy: {len(policies)} policies, shape {w.shape}"
            )
        if not (np.all(w >= 0) and abs(w.sum() - 1) <= 1e-9):
            raise ValueError(f"weights must be >= 0 and sum to 1, got {w.tolist()}")
        if len({p.layers for p in policies}) > 1:
            raise ValueError("all policies of a mixture must have the same layers")
        object.__setattr__(self, "weights", w)
        object.__setattr__(self, "policies", tuple(policies))

    @property
    def layers(self) -> Layers:
        """Shape of the MDP that the components are for."""
        return self.policies[0].layers


def occupancy(mdp: LayeredMDP, policy: Markov | Mixture) -> Vector:
    """Exact occupancy measure q(s, a), flat, shape (n_pairs,); entry 0 is ``s_0``'s and one."""
    if policy.layers != mdp.layers:
        raise ValueError(f"policy is for {policy.layers}, the MDP has {mdp.layers}")
    if isinstance(policy, Mixture):
        weighted = zip(policy.weights, policy.policies, strict=True)
        return np.sum([w * occupancy(mdp, p) for w, p in weighted], axis=0)
    q = np.empty(mdp.layers.n_pairs)
    roll_forward(mdp.layers.table, mdp.P, policy.pi, np.empty(mdp.layers.n_states), q)
    return q


def best_policy(mdp: LayeredMDP, losses: npt.ArrayLike) -> tuple[float, Markov]:
    """Return the least expected total loss, and the best fixed policy for ``losses`` (n_pairs,).

    By backward induction: deterministic, the first of equally good actions. The losses of the dummy
    pair and of actions that are not allowed are ignored.
    """
    losses = checked_vector("losses", losses, mdp.layers.n_pairs).copy()
    losses[list(mdp.layers.forbidden)] = np.inf
    pi = np.empty(mdp.layers.n_pairs)
    value = backward_induction(mdp.layers.table, mdp.P, losses, np.empty(mdp.layers.n_states), pi)
    return float(value), Markov(mdp.layers, pi)
