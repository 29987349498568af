"""Gymnasium's tables through `from_arrays`: exact regret against a dynamic program of its own."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from mdp_play import walk_of
from unbounded import IndependentSCB, LayeredMDP, UniformPolicy, simulate_mdp
from unbounded.adapters.gymnasium import Layered, LayeredEnv, play, tables
from unbounded.adversaries.mdps import MDPReplay
from unbounded.learners.seeds import replicate_key, root_of

WORLDS = {
    "lake": (lambda: gym.make("FrozenLake-v1"), 8),
    "dry lake": (lambda: gym.make("FrozenLake-v1", is_slippery=False), 8),
    "cliff": (lambda: gym.make("CliffWalking-v1"), 15),  # 13 steps lead to the goal
}


@pytest.fixture(params=WORLDS)
def world(request):
    """The environment, its horizon, and the MDP made of its tables."""
    make, H = WORLDS[request.param]
    env = make()
    P, initial, ends, _ = tables(env)
    return env, H, LayeredMDP.from_arrays(P, initial, H, ends=ends)


def value(env, losses, policy=None):
    """Expected loss of a policy (H, S, A), or the least of any, straight from ``env.P``."""
    listed = env.unwrapped.P
    H, n, A = losses.shape
    after = [0.0] * n
    for h in reversed(range(H)):
        costs = [
            [
                losses[h, s, a] + sum(p * after[t] for p, t, _, over in listed[s][a] if not over)
                for a in range(A)
            ]
            for s in range(n)
        ]
        if policy is None:
            after = [min(row) for row in costs]
        else:
            after = [sum(policy[h][s][a] * costs[s][a] for a in range(A)) for s in range(n)]
    start = env.unwrapped.initial_state_distrib
    return sum(p * v for p, v in zip(start, after, strict=True))


def test_the_exact_regret_is_that_of_a_dynamic_program(world):
    env, H, mdp = world
    n, A, T = mdp.layers.sizes[0], mdp.layers.n_actions, 30
    rewards = np.broadcast_to(tables(env).losses, (T, H, n, A))
    losses = rewards + np.random.default_rng(0).random((T, H, n, A))
    adversary = MDPReplay(losses)
    learner = IndependentSCB.for_mdp(mdp)
    result = simulate_mdp(learner, mdp, adversary, T, seed=5, checkpoints=[1, T])
    again = IndependentSCB.for_mdp(mdp, seed=result.seed(0))
    key, expected, paid, ended = replicate_key(root_of(5), 0), [], [], 0
    for t in range(T):
        plan = again.ask()
        states, actions = walk_of(mdp, plan, key, t + 1)
        steps = next((h for h in range(1, H) if states[h] == n), H)
        ended += steps < H
        seen = [losses[t, h, states[h], actions[h]] for h in range(steps)]
        again.tell(plan, states[:steps], actions[:steps], seen)
        expected.append(value(env, losses[t], plan.policy))
        paid.append(sum(seen))
    for j, t in enumerate((1, T)):
        best = value(env, losses[:t].sum(axis=0))
        assert result.pseudo_regret[0, j] == pytest.approx(sum(expected[:t]) - best, rel=1e-10)
        assert result.regret[0, j] == pytest.approx(sum(paid[:t]) - best, rel=1e-10)
    if "FrozenLake" in str(env):
        assert ended > T / 4


def test_uniform_play_and_the_best_policy_for_the_true_rewards(world):
    """The cliff's goal is reached in 13 steps, for -13; the dry lake's for 1."""
    env, H, mdp = world
    losses = np.broadcast_to(tables(env).losses, (1, H, *tables(env).losses.shape))
    result = simulate_mdp(UniformPolicy.for_mdp(mdp), mdp, MDPReplay(losses), 1)
    even = np.full(losses.shape[1:], 1 / 4)
    best = value(env, losses[0])
    assert result.pseudo_regret[0, 0] == pytest.approx(value(env, losses[0], even) - best, abs=1e-9)
    known = {"CliffWalking": 13.0, "is_slippery=False": -1.0}
    for name, least in known.items():
        if name in str(env.spec) or name.replace("=", "': ") in str(env.spec):
            assert best == pytest.approx(least)


def test_an_mdp_without_its_ends_is_another(world):
    """What the tests above would see: going on in the hole, or at the goal."""
    env, H, mdp = world
    P, initial, ends, losses = tables(env)
    for s, a in np.argwhere(ends > 0):
        for p, after, _, over in env.unwrapped.P[s][a]:
            P[s, a, after] += p if over else 0.0
    endless = LayeredMDP.from_arrays(P, initial, H)
    repeated = MDPReplay(np.broadcast_to(losses + 2.0, (1, H, *losses.shape)))
    one, other = (
        simulate_mdp(UniformPolicy.for_mdp(m), m, repeated, 1).pseudo_regret[0, 0]
        for m in (mdp, endless)
    )
    assert abs(one - other) > 0.01


def test_a_learner_for_the_tables_plays_in_the_environment():
    env = Layered(gym.make("FrozenLake-v1"), horizon=8)
    P, initial, ends, _ = tables(env)
    mdp = LayeredMDP.from_arrays(P, initial, 8, ends=ends)
    assert list(mdp.layers.sizes) == env.layers
    knowing, blind = IndependentSCB.for_mdp(mdp, seed=1), IndependentSCB(env.layers, 4, seed=1)
    for learner in (knowing, blind):
        assert play(learner, env, episodes=20, seed=3).size == 20
        assert learner.episodes_told == 20


def test_environments_of_mdps_that_end_early_and_forbid():
    P = np.array([[[0.0, 0.5], [0.5, 0.5]], [[0.0, 0.0], [0.5, 0.0]]])
    ends, allowed = 1.0 - P.sum(axis=2), [[True, False], [True, True]]
    mdp = LayeredMDP.from_arrays(P, [1.0, 0.0], 4, ends=ends, allowed=allowed)
    env = LayeredEnv(mdp, lambda t, rng: [rng.random((n, 2)) + 1.0 for n in mdp.layers.sizes])
    returns = play(UniformPolicy.for_mdp(mdp, seed=0), env, episodes=200, seed=0)
    assert -8.0 <= returns.min() < -4.0 < returns.max() <= -1.0
    _, info = env.reset(seed=1)
    assert info["action_mask"].tolist() == [1, 0]
    with pytest.raises(ValueError, match="action 1 is not allowed in state 0 of layer 0"):
        env.step(1)
    with pytest.raises(ValueError, match=r"make it by UniformPolicy.for_mdp\(env.mdp"):
        play(UniformPolicy(mdp.layers.sizes, 2), env, episodes=1)


def test_environments_without_tables():
    with pytest.raises(TypeError, match=r"has no table of transitions .* by Layered and play"):
        tables(gym.make("CartPole-v1"))
