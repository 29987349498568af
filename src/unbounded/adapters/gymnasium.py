"""Gymnasium's environments as layered problems: `pip install "unbounded[gym]"`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, SupportsIndex

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs

from unbounded._arguments import checked_count, shown
from unbounded.adapters.layered_env import LayeredEnv
from unbounded.core.arrays import Vector
from unbounded.core.occupancy.given import with_end
from unbounded.play.mdp_learner import MDPLearner

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

    def __init__(self, env: gym.Env[Any, Any], horizon: SupportsIndex) -> None:
        for name in ("observation_space", "action_space"):
            if not isinstance(space := getattr(env, name), Discrete):
                raise TypeError(f"the {name} must be Discrete, not {shown(space)}: discretise it")
        RecordConstructorArgs.__init__(self, horizon=horizon)  # so that Gymnasium can repeat it
        gym.Wrapper.__init__(self, env)
        n, A = int(env.observation_space.n), int(env.action_space.n)
        H = checked_count("horizon", horizon)
        self.layers = with_end([n] * H)
        size = A * sum(a * b for a, b in pairwise(self.layers))
        if size > MOST:
            raise ValueError(
                f"{H} layers of {n} states and {A} actions have {size:,} transitions, more than "
                f"{MOST:,}: take a shorter horizon or merge states"
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
        n = self.layers[0]
        self._state = n if self._ended else int(observation) - int(self.env.observation_space.start)
        return self._state, {**info, "layer": self._layer, "state": self._state}


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


def play(
    learner: MDPLearner,
    env: LayeredEnv | Layered,
    episodes: SupportsIndex,
    *,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Vector:
    """Let a learner for MDPs play and learn.

    Parameters
    ----------
    learner : MDPLearner
        Made for ``env.layers`` and ``env.action_space.n``, or for the MDP of a `LayeredEnv`. One
        that knows of early ends (``ends=True``) is told the steps before them.
    env : LayeredEnv or Layered
    episodes, seed : int
        How many, and the seed of the environment.
    progress : callable, optional
        Called with the number of episodes played and ``episodes``, after each.

    Returns
    -------
    array of shape (episodes,)
        The sum of the rewards of each episode.

    Examples
    --------
    >>> from unbounded import UniformPolicy
    >>> env = Layered(gym.make("FrozenLake-v1"), horizon=4)
    >>> play(UniformPolicy(env.layers, 4, seed=0), env, episodes=3, seed=0)
    array([0., 0., 0.])
    """
    count = checked_count("episodes", episodes)
    needed = (tuple(env.layers), int(env.action_space.n))
    if (tuple(learner.layers.sizes), learner.layers.n_actions) != needed:
        raise ValueError("the learner is for another problem: give it env.layers and the actions")
    if isinstance(env, LayeredEnv) and learner.layers != env.mdp.layers:
        raise ValueError(
            f"the learner is for {learner.layers}, the MDP has {env.mdp.layers}: make it by "
            f"{type(learner).__name__}.for_mdp(env.mdp, ...)"
        )
    returns = np.empty(count)
    for t in range(count):
        _, info = env.reset(seed=seed if t == 0 else None)
        plan, over = learner.ask(), False
        states, actions, rewards = [], [], []
        try:
            while not over:
                states.append(info["state"])
                actions.append(plan.act(info["layer"], info["state"]))
                _, reward, over, _, info = env.step(actions[-1])
                rewards.append(reward)
                over = over or learner.layers.is_end(info["layer"] + 1, info["state"])
            learner.tell(plan, states, actions, rewards=rewards)
        except BaseException:
            if plan.id in learner.outstanding:
                learner.forget(plan)
            raise
        returns[t] = sum(rewards)
        if progress:
            progress(t + 1, count)
    return returns
