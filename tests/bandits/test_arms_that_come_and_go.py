"""`with_arms`: arms that come and go, and what a learner knows of the others."""

from __future__ import annotations

import numpy as np
import pytest

from bandit_examples import EXAMPLES
from unbounded import SCB, AdaINF, CostSCB, CostSCBIX

KEEPING = ["AdaINF", "CostSCB", "CostSCBIX", "SCBIX", "TsallisINF", "TsallisINFRV"]
ALL = [
    one
    for one in EXAMPLES
    if one.values[0].spec.name in KEEPING and one.values[0].settings.get("half_life") != "auto"
]


FREE = [one for one in ALL if one.values[0].spec.scale_free]


def taught(learner, rounds=300, means=None, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    means = np.linspace(0.2, 1.0, learner.n_arms) if means is None else means
    for _ in range(rounds):
        choice = learner.ask()
        learner.tell(choice, float(scale * means[choice.arm] * rng.uniform(0.5, 1.5)))
    return learner


def roots(p):
    return 1.0 / np.sqrt(p)


@pytest.mark.parametrize("example", ALL)
def test_nothing_is_forgotten_of_the_arms_that_stay(example):
    learner = taught(example.make(5, seed=1))
    before = learner.probabilities()
    after = learner.with_arms([1, 2, 3, None, 4, None])
    p = after.probabilities()
    assert (after.n_arms, after.rounds) == (6, learner.rounds)
    assert after.scale == pytest.approx(learner.scale, rel=1.0)
    assert abs(p.sum() - 1.0) < 1e-9
    if example.spec.name == "CostSCBIX":  # Shannon: the ratios stay, but for ln n in the rate
        gaps = [np.diff(np.log(q)) for q in (before[1:], p[[0, 1, 2, 4]])]
        assert np.ptp(gaps[1] / gaps[0]) < 1e-6
        np.testing.assert_allclose(p[[3, 5]], 1.0 / 6.0, rtol=1e-9)
    elif example.spec.name == "CostSCB":  # Tsallis: differences of estimates are eta * these
        gaps = [np.diff(roots(q)) for q in (before[1:], p[[0, 1, 2, 4]])]
        assert np.ptp(gaps[1] / gaps[0]) < 1e-6
        assert 0.02 < p[5] < p[3] < 1.0 / 5.0
    loaded = type(after).load(after.save())
    assert np.array_equal(loaded.probabilities(), p)
    taught(after, 200)
    taught(loaded, 200)
    assert np.array_equal(loaded.probabilities(), after.probabilities())


@pytest.mark.parametrize("example", ALL)
def test_the_same_arms_are_the_same_learner_but_for_rounding(example):
    learner = taught(example.make(5, seed=1))
    after = learner.with_arms(range(5))
    np.testing.assert_allclose(
        after.probabilities(), learner.probabilities(), rtol=1e-6, atol=1e-12
    )
    for _ in range(20):
        one, other = after.ask(), learner.ask()
        assert one.arm == other.arm
        after.forget(one)
        learner.forget(other)


@pytest.mark.parametrize("example", FREE)
@pytest.mark.parametrize("power", [-600, 600])
def test_powers_of_two_change_no_bit(example, power):
    plays = []
    for scale in (1.0, 2.0**power):
        learner = taught(example.make(5, seed=1), 60, scale=scale)
        waiting = [learner.ask() for _ in range(5)]
        learner = learner.with_arms([4, None, 0, 1, None, None])
        for choice in waiting:
            learner.tell(choice, scale * 0.5)
        learner = taught(learner, 60, scale=scale).with_arms([0, 1, 5])
        plays.append(taught(learner, 60, scale=scale).probabilities())
    assert np.array_equal(*plays)


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize("n", [1, 2])
def test_one_arm_alone_and_back(example, n):
    learner = taught(example.make(4, seed=1), 80).with_arms([2, None][:n])
    taught(learner, 80)
    learner = taught(learner.with_arms([0, None, None]), 80)
    assert learner.n_arms == 3
    type(learner).load(learner.save())


@pytest.mark.parametrize("example", ALL)
def test_many_arms_become_few_and_few_many(example):
    learner = taught(example.make(150, seed=1), 100)
    few = taught(learner.with_arms(range(10)), 50)
    many = taught(few.with_arms([*range(10), *[None] * 140]), 50)
    assert abs(many.probabilities().sum() - 1.0) < 1e-6
    type(many).load(many.save())


def test_outstanding_choices_are_told_to_the_new_learner():
    learner = taught(CostSCB(4, seed=1))
    stays, goes = learner.ask(available=[3]), learner.ask(available=[0])
    plain = learner.ask()
    after = learner.with_arms([1, 2, 3, None])
    assert sorted(after.outstanding) == [stays.id, goes.id, plain.id]
    assert after.outstanding[stays.id].arm == 2
    assert after.outstanding[goes.id].arm == -1
    loaded = CostSCB.load(after.save())
    for one in (after, loaded):
        one.tell(goes, 50.0)  # its arm has gone; its loss still says what the scale is
        assert one.scale == pytest.approx(50.0)
        before = one.probabilities()
        one.tell(stays, 50.0)  # all others slept, and are charged as much
        np.testing.assert_allclose(one.probabilities(), before, rtol=0.1)
        one.tell(plain, 0.5)
    assert np.array_equal(after.probabilities(), loaded.probabilities())


@pytest.mark.parametrize(
    ("learner", "share"),
    [
        (CostSCB(5, seed=0), 0.5), (CostSCB(5, outliers="sqrt", seed=0), 0.5),
        (CostSCB(5, half_life=2000, cap=100, seed=0), 0.5), (CostSCBIX(5, seed=0), 0.4),
        (AdaINF(5, seed=0), 0.5), (AdaINF(5, half_life=2000, seed=0), 0.5),
    ],
)  # fmt: skip
def test_a_hundred_changes_lose_nothing_of_the_others(learner, share):
    """Arm 0 is best and stays; of the four others the oldest goes whenever a new one comes."""
    rng, best = np.random.default_rng(2), []
    for change in range(100):
        for _ in range(60):
            choice = learner.ask()
            learner.tell(choice, float(rng.random() < (0.2 if choice.arm == 0 else 0.7)))
            best.append(choice.arm == 0)
        learner = learner.with_arms([0, 2, 3, 4, None])
        if change > 30:
            assert learner.probabilities()[0] > share / 2.0
    assert np.mean(best[3000:]) > share
    type(learner).load(learner.save())


def test_a_new_best_arm_is_found():
    learner = taught(CostSCB(5, seed=0), 2000).with_arms([0, 1, 2, 3, 4, None])
    means = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 0.02])
    taught(learner, 2000, means)
    assert learner.probabilities()[5] > 0.8


def test_what_makes_no_sense_is_rejected():
    learner = taught(CostSCB(3, seed=0), 20)
    before = learner.save()
    for arms in ([], [None], [3], [-1], [0, 0], "ab", 3, [0.5], [True]):
        with pytest.raises((ValueError, TypeError), match="arms"):
            learner.with_arms(arms)
    with pytest.raises(TypeError, match="SCB"):
        SCB(3).with_arms([0, 1])
    assert learner.save() == before
