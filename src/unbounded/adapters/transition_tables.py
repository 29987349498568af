"""Gymnasium's own tables of transitions, for `LayeredMDP.from_arrays`."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from unbounded.core.arrays import Vector


class Tables(NamedTuple):
    """What `LayeredMDP.from_arrays` needs, and what the actions cost."""

    P: Vector  # (S, A, S): transitions after which the episode goes on
    initial: Vector  # (S,)
    ends: Vector  # (S, A): the probability that it ends
    losses: Vector  # (S, A): minus the expected reward


def tables(env: gym.Env[Any, Any]) -> Tables:
    """The transitions of an environment that has them as a table ``P``, as Gymnasium's toys do.

    Examples
    --------
    >>> from unbounded import LayeredMDP
    >>> from unbounded.adapters.gymnasium import Layered, tables
    >>> P, initial, ends, losses = tables(gym.make("FrozenLake-v1"))
    >>> LayeredMDP.from_arrays(P, initial, 4, ends=ends)
    LayeredMDP(sizes=(16, 17, 17, 17), n_actions=4, ends=True)
    >>> Layered(gym.make("FrozenLake-v1"), horizon=4).layers  # the same
    [16, 17, 17, 17]
    """
    inner = env.unwrapped
    listed, initial = getattr(inner, "P", None), getattr(inner, "initial_state_distrib", None)
    if listed is None or initial is None:
        raise TypeError(
            f"{env} has no table of transitions (P and initial_state_distrib): play in it by "
            "Layered and play, which need none"
        )
    n, A = len(listed), len(listed[0])
    P, ends, losses = np.zeros((n, A, n)), np.zeros((n, A)), np.zeros((n, A))
    for s in range(n):
        for a in range(A):
            for chance, after, reward, over in listed[s][a]:
                losses[s, a] -= chance * reward
                if over:
                    ends[s, a] += chance
                else:
                    P[s, a, after] += chance
    return Tables(P, np.array(initial, dtype=np.float64), ends, losses)
