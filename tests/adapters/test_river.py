"""The policy under River's own harness, and what River does that our learners do not."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
from collections import Counter

import gymnasium as gym
import pytest
from river import (
    bandit,
    checks,
    datasets,
    linear_model,
    metrics,
    model_selection,
    optim,
    proba,
    stats,
)

from tiers import first_only
from unbounded import AHB, SCB, AdaHedge, Banker, CostSCB
from unbounded.adapters.river import ScaleFree


def ten_arms(factor: float = 1.0, steps: int = 300) -> gym.Env:
    env = gym.make("river_bandits/KArmedTestbed-v0", max_episode_steps=steps)
    return gym.wrappers.TransformReward(env, lambda reward: reward * factor)


def trace(policy: ScaleFree, factor: float) -> list[tuple[int, float]]:
    steps = bandit.evaluate([policy], ten_arms(factor), n_episodes=2, seed=3)
    return [(step["arm"], step["reward"] / factor) for step in steps]


@pytest.mark.parametrize("learner", [SCB, AHB])
@pytest.mark.parametrize("power", [-1000, 40, 1000])
def test_powers_of_two_change_nothing_in_river_s_evaluation(learner, power):
    plain = trace(ScaleFree(learner, seed=5), 1.0)
    assert trace(ScaleFree(learner, seed=5), 2.0**power) == plain
    assert len({arm for arm, _ in plain}) > 5


def play(policy: bandit.base.Policy, rewards: dict[str, float], rounds: int) -> list[str]:
    arms = []
    for _ in range(rounds):
        arm = policy.pull(list(rewards))
        policy.update(arm, rewards[arm])
        arms.append(arm)
    return arms


def test_it_learns_where_river_s_exp3_overflows():
    rewards = {"bad": -5e8, "good": 5e8}
    with pytest.raises(OverflowError):
        play(bandit.Exp3(gamma=0.1, seed=0), rewards, 2000)
    assert play(ScaleFree(seed=0), rewards, 2000)[1000:].count("good") > 950


def regressor(policy: bandit.base.Policy) -> model_selection.BanditRegressor:
    models = [linear_model.LinearRegression(optim.SGD(lr)) for lr in (1e-5, 1e-7, 1e-6)]
    return model_selection.BanditRegressor(models, metrics.MAE(), policy)


def classifier(policy: bandit.base.Policy) -> model_selection.BanditClassifier:
    models = [linear_model.LogisticRegression(optim.SGD(lr)) for lr in (1e-2, 1e-4)]
    return model_selection.BanditClassifier(models, metrics.Accuracy(), policy)


@pytest.mark.parametrize("make", first_only([regressor, classifier]))
def test_model_selection_with_it_passes_river_s_checks(make):
    """In a process of its own: River walks through all that a model refers to, compiled code and
    LLVM's too, of which other tests leave weak references to nothing."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(check_with, (make,))


def check_with(make):
    checks.check_estimator(make(ScaleFree(burn_in=5, seed=1)))


@pytest.mark.parametrize("settings", list(ScaleFree._unit_test_params()))
def test_the_policy_passes_river_s_general_checks(settings):
    skipped = {"check_tags"}  # policies have no tags
    for name, check in vars(checks.common).items():
        if name.startswith("check_") and name not in skipped and check.__code__.co_argcount == 1:
            check(ScaleFree(**settings))


def test_powers_of_two_change_nothing_in_model_selection():
    counts = []
    for factor in (1.0, 2.0**20, 2.0**-20):
        model = regressor(ScaleFree(CostSCB, seed=2))
        for x, y in datasets.TrumpApproval().take(300):
            x.pop("ordinal_date")  # so large that models diverge, and River clips at 1e12
            model.learn_one(x, y * factor)
        counts.append(model.policy._counts)
    assert counts[0] == counts[1] == counts[2]
    assert sum(counts[0].values()) == 300


def test_metrics_of_which_less_is_better_are_losses():
    for metric in (metrics.MAE(), metrics.Accuracy()):
        policy = ScaleFree(reward_obj=metric, seed=0)
        for _ in range(1000):
            arm = policy.pull([0, 1])
            policy.update(arm, True, bool(arm))  # a truth and a prediction: arm 1 is right
        assert policy._counts[1] > 900


def test_a_clone_begins_anew_and_plays_the_same():
    policy = ScaleFree(CostSCB, {"lower": -4.0}, reward_obj=stats.Mean(), burn_in=2, seed=7)
    first = play(policy, {"a": 1.0, "b": 3.0}, 100)
    clone = policy.clone()
    assert clone._playing is None
    assert (clone.learner, clone.settings, clone.burn_in) == (CostSCB, {"lower": -4.0}, 2)
    assert play(clone, {"a": 1.0, "b": 3.0}, 100) == first


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_copy_goes_on_where_it_was(copied):
    policy = ScaleFree(seed=7)
    play(policy, {"a": 1.0, "b": 3.0}, 50)
    waiting = policy.pull(["a", "b"])
    other = copied(policy)
    for one in (policy, other):
        one.update(waiting, 2.0)
    assert play(other, {"a": 1.0, "b": 3.0}, 50) == play(policy, {"a": 1.0, "b": 3.0}, 50)
    assert other._playing.learner.rounds == 101


