"""Ready-made layered MDPs.

Each builder returns a validated `LayeredMDP`; one that draws it takes a ``seed``, as
``numpy.random.default_rng`` does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt

from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.learners.arguments import in_our_words
from unbounded.learners.seeds import Seed, generator_of
from unbounded.validation import (
    Nested,
    checked_count,
    checked_finite,
    checked_horizon,
    checked_positive,
    checked_share,
    checked_sizes,
    naming,
    shown,
)

__all__ = ["combination_lock", "dirichlet", "file", "hard_to_reach", "time_expansion"]


def __dir__() -> list[str]:
    return sorted(__all__)


@in_our_words
def dirichlet(
    sizes: Sequence[int], n_actions: int, seed: Seed = None, concentration: float = 1.0
) -> LayeredMDP:
    """Draw every distribution from a symmetric Dirichlet.

    Parameters
    ----------
    sizes : sequence of int
        Number of states in each layer 1..H.
    n_actions : int
    seed : int, SeedSequence or Generator, optional
    concentration : float
        Below 1, most of the probability goes to few states.

    Examples
    --------
    >>> dirichlet([3, 4], 2, seed=0)
    LayeredMDP(sizes=(3, 4), n_actions=2)
    """
    sizes, n_actions = checked_sizes("sizes", sizes), checked_count("n_actions", n_actions)
    concentration = checked_positive("concentration", concentration)
    rng = generator_of(seed)
    initial = rng.dirichlet(np.full(sizes[0], concentration))
    transitions = [
        rng.dirichlet(np.full(after, concentration), size=(n, n_actions))
        for n, after in pairwise(sizes)
    ]
    return LayeredMDP(initial, transitions, n_actions)


@in_our_words
def combination_lock(
    horizon: int, n_actions: int, seed: Seed = None, slip: float = 0.0
) -> LayeredMDP:
    """Only one sequence of ``horizon - 1`` actions keeps the lock opening.

    State 0 of each layer is "so far right", state 1 "wrong", from which nothing leads back. The
    right action of each layer is drawn at random; with probability ``slip`` it fails. The uniform
    policy reaches state 0 of layer H with probability ``((1 - slip)/n_actions)^(horizon - 1)``.

    Parameters
    ----------
    horizon : int
        The number of layers H.
    n_actions : int
    seed : int, SeedSequence or Generator, optional
    slip : float

    Examples
    --------
    >>> lock = combination_lock(4, 3, seed=0)
    >>> lock.layers.sizes
    (1, 2, 2, 2)
    """
    horizon, n_actions = checked_horizon(horizon), checked_count("n_actions", n_actions)
    slip = checked_finite("slip", slip)
    if not 0.0 <= slip < 1.0:
        raise ValueError(f"slip must be in [0, 1), got {slip}")
    transitions, rng = [], generator_of(seed)
    n = 1
    for _ in range(1, horizon):
        P = np.zeros((n, n_actions, 2))
        P[:, :, 1] = 1.0
        P[0, rng.integers(n_actions)] = [1.0 - slip, slip]
        transitions.append(P)
        n = 2
    return LayeredMDP([1.0], transitions, n_actions)


@in_our_words
def hard_to_reach(
    sizes: Sequence[int], n_actions: int, seed: Seed = None, reach: float = 1e-4
) -> LayeredMDP:
    """Return a random MDP whose last state is reached with probability at most ``reach``.

    One pair of layer H - 1 leads there with probability ``reach``, no other does. (With one
    layer, the initial distribution gives the state that probability.)

    Parameters
    ----------
    sizes : sequence of int
        Number of states in each layer 1..H.
    n_actions : int
    seed : int, SeedSequence or Generator, optional
    reach : float
        That probability.

    Examples
    --------
    >>> mdp = hard_to_reach([2, 2, 3], 2, seed=0, reach=1e-3)
    >>> round(float(mdp.transitions[-1][:, :, -1].max()), 12)
    0.001
    """
    sizes, n_actions = checked_sizes("sizes", sizes), checked_count("n_actions", n_actions)
    reach = checked_share("reach", reach)
    if sizes[-1] < 2:
        raise ValueError("the last layer needs at least 2 states, one of them hard to reach")
    rng = generator_of(seed)
    mdp = dirichlet(sizes, n_actions, rng)
    initial, transitions = mdp.initial.copy(), [P.copy() for P in mdp.transitions]
    last = transitions[-1] if transitions else initial.reshape(1, 1, -1)
    last[..., -1] = 0.0
    last /= last.sum(axis=-1, keepdims=True)
    s = int(rng.integers(last.shape[0]))
    a = int(rng.integers(last.shape[1]))
    last[s, a] *= 1.0 - reach
    last[s, a, -1] = reach
    return LayeredMDP(initial, transitions, n_actions)


def file(path: str) -> LayeredMDP:
    """Return the MDP in a file: ``P`` and ``initial``, with ``horizon``, ``allowed`` and ``ends``.

    Parameters
    ----------
    path : str
        An ``.npz`` file; its arrays are the arguments of `LayeredMDP.from_arrays`.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "chain.npz")
    >>> np.savez(path, P=[[[0.5, 0.5]], [[0.0, 1.0]]], initial=[1.0, 0.0], horizon=3)
    >>> file(path)
    LayeredMDP(sizes=(2, 2, 2), n_actions=1)
    """
    with naming("path"):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path must be that of an .npz file, got {shown(path)}")
        try:
            return LayeredMDP.load(path)
        except OSError as error:
            raise ValueError(
                f"{path} cannot be read ({error.strerror or error}): give the path of an .npz file"
            ) from None


def time_expansion(
    transitions: Annotated[npt.ArrayLike, Nested(3)], initial: npt.ArrayLike, horizon: int
) -> LayeredMDP:
    """Unroll a finite MDP for ``horizon`` steps: a copy of its states in each layer.

    Parameters
    ----------
    transitions : array_like of shape (S, A, S)
    initial : array_like of shape (S,)
    horizon : int

    Examples
    --------
    >>> chain = [[[0.5, 0.5]], [[0.0, 1.0]]]
    >>> time_expansion(chain, [1.0, 0.0], horizon=3)
    LayeredMDP(sizes=(2, 2, 2), n_actions=1)
    """
    P = np.asarray(transitions, dtype=np.float64)
    if P.ndim != 3 or P.shape[0] != P.shape[2]:
        raise ValueError(f"transitions must have shape (S, A, S), got {P.shape}")
    return LayeredMDP.from_arrays(P, initial, horizon)
