"""Gymnasium: its environments as layered problems, and layered MDPs as its environments.

This needs `pip install "unbounded[gym]"`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, SupportsIndex

import gymnasium as gym
import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.from_arrays import with_end
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.interpreter import quietly
from unbounded.learners.mdp import MDPLearner
from unbounded.simulation.adversary import MDPAdversary
from unbounded.validation import checked_arrays, checked_count, shown

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
        More possible transitions than this raise an error: most learners store them all. One that
        stores those that it has seen (`PolicyOptimization`) can do with more.

    Attributes
    ----------
    layers : list of int
        For the learner: the number of states in each layer.
    n_actions : int
        For the learner: the number of actions.

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
        size = A * (n + 1) * (n + (H - 2) * (n + 1)) if H > 1 else 0  # as of `with_end`
        if size > (limit := checked_count("most", most)):
            raise ValueError(
                f"{H} layers of {n} states and {A} actions have {size:,} transitions, more than "
                f"{limit:,}: take a shorter horizon, merge states, or say most= and take a learner "
                "that keeps only the transitions it has seen, PolicyOptimization"
            )
        self.layers, self.n_actions = with_end([n] * H), A
        self._layer = H
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


Losses = Callable[[int, np.random.Generator], Sequence[ArrayLike]]


def check_step(env: Any, action: int) -> None:
    """Reject a step that there is not, and an action that there is not."""
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
    are allowed, ``info`` also has the ``action_mask``; others are rejected.

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
    >>> mdp = worlds.dirichlet([1, 3], 2, seed=0)
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
        self.layers, self.n_actions = list(mdp.layers.sizes), mdp.layers.n_actions
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
        """Return the losses of this episode, a table for each layer."""
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
        Made for ``env.layers`` and ``env.n_actions``, or for the MDP of a `LayeredEnv`. One
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


class Tables(NamedTuple):
    """What `LayeredMDP.from_arrays` needs, and what the actions cost."""

    P: Vector  # (S, A, S): transitions after which the episode goes on
    initial: Vector  # (S,)
    ends: Vector  # (S, A): the probability that it ends
    losses: Vector  # (S, A): minus the expected reward


def tables(env: gym.Env[Any, Any]) -> Tables:
    """Return the transitions of an environment with a table ``P``, as Gymnasium's toys have.

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
