"""A layered MDP: its layout and its transitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_distributions, checked_vector
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import Layers, episode


class LayeredMDP:
    """A layered MDP with validated transitions and an unknown-to-the-learner start.

    Parameters
    ----------
    initial : array_like, shape (n_1,)
        Distribution of the first state.
    transitions : sequence of array_like, shapes (n_h, A, n_{h+1}) for h = 1..H-1
        ``transitions[h - 1][s, a]`` is the distribution of the next state.
    n_actions : int, optional
        Needed only when ``H = 1``, where no transition tells it.

    Unreachable states are legal.

    Examples
    --------
    >>> mdp = LayeredMDP([1.0], [[[[0.9, 0.1], [0.2, 0.8]]]])
    >>> mdp.layers.sizes, mdp.layers.n_actions
    ((1, 2), 2)
    >>> LayeredMDP([0.5, 0.6], [], n_actions=2)
    Traceback (most recent call last):
    ...
    ValueError: initial sums to 1.1; a distribution must sum to 1
    """

    def __init__(
        self,
        initial: npt.ArrayLike,
        transitions: Sequence[npt.ArrayLike],
        n_actions: int | None = None,
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
                    "repeat an action to give every layer the same number"
                )
            n = P.shape[2]
        if n_actions is None:
            raise ValueError("n_actions is needed when there is one layer: no transition tells it")
        self.layers = Layers([first.size, *[P.shape[2] for P in kernels]], n_actions)
        checked_distributions("initial", first)
        for h, P in enumerate(kernels):
            checked_distributions(f"transitions[{h}]", P)
        self.P = self.layers.pack_transitions(first, kernels)

    @property
    def initial(self) -> Vector:
        """Distribution of the first state, shape (n_1,)."""
        return self.layers.unpack_transitions(self.P)[0]

    @property
    def transitions(self) -> list[Vector]:
        """Transitions out of layers 1..H-1, shapes (n_h, A, n_{h+1})."""
        return self.layers.unpack_transitions(self.P)[1]

    def __repr__(self) -> str:
        return f"LayeredMDP(sizes={self.layers.sizes}, n_actions={self.layers.n_actions})"


def simulate_episode(
    mdp: LayeredMDP, policy: npt.ArrayLike, words: npt.NDArray[np.uint64]
) -> tuple[Integers, Integers]:
    """Play one episode of a Markov policy with the randomness given as data.

    Parameters
    ----------
    mdp : LayeredMDP
    policy : array_like, shape (n_pairs,)
        A flat Markov policy, see `unbounded.core.occupancy.policies`.
    words : ndarray of uint64, shape (2 H,)
        Words ``2(h-1)`` and ``2(h-1)+1`` draw the state and the action of layer ``h``.

    Returns
    -------
    states, actions : ndarray of int64, shape (H,)
        Numbers within the layers.

    Examples
    --------
    >>> mdp = LayeredMDP([0.5, 0.5], [np.full((2, 2, 3), 1 / 3)])
    >>> words = np.random.PCG64(0).random_raw(4)
    >>> states, actions = simulate_episode(mdp, np.full(mdp.layers.n_pairs, 0.5), words)
    >>> states.tolist(), actions.tolist()
    ([1, 0], [0, 0])
    """
    H = mdp.layers.horizon
    words = np.ascontiguousarray(words, dtype=np.uint64)
    if words.shape != (2 * H,):
        raise ValueError(f"words must have shape (2 H,) = ({2 * H},), got {words.shape}")
    states, actions = np.empty(H, np.int64), np.empty(H, np.int64)
    pi = checked_vector("policy", policy, mdp.layers.n_pairs)
    episode(mdp.layers.table, mdp.P, pi, words, states, actions)
    return states, actions
