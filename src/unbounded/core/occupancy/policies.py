"""Markov policies, episode-level mixtures, their exact occupancy measures and regret.

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
from unbounded.core.occupancy.layout import Layers, backward_induction, condition, roll_forward
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
        """Every action that is allowed, with the same probability."""
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
    """Exact occupancy measure q(s, a), flat, shape (n_pairs,); entry 0 is ``s_0``'s and one.

    Examples
    --------
    >>> mdp = LayeredMDP([0.25, 0.75], [], n_actions=2)
    >>> occupancy(mdp, Markov.uniform(mdp.layers)).tolist()
    [1.0, 0.125, 0.125, 0.375, 0.375]
    """
    if policy.layers != mdp.layers:
        raise ValueError(f"policy is for {policy.layers}, the MDP has {mdp.layers}")
    if isinstance(policy, Mixture):
        parts = [
            w * occupancy(mdp, p) for w, p in zip(policy.weights, policy.policies, strict=True)
        ]
        return np.sum(parts, axis=0)
    q = np.empty(mdp.layers.n_pairs)
    roll_forward(mdp.layers.table, mdp.P, policy.pi, np.empty(mdp.layers.n_states), q)
    return q


def policy_from_occupancy(layers: Layers, q: npt.ArrayLike) -> Markov:
    """The Markov policy q(s, a)/q(s), uniform over the allowed actions in states without mass.

    Examples
    --------
    >>> layers = Layers([2], n_actions=2)
    >>> policy_from_occupancy(layers, [1.0, 0.25, 0.75, 0.0, 0.0]).tables[0].tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    q = checked_vector("q", q, layers.n_pairs)
    if not np.all(q >= 0):
        raise ValueError(f"q must be >= 0, its smallest entry is {np.min(q)}")
    pi = np.empty(layers.n_pairs)
    condition(layers.table, q, pi)
    for table, mass, even in zip(*map(layers.unpack_pairs, (pi, q, layers.even)), strict=True):
        none = mass.sum(axis=1) == 0.0
        table[none] = even[none]
    return Markov(layers, pi)


def best_policy(mdp: LayeredMDP, losses: npt.ArrayLike) -> tuple[float, Markov]:
    """Best fixed policy in hindsight for (cumulative) ``losses``, by backward induction.

    Parameters
    ----------
    mdp : LayeredMDP
    losses : array_like, shape (n_pairs,)
        Entry 0, the dummy pair's, is ignored, and so are those of actions that are not allowed.

    Returns
    -------
    value : float
        Its expected total loss.
    policy : Markov
        Deterministic; the first of equally good actions.

    Examples
    --------
    >>> mdp = LayeredMDP([0.5, 0.5], [], n_actions=2)
    >>> value, policy = best_policy(mdp, [0.0, 1.0, 2.0, 5.0, 3.0])
    >>> value, policy.tables[0].tolist()
    (2.0, [[1.0, 0.0], [0.0, 1.0]])
    """
    losses = _legal(mdp.layers, checked_vector("losses", losses, mdp.layers.n_pairs))
    pi = np.empty(mdp.layers.n_pairs)
    value = backward_induction(mdp.layers.table, mdp.P, losses, np.empty(mdp.layers.n_states), pi)
    return float(value), Markov(mdp.layers, pi)


def _legal(layers: Layers, losses: Vector) -> Vector:
    """``losses`` with +infinity for what is not allowed."""
    if not layers.forbidden:
        return losses
    losses = losses.copy()
    losses[list(layers.forbidden)] = np.inf
    return losses


def regret(mdp: LayeredMDP, policies: Sequence[Markov | Mixture], losses: npt.ArrayLike) -> Vector:
    """Exact regret after each episode against the best fixed policy up to then.

    Parameters
    ----------
    mdp : LayeredMDP
    policies : sequence of length T
        What was played; the *same* object again is not evaluated twice.
    losses : array_like, shape (T, n_pairs)
        The end of an episode costs nothing, whatever they say.

    Returns
    -------
    ndarray, shape (T,)
        ``sum_{tau <= t} <q_tau, l_tau> - min_pi <q^pi, sum_{tau <= t} l_tau>``.

    Examples
    --------
    >>> mdp = LayeredMDP([1.0], [], n_actions=2)
    >>> play = [Markov.uniform(mdp.layers)] * 2
    >>> regret(mdp, play, [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [0.5, 1.0]
    """
    table = np.ascontiguousarray(losses, dtype=np.float64)
    if table.shape != (len(policies), mdp.layers.n_pairs):
        raise ValueError(
            f"losses must have shape (T, n_pairs) = {(len(policies), mdp.layers.n_pairs)}, "
            f"got {table.shape}"
        )
    table = table.copy()
    table[:, [0, *mdp.layers.free]] = 0.0
    known: dict[int, Vector] = {}
    paid = np.empty(len(policies))
    best = np.empty(len(policies))
    for t, policy in enumerate(policies):
        if id(policy) not in known:
            known[id(policy)] = occupancy(mdp, policy)
        paid[t] = known[id(policy)] @ table[t]
    total = np.cumsum(table, axis=0) + mdp.layers.barred
    value, pi = np.empty(mdp.layers.n_states), np.empty(mdp.layers.n_pairs)
    for t in range(len(policies)):
        best[t] = backward_induction(mdp.layers.table, mdp.P, total[t], value, pi)
    return np.cumsum(paid) - best