def test_arms_are_whatever_can_be_a_key_in_any_order():
    policy = ScaleFree(seed=0)
    arms = [("x", 1), None, "x", 2.5]
    for t in range(200):
        arm = policy.pull(arms if t % 2 else arms[::-1])
        policy.update(arm, 1.0 if arm is None else 0.0)
    assert policy.ranking[0] is None
    assert policy._playing.learner.rounds == 200


def test_other_arms_are_rejected():
    policy = ScaleFree(seed=0)
    policy.pull(["a", "b"])
    for arms in (["a"], ["a", "c"], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="clone"):
            policy.pull(arms)
    with pytest.raises(ValueError, match="differ"):
        ScaleFree().pull(["a", "a"])


def test_burn_in_goes_to_the_statistics_and_not_to_the_learner():
    policy = ScaleFree(burn_in=3, seed=0)
    arms = play(policy, {"a": 1.0, "b": 0.0}, 20)
    assert arms[:6] == ["a"] * 3 + ["b"] * 3
    assert policy._n == 20
    assert policy._playing.learner.rounds == 14
    assert not policy._playing.learner.outstanding


def test_updates_without_a_pull_are_kept_in_the_statistics():
    policy = ScaleFree(seed=0)
    policy.update("a", 4.0)
    assert policy._rewards["a"].get() == 4.0
    play(policy, {"a": 1.0, "b": 0.0}, 10)
    assert policy._playing.learner.rounds == 10


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_changes_nothing(reward):
    policy = ScaleFree(seed=0)
    arm = policy.pull([0, 1])
    with pytest.raises(ValueError, match="finite"):
        policy.update(arm, reward)
    assert policy._n == 0
    policy.update(arm, 1.0)
    assert policy._playing.learner.rounds == 1


def test_rewards_go_to_the_newest_pull_and_old_ones_are_forgotten():
    policy = ScaleFree(seed=0)
    pulls = Counter(policy.pull([0, 1]) for _ in range(5000))
    assert min(pulls.values()) > 1000
    assert len(policy._playing.learner.outstanding) == 2000
    waiting = policy._playing.learner.outstanding
    newest = max(number for number, choice in waiting.items() if choice.arm == 0)
    policy.update(0, 1.0)
    assert newest not in policy._playing.learner.outstanding


def test_replay_of_a_log_by_river():
    log = [(["a", "b"], None, "ab"[t % 2], float(t % 2)) for t in range(2000)]
    policy = ScaleFree(seed=0)
    total, used = bandit.evaluate_offline(policy, log)
    assert used == policy._playing.learner.rounds
    assert total.get() > 0.9 * used


def test_a_learner_that_waits_for_one_reward_only_forgets_the_others():
    policy = ScaleFree(AHB, seed=0)
    for _ in range(20):
        policy.pull([0, 1, 2])
    assert len(policy._playing.learner.outstanding) == 1


def test_what_is_no_bandit_is_rejected():
    with pytest.raises(TypeError, match="class like SCB"):
        ScaleFree("SCB")
    with pytest.raises(ValueError, match="all arms"):
        ScaleFree(AdaHedge)


def test_a_distribution_keeps_rewards_and_the_learner_gets_them_as_they_are():
    policy = ScaleFree(reward_obj=proba.Gaussian(), seed=0)
    for _ in range(500):
        arm = policy.pull("ab")
        policy.update(arm, 3e5 if arm == "a" else -3e5)
    assert policy._playing.learner.probabilities()[0] > 0.9
    assert policy._rewards["a"].mu == 3e5


@pytest.mark.parametrize("reward", ["7", None, 10**400])
def test_what_is_no_reward_is_rejected_with_a_message_and_changes_nothing(reward):
    policy = ScaleFree(seed=0)
    arm = policy.pull([0, 1])
    with pytest.raises(TypeError, match="Mean takes no"):
        policy.update(arm, reward)
    assert (policy._n, policy._playing.learner.rounds, policy._playing.waiting(arm)) == (0, 0, 1)


def test_a_reward_that_the_learner_rejects_is_not_counted():
    policy = ScaleFree(Banker, {"rounds": 100}, seed=0)  # it squares losses
    arm = policy.pull([0, 1])
    with pytest.raises(ValueError, match="1e\\+150"):
        policy.update(arm, 1e200)
    assert policy._n == 0
    policy.update(arm, 1.0)
    assert (policy._n, policy._playing.learner.rounds) == (1, 1)


def test_no_arms_are_rejected():
    with pytest.raises(ValueError, match="no arms"):
        ScaleFree().pull([])
