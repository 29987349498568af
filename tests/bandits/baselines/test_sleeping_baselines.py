"""Baselines among the arms that are available: a ranking does not depend on the mask."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import (
    UCB1,
    DiscountedThompson,
    DiscountedUCB,
    EpsilonGreedy,
    LogThompson,
    SlidingWindowUCB,
    Uniform,
    simulate,
)
from unbounded.adversaries import AtRandom, StochasticGap

RANKING = [
    UCB1(6), DiscountedUCB(6, half_life=50), SlidingWindowUCB(6, window=40), LogThompson(6),
    DiscountedThompson(6, half_life=60),
]  # fmt: skip
MEANS = np.array([0.3, 0.2, 0.5, 0.6, 0.4, 0.7])


def some_arms(rng):
    mask = rng.random(6) < 0.5
    mask[rng.integers(6)] = True
    return mask


def best_of(learner, mask):
    found = learner.probabilities(available=mask)
    assert sorted(found.tolist()) == [0.0] * 5 + [1.0]
    return int(found.argmax())


@pytest.mark.parametrize("learner", RANKING, ids=repr)
def test_one_ranking_of_the_arms_decides_under_every_mask(learner):
    learner, rng, played = learner.clone(), np.random.default_rng(0), set()
    for _ in range(250):
        full = int(learner.probabilities().argmax())
        rest, ranking = np.ones(6, bool), []
        while rest.any():  # the best of all, the best of the others, ...
            ranking.append(best_of(learner, rest) if not rest.all() else full)
            rest[ranking[-1]] = False
        mask = some_arms(rng)
        choice = learner.ask(available=mask)
        assert choice.arm == next(k for k in ranking if mask[k])
        assert choice.probability == 1.0
        learner.tell(choice, float(rng.uniform(0.5, 1.0) * MEANS[choice.arm]))
        played.add(tuple(ranking))
    assert len(played) > 5  # the control: there is more than one ranking


def test_the_index_of_ucb1():
    learner, rng, plays, gains = UCB1(6), np.random.default_rng(1), np.zeros(6), np.zeros(6)
    for t in range(300):
        mask = some_arms(rng)
        choice = learner.ask(available=mask)
        if (mask & (plays == 0.0)).any():
            assert plays[choice.arm] == 0.0
        else:
            index = gains / np.maximum(plays, 1) + np.sqrt(2 * math.log(t) / np.maximum(plays, 1))
            assert index[choice.arm] == pytest.approx(index[mask].max())
        loss = float(rng.random() < MEANS[choice.arm])
        plays[choice.arm] += 1.0
        gains[choice.arm] += 1.0 - loss
        learner.tell(choice, loss)


def test_epsilon_greedy_exploits_and_explores_among_the_available():
    learner, rng = EpsilonGreedy(6, epsilon=0.3, seed=0), np.random.default_rng(2)
    total, pulls = np.zeros(6), np.zeros(6)
    for _ in range(300):
        mask = some_arms(rng)
        q = learner.probabilities(available=mask)
        assert q[~mask].sum() == 0.0
        if (pulls[mask] > 0.0).all():
            means = np.where(mask & (pulls > 0), total / np.maximum(pulls, 1.0), np.inf)
            expected = 0.3 / mask.sum() * mask + 0.7 * (np.arange(6) == means.argmin())
            np.testing.assert_allclose(q, expected, atol=1e-12)
        else:
            assert q[mask & (pulls > 0.0)].sum() == 0.0
        choice = learner.ask(available=mask)
        assert choice.probability == pytest.approx(q[choice.arm])
        loss = float(rng.random())
        total[choice.arm] += loss
        pulls[choice.arm] += 1.0
        learner.tell(choice, loss)


def test_uniform_is_uniform_among_the_available():
    assert Uniform(4).probabilities(available=[1, 3]).tolist() == [0.0, 0.5, 0.0, 0.5]


@pytest.mark.parametrize("cls", [UCB1, EpsilonGreedy, LogThompson])
def test_simulations_have_them_and_they_learn(cls):
    gaps = [
        simulate(one(4), StochasticGap(gap=0.4), 2000, 4, seed=0, available=AtRandom(share=0.6))
        for one in (cls, Uniform)
    ]
    mine, uniform = (one.available_regret[:, -1].mean() for one in gaps)
    assert mine < 0.5 * uniform
