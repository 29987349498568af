"""A layered MDP, its policies, and their exact occupancy measures.

A *mixture* draws one component when the episode starts and follows it to the end (erratum E12).
It is not a Markov policy, but its occupancy measure is the mixture of the components':
``q = sum_k weights[k] q_k``. Mixing action probabilities state by state would instead reach a
state of depth H through a component of weight beta with probability of order beta^H.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.from_arrays import layered, read_npz, write_npz
from unbounded.core.occupancy.layout import Layers, backward_induction, roll_forward
from unbounded.validation import checked_distributions, checked_vector


class LayeredMDP:
    """A layered MDP with validated transitions and an unknown-to-the-learner start.

    `from_arrays` makes one from the tables that people have, `load` from a file.

    Parameters
    ----------
    initial : array_like, shape (n_1,)
        Distribution of the first state.
    transitions : sequence of array_like, shapes (n_h, A, n_{h+1}) for h = 1..H-1
        ``transitions[h - 1][s, a]`` is the distribution of the next state.
    n_actions : int, optional
        Needed only when ``H = 1``, where no transition tells it.
    allowed : sequence of array_like of bool, shapes (n_h, A), optional
        Which actions may be taken in each state of each layer; all by default. Transitions of the
        others do not matter.
    ends : bool, default False
        Whether the last state of each layer but the first is *the end*: nothing leads away from
        it, it costs nothing, and action 0 is the only one.

    Unreachable states are legal.

    Examples
    --------
    >>> mdp = LayeredMDP([1.0], [[[[0.9, 0.1], [0.2, 0.8]]]])
    >>> mdp.layers.sizes, mdp.layers.n_actions
    ((1, 2), 2)
    >>> LayeredMDP([0.5, 0.6], [], n_actions=2)
    Traceback (most recent call last):
    ...
    unbounded.validation.ArgumentValueError: initial sums to 1.1; a distribution must sum to 1
    """

    def __init__(
        self,
        initial: npt.ArrayLike,
        transitions: Sequence[npt.ArrayLike],
        n_actions: int | None = None,
        allowed: Sequence[npt.ArrayLike] | None = None,
        ends: bool = False,
    ) -> None:
        first = np.array(initial, dtype=np.float64)
        if first.ndim != 1 or first.size == 0:
            raise ValueError(f"initial must be a non-empty vector, got shape {first.shape}")
        kernels = [np.array(P, dtype=np.float64) for P in transitions]
        n = first.size
        for h, P in enumerate(kernels, start=1):
            if P.ndim != 3 or P.shape[0] != n or 0 in P.shape:
                raise ValueError(
                    f"transitions[{h - 1}] must have shape (n_{h} = {n}, n_actions, n_{h + 1}), "
                    f"got {P.shape}"
                )
            if n_actions is None:
                n_actions = P.shape[1]
            if P.shape[1] != n_actions:
                raise ValueError(
                    f"transitions[{h - 1}] has {P.shape[1]} actions, other layers {n_actions}; "
                    "repeat an action to give every layer the same number, or forbid those that "
                    "there are not by allowed="
                )
            n = P.shape[2]
        if n_actions is None:
            raise ValueError("n_actions is needed when there is one layer: no transition tells it")
        sizes = [first.size, *[P.shape[2] for P in kernels]]
        self.layers = Layers(sizes, n_actions, allowed, ends)
        checked_distributions("initial", first)
        for h, (P, legal) in enumerate(zip(kernels, self.layers.allowed[:-1], strict=True)):
            one = np.where(legal, np.arange(n_actions), legal.argmax(axis=1)[:, None])
            P[:] = P[np.arange(len(P))[:, None], one]  # what is not allowed: as one that is
            checked_distributions(f"transitions[{h}]", P)
            if ends and h > 0 and np.any(P[-1, :, -1] != 1.0):
                raise ValueError(
                    f"transitions[{h}] leads away from the end, the last state: its row must be "
                    "0 but for the end of the next layer"
                )
        self.P = self.layers.pack_transitions(first, kernels)

    @classmethod
    def from_arrays(
        cls,
        P: npt.ArrayLike | Sequence[npt.ArrayLike],
        initial: npt.ArrayLike,
        horizon: SupportsIndex | None = None,
        *,
        allowed: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
        ends: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
    ) -> Self:
        """Return an MDP from its tables.

        Parameters
        ----------
        P : array_like, shape (S, A, S) or (H - 1, S, A, S), or a list of H - 1 arrays
            ``P[s, a]`` is the distribution of the next state: in every step, or one table per
            step. In a list, tables have shapes (n_h, A_h, n_{h+1}): layers may have states and
            numbers of actions of their own.
        initial : array_like, shape (S,)
            Distribution of the first state.
        horizon : int, optional
            The number of steps H. Needed when one table serves every step.
        allowed : array_like of bool, shape (S, A) or (H, S, A), or a list of H arrays, optional
            Which actions may be taken in a state; all by default. Rows of ``P`` for the others do
            not matter.
        ends : array_like, shape (S, A) or (H - 1, S, A), or a list of H - 1 arrays, optional
            The probability that the episode ends with this action: a row of ``P`` and its entry
            here sum to 1 together. Or booleans of shape (S,): the states in which an episode
            is over when it gets there.

        Returns
        -------
        LayeredMDP
            With a copy of the states in each of H layers. If there are ``ends``, each layer but the
            first has one more state, its last: the end, which costs nothing and is never left.

        Examples
        --------
        Two states; action 1 leads on, and from the second state out:

        >>> P = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]]
        >>> mdp = LayeredMDP.from_arrays(P, [1.0, 0.0], horizon=3, ends=[[0.0, 0.0], [0.0, 1.0]])
        >>> mdp.layers
        Layers(sizes=(2, 3, 3), n_actions=2, ends=True)
        >>> mdp.transitions[1][1, 1].tolist()
        [0.0, 0.0, 1.0]
        >>> LayeredMDP.from_arrays(P, [1.0, 0.0], horizon=3)
        Traceback (most recent call last):
        ...
        ValueError: P[1, 1] sums to 0; a distribution must sum to 1: if the episode ends there, say
        so by ends=, and if there is no such action, by allowed=
        """
        return cls(*layered(P, initial, horizon, allowed, ends))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file (``.npz``) that `load` reads, with the same bits."""
        write_npz(path, self.initial, self.transitions, self.layers)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an MDP from a file: the arguments of `from_arrays` as the arrays of an ``.npz``.

        Parameters
        ----------
        path : path
            What ``np.savez(path, P=P, initial=initial, horizon=H)`` writes, with ``allowed`` and
            ``ends`` if there are any. A list is ``P_1``, ``P_2``, ... instead of ``P``, and so for
            the others.

        Examples
        --------
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "chain.npz")
        >>> np.savez(path, P=[[[0.5, 0.5]], [[0.0, 1.0]]], initial=[1.0, 0.0], horizon=3)
        >>> LayeredMDP.load(path)
        LayeredMDP(sizes=(2, 2, 2), n_actions=1)
        """
        arrays = read_npz(path)
        try:
            whole = layered(**arrays)
            mdp = cls(*whole)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from None
        exactly = mdp.layers.pack_transitions(whole.initial, whole.transitions)
        if np.allclose(exactly, mdp.P, rtol=0.0, atol=1e-15):
            mdp.P = exactly  # not normalized a second time: the bits that were saved
        return mdp

    @property
    def initial(self) -> Vector:
        """Distribution of the first state, shape (n_1,)."""
        return self.layers.unpack_transitions(self.P)[0]

    @property
    def transitions(self) -> list[Vector]:
        """Transitions out of layers 1..H-1, shapes (n_h, A, n_{h+1})."""
        return self.layers.unpack_transitions(self.P)[1]

    @property
    def allowed(self) -> list[npt.NDArray[np.bool_]]:
        """Which actions may be taken in layers 1..H, shapes (n_h, A)."""
        return self.layers.allowed

    def __repr__(self) -> str:
        return repr(self.layers).replace("Layers", "LayeredMDP", 1)


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
