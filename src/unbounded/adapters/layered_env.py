"""Layered MDPs with adversarial losses as environments of Gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import gymnasium as gym
import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.spaces import Discrete
from numpy.typing import ArrayLike

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.interpreter import quietly
from unbounded.simulation.adversary import MDPAdversary
from unbounded.validation import checked_arrays, checked_count

Losses = Callable[[int, np.random.Generator], Sequence[ArrayLike]]


def check_step(env: Any, action: int) -> None:
    """Refuse a step that there is not, and an action that there is not."""
    if env._layer == len(env.layers):
        raise ResetNeeded("there is no episode under way: call reset() first")
    if not env.action_space.contains(action):
        raise InvalidAction(f"actions are 0 .. {env.action_space.n - 1}, got {action!r}")


class LayeredEnv(gym.Env[int, int]):
    """A layered MDP with adversarial losses; the reward is minus the loss.

    Observations number all the states, layer by layer, and the end. ``info`` has the ``layer`` (0
    to H), the number ``state`` within the layer, and after a step its ``loss``. Losses change from
    episode to episode; resetting with a seed begins with the first episode again. Of an MDP whose
    episodes may end early, an episode is over when it gets to the end. Of one where not all actions
    are allowed, ``info`` also has the ``action_mask``; others are refused.

    Parameters
    ----------
    mdp : LayeredMDP
    losses : MDPAdversary or callable
        An adversary that does not look at the learner, or ``losses(t, rng)`` that returns a table
        of shape (n_h, n_actions) for each layer, for episode t = 1, 2, ...
    episodes : int
        How many there will be: some adversaries need to know.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import worlds
    >>> from unbounded.adapters.gymnasium import LayeredEnv
    >>> mdp = worlds.dirichlet([1, 3], 2, np.random.default_rng(0))
    >>> env = LayeredEnv(mdp, lambda t, rng: [[[1e6, 0.0]], rng.random((3, 2))])
    >>> observation, info = env.reset(seed=0)
    >>> observation, info
    (0, {'layer': 0, 'state': 0})
    >>> env.step(0)[1]
    -1000000.0
    """

    def __init__(
        self, mdp: LayeredMDP, losses: MDPAdversary | Losses, episodes: SupportsIndex = 1_000_000
    ) -> None:
        if isinstance(losses, MDPAdversary) and losses.looks:
            raise ValueError(f"{losses!r} looks at the learner, whom an environment does not see")
        self.mdp, self._losses = mdp, losses
        self._episodes = checked_count("episodes", episodes)
        self.layers = list(mdp.layers.sizes)
        self._allowed = mdp.allowed
        self._first = np.cumsum([0, *self.layers])
        self.observation_space = Discrete(int(self._first[-1]) + 1)
        self.action_space = Discrete(mdp.layers.n_actions)
        self._t, self._layer = 0, len(self.layers)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is not None or self._t == 0:
            self._t, key = 0, int(self.np_random.integers(2**53))
            if isinstance(self._losses, MDPAdversary):
                self._begun = self._losses.begin(self.mdp, self._episodes, key)
        self._t += 1
        self._tables = self._drawn()
        self._layer = 0
        self._state = self._next(self.mdp.initial)
        return self._observed()

    def _drawn(self) -> list[Vector]:
        """The losses of this episode, a table for each layer."""
        layers, losses = self.mdp.layers, self._losses
        if not isinstance(losses, MDPAdversary):
            shapes = [(n, layers.n_actions) for n in layers.sizes]
            given = checked_arrays("losses", losses(self._t, self.np_random), shapes)
            if not all(np.isfinite(table).all() for table in given):
                raise ValueError(f"losses must be finite, and those of episode {self._t} are not")
            flat = layers.pack_pairs(given)
            flat[layers.free] = 0.0
            return layers.unpack_pairs(flat)
        flat = np.empty(layers.n_pairs)
        fill = quietly(type(losses).fill)
        fill(self._begun, self._t, np.zeros(layers.n_pairs), layers.table, flat)
        flat[layers.free] = 0.0
        return layers.unpack_pairs(flat)

    def _next(self, chances: Vector) -> int:
        return int(self.np_random.choice(chances.size, p=chances))

    def _observed(self) -> tuple[int, dict[str, Any]]:
        observation = int(self._first[self._layer]) + self._state
        info: dict[str, Any] = {"layer": self._layer, "state": self._state}
        if self.mdp.layers.n_forbidden and self._layer < len(self.layers):
            mask = self._allowed[self._layer][self._state]
            info["action_mask"] = mask.astype(np.int8)
        return observation, info

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action; the episode ends after the last layer, or when it gets to the end."""
        check_step(self, action)
        if not self._allowed[self._layer][self._state, action]:
            raise ValueError(
                f"action {action} is not allowed in state {self._state} of layer {self._layer}: "
                "take one of info['action_mask']"
            )
        loss = float(self._tables[self._layer][self._state, action])
        over = self._layer == len(self.layers) - 1
        transitions = None if over else self.mdp.transitions[self._layer]
        self._state = 0 if transitions is None else self._next(transitions[self._state, action])
        self._layer += 1
        over = over or self.mdp.layers.is_end(self._layer + 1, self._state)
        observation, info = self._observed()
        if over:
            self._layer = len(self.layers)  # there is no further step
        return observation, -loss, over, False, {**info, "loss": loss}
