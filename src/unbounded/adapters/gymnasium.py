"""Gymnasium's environments as layered problems: `pip install "unbounded[gym]"`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, SupportsIndex

import gymnasium as gym
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from unbounded.adapters.layered_env import LayeredEnv, check_step
from unbounded.adapters.layered_play import play
from unbounded.adapters.transition_tables import Tables, tables
from unbounded.core.occupancy.from_arrays import with_end
from unbounded.validation import checked_count, shown

__all__ = ["Layered", "LayeredEnv", "Tables", "play", "tables"]

MOST = 5_000_000  # transitions that a learner may have to keep


class Layered(gym.Wrapper[int, int, int, int], RecordConstructorArgs):
    """An environment with discrete observations and actions as a layered problem.

    Each time step is a layer. An episode that ends early goes on in a state of its own, the end, at
    no reward, so that all have ``horizon`` steps; one that would go on is cut off. It is the end of
    `LayeredMDP.from_arrays`, and a learner may be told of it: ``ends=True``. What leads where is
    not asked; states that are never reached do no harm but to the size.

    Parameters
    ----------
    env : gymnasium.Env
        Its observations and actions are `Discrete`.
    horizon : int
        The number of layers.
    most : int
        More possible transitions than this are refused: most learners keep them all. One that keeps
        those that it has seen (`PolicyOptimisation`) can do with more.

    Attributes
    ----------
    layers : list of int
        For the learner: the number of states in each layer. ``action_space.n`` is its other size.

    Examples
    --------
    >>> import gymnasium as gym
    >>> from unbounded.adapters.gymnasium import Layered
    >>> Layered(gym.make("FrozenLake-v1"), horizon=4).layers
    [16, 17, 17, 17]
    """

    def __init__(
        self, env: gym.Env[Any, Any], horizon: SupportsIndex, *, most: SupportsIndex = MOST
    ) -> None:
        for name in ("observation_space", "action_space"):
            if not isinstance(space := getattr(env, name), Discrete):
                raise TypeError(f"the {name} must be Discrete, not {shown(space)}: discretise it")
        RecordConstructorArgs.__init__(
            self, horizon=horizon, most=most
        )  # so that it can be repeated
        gym.Wrapper.__init__(self, env)
        n, A = int(env.observation_space.n), int(env.action_space.n)
        H = checked_count("horizon", horizon)
        self.layers = with_end([n] * H)
        self._layer = H
        size = A * sum(a * b for a, b in pairwise(self.layers))
        if size > (limit := checked_count("most", most)):
            raise ValueError(
                f"{H} layers of {n} states and {A} actions have {size:,} transitions, more than "
                f"{limit:,}: take a shorter horizon, merge states, or say most= and take a learner "
                "that keeps only the transitions it has seen, PolicyOptimisation"
            )
        self.observation_space = Discrete(n + 1)
        self.action_space = Discrete(A)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._layer, self._ended = 0, False
        return self._seen(observation, info)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action; the episode ends after ``horizon`` of them."""
        check_step(self, action)
        self._layer += 1
        over = self._layer == len(self.layers)
        if self._ended:
            return self._state, 0.0, over, False, {"layer": self._layer, "state": self._state}
        given = int(self.env.action_space.start) + int(action)
        observation, reward, terminated, truncated, info = self.env.step(given)
        self._ended = terminated or truncated
        state, info = self._seen(observation, info)
        return state, float(reward), over, False, info

    def _seen(self, observation: int, info: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self._state = (
            self.layers[0]
            if self._ended
            else int(observation) - int(self.env.observation_space.start)
        )
        return self._state, {**info, "layer": self._layer, "state": self._state}
