"""Environments under Gymnasium's own checks, and learners that play in them."""

from __future__ import annotations

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env

from unbounded import APOMVP, SCBRL, CostSCBRL, IndependentSCB, UniformPolicy, worlds
from unbounded.adapters.gymnasium import Layered, LayeredEnv, play
from unbounded.adversaries import mdps as adversaries
from unbounded.core.occupancy.from_arrays import with_end


def world():
    return worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))


def tables(t, rng):
    return [rng.random((n, 2)) * t for n in (2, 3, 2)]


@pytest.fixture(params=["callable", "adversary"])
def env(request):
    blind = next(cls for cls in adversaries.adversaries().values() if not cls.looks)
    return LayeredEnv(world(), tables if request.param == "callable" else blind(), episodes=100)


# There is no spec, as for every environment that `gymnasium.make` has not made.
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes")
def test_gymnasium_s_checks(env):
    check_env(env)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_gymnasium_s_checks_of_what_was_layered():
    check_env(Layered(gym.make("FrozenLake-v1").unwrapped, horizon=6), skip_render_check=True)


def test_losses_change_and_a_seed_begins_again(env):
    def losses(seed, episodes=5):
        seen = []
        for t in range(episodes):
            _, info = env.reset(seed=seed if t == 0 else None)
            for layer in range(3):
                assert info["layer"] == layer
                _, reward, over, _, info = env.step(1)
                assert reward == -info["loss"]
                seen.append(info["loss"])
            assert over
        return seen

    first = losses(3)
    assert len(set(first)) > 3
    assert losses(3) == first


def test_observations_number_all_states():
    env, seen = LayeredEnv(world(), tables), set()
    for _ in range(50):
        observation, info = env.reset()
        first = [0, 2, 5, 7]
        for _ in range(3):
            assert observation == first[info["layer"]] + info["state"]
            seen.add(observation)
            observation, *_, info = env.step(0)
        assert observation == 7 == env.observation_space.n - 1
    assert seen == set(range(7))


def test_adversaries_that_look_are_rejected():
    looks = next(cls for cls in adversaries.adversaries().values() if cls.looks)
    with pytest.raises(ValueError, match="looks at the learner"):
        LayeredEnv(world(), looks())


class Ends(gym.Env):
    """States from 5, actions from 1; action 2 ends the episode, with a reward of 7."""

    observation_space = Discrete(3, start=5)
    action_space = Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.over = False
        return 6, {}

    def step(self, action):
        assert not self.over, "nobody steps in an episode that has ended"
        assert action in (1, 2)
        self.over = action == 2
        return 7, 7.0 if self.over else 1.0, self.over, False, {}


def test_early_ends_go_on_at_no_reward():
    env = Layered(Ends(), horizon=4)
    assert env.layers == [3, 4, 4, 4]
    _, info = env.reset()
    seen = [info["state"]]
    steps = []
    for action in (0, 1, 0, 1):
        _, reward, over, _, info = env.step(action)
        steps.append((reward, over, info["layer"]))
        seen.append(info["state"])
    assert seen == [1, 2, 3, 3, 3]
    assert steps == [(1.0, False, 1), (7.0, False, 2), (0.0, False, 3), (0.0, True, 4)]


def test_what_goes_on_is_cut_off():
    env = Layered(Ends(), horizon=2)
    for _ in range(2):
        env.reset()
        assert [env.step(0)[2] for _ in range(2)] == [False, True]


def test_what_cannot_be_layered_is_rejected():
    class Continuous(Ends):
        observation_space = Box(0.0, 1.0)

    with pytest.raises(TypeError, match="observation_space must be Discrete"):
        Layered(Continuous(), horizon=2)

    class Large(Ends):
        observation_space = Discrete(500)

    with pytest.raises(ValueError, match="50 layers of 500 states and 2 actions have 24,"):
        Layered(Large(), horizon=50)
    assert len(Layered(Large(), horizon=50, most=10**8).layers) == 50
    with pytest.raises(ValueError, match=r"1000000000 layers of 500 states .* more than"):
        Layered(Large(), horizon=10**9)  # at once, and not after a list of so many
    for horizon in (1, 2, 3):
        sizes = with_end([Ends.observation_space.n] * horizon)
        size = 2 * sum(a * b for a, b in pairwise(sizes))
        assert Layered(Ends(), horizon=horizon, most=max(1, size)).layers == sizes
        if size > 1:
            with pytest.raises(ValueError, match=f"have {size} transitions"):
                Layered(Ends(), horizon=horizon, most=size - 1)
    with pytest.raises(ValueError, match="most must be"):
        Layered(Ends(), horizon=2, most=0)


