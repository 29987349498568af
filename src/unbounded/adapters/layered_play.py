"""Learners for MDPs in environments of Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from unbounded.adapters.layered_env import LayeredEnv
from unbounded.core.arrays import Vector
from unbounded.learners.mdp import MDPLearner
from unbounded.validation import checked_count, shown


def play(
    learner: MDPLearner,
    env: Any,
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
    >>> import gymnasium as gym
    >>> from unbounded import UniformPolicy
    >>> from unbounded.adapters.gymnasium import Layered, play
    >>> env = Layered(gym.make("FrozenLake-v1"), horizon=4)
    >>> play(UniformPolicy(env.layers, 4, seed=0), env, episodes=3, seed=0)
    array([0., 0., 0.])
    """
    count = checked_count("episodes", episodes)
    if learner.spec.feedback == "full":
        raise ValueError(
            f"{learner.spec.name} needs the rewards of all states and actions, and an environment "
            "tells those of an episode: take CostSCBRL or SCBRL"
        )
    if not hasattr(env, "layers"):
        raise TypeError(f"{shown(env)} is not layered: play in Layered(env, horizon)")
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