def test_a_learner_for_another_problem_is_rejected():
    env = Layered(Ends(), horizon=2)
    with pytest.raises(ValueError, match="another problem"):
        play(UniformPolicy([3, 3], 2, seed=0), env, 1)


def test_who_must_see_all_rewards_is_rejected():
    env = Layered(gym.make("FrozenLake-v1"), horizon=3)
    learner = APOMVP(env.layers, 4, seed=0)
    with pytest.raises(ValueError, match="APOMVP needs the rewards of all states and actions"):
        play(learner, env, 1)
    assert not learner.outstanding


def test_an_environment_that_raises_leaves_no_plan_behind():
    class Breaks(Ends):
        def step(self, action):
            raise RuntimeError("broken")

    env = Layered(Breaks(), horizon=2)
    learner = UniformPolicy(env.layers, 2, seed=0)
    with pytest.raises(RuntimeError, match="broken"):
        play(learner, env, 1)
    assert not learner.outstanding
    assert play(learner, Layered(Ends(), horizon=2), 2).size == 2


def test_progress_is_reported():
    env, calls = Layered(Ends(), horizon=2), []
    play(UniformPolicy(env.layers, 2), env, 3, progress=lambda *done: calls.append(done))
    assert calls == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("power", [-900, 900])
def test_powers_of_two_change_nothing(power):
    def returns(factor):
        lake = gym.make("FrozenLake-v1", is_slippery=False)
        lake = gym.wrappers.TransformReward(lake, lambda reward: (reward - 0.01) * factor)
        env = Layered(lake, horizon=8)
        learner = IndependentSCB(env.layers, 4, seed=1)
        return play(learner, env, 300, seed=2) / factor

    assert (returns(2.0**power) == returns(1.0)).all()


def test_a_learner_gets_better_at_walking_along_a_cliff():
    env = Layered(gym.make("CliffWalking-v1"), horizon=16)
    returns = play(IndependentSCB(env.layers, 4, seed=1), env, 3000, seed=2)
    assert returns[-500:].mean() > 0.75 * returns[:500].mean()  # costs


def test_a_frozen_lake_ends_early_or_is_cut_off():
    env = Layered(gym.make("FrozenLake-v1"), horizon=12)
    learner = UniformPolicy(env.layers, 4, seed=1)
    returns = play(learner, env, 500, seed=2)
    assert set(returns.tolist()) == {0.0, 1.0}
    assert learner.episodes_told == 500


def test_cost_scb_rl_plays_an_environment_of_ours():
    env = LayeredEnv(world(), lambda t, rng: [np.array([[5.0, 0.0]] * n) for n in (2, 3, 2)])
    learner = CostSCBRL(env.layers, 2, episodes=400, seed=0)
    returns = play(learner, env, 400, seed=0)
    assert returns[-100:].mean() > returns[:100].mean()


@pytest.mark.parametrize("make", [lambda: LayeredEnv(world(), tables), lambda: Layered(Ends(), 3)])
def test_steps_and_actions_that_there_are_not(make):
    env = make()
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    env.reset(seed=0)
    for action in (-1, 2):
        with pytest.raises(InvalidAction, match=r"0 \.\. 1"):
            env.step(action)
    for _ in range(3):
        env.step(0)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)


def test_losses_that_are_not_finite_are_rejected():
    env = LayeredEnv(world(), lambda t, rng: [np.full((n, 2), np.nan) for n in (2, 3, 2)])
    with pytest.raises(ValueError, match="episode 1"):
        env.reset(seed=0)


def test_an_environment_that_is_not_layered_is_rejected():
    with pytest.raises(TypeError, match=r"Layered\(env, horizon\)"):
        play(UniformPolicy([16], 4), gym.make("FrozenLake-v1"), 1)


@pytest.mark.parametrize("power", [-900, 900])
def test_powers_of_two_change_nothing_for_scb_rl(power):
    """Told neither a range nor what leads where."""

    def returns(factor):
        env = Layered(Scaled(factor), horizon=3)
        learner = SCBRL(env.layers, 2, episodes=60, seed=1)
        return play(learner, env, 60, seed=2) / factor

    plain = returns(1.0)
    assert (returns(2.0**power) == plain).all()
    assert len(set(plain)) > 2


class Scaled(Ends):
    def __init__(self, factor):
        self.factor = factor

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward * self.factor, *rest
