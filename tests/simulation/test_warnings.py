"""Warnings of plays point at the user's line, and are said once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from unbounded import (
    SCBRL,
    CostSCB,
    CostSCBRL,
    compare,
    compare_mdp,
    simulate,
    simulate_mdp,
    worlds,
)
from unbounded.adversaries import StochasticGap
from unbounded.adversaries.mdps import Stochastic


def below(t, last_arm, q, rng):
    return -rng.random(2)


def heard(play) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        play()
    return said


def test_losses_below_the_lower_bound_are_warned_of_once_per_simulation_at_the_callers_line():
    [said] = heard(lambda: simulate(CostSCB(2), below, rounds=20, replicates=6, seed=0))
    assert said.filename == __file__
    assert "is below the lower bound, 0" in str(said.message)
    both = heard(lambda: compare({"a": CostSCB(2), "b": CostSCB(2)}, below, 20, 6, seed=0))
    assert [one.filename for one in both] == [__file__] * 2
    assert heard(lambda: simulate(CostSCB(2, lower=-1.0), below, 20, 6, seed=0)) == []  # control


def test_more_episodes_than_a_learner_was_made_for_are_warned_of_at_the_callers_line():
    mdp = worlds.dirichlet([1, 2], 2, np.random.default_rng(0))
    learner = SCBRL.for_mdp(mdp, 8)
    [said] = heard(lambda: simulate_mdp(learner, mdp, Stochastic(), episodes=9, seed=0))
    assert said.filename == __file__
    [said] = heard(lambda: compare_mdp({"a": learner}, mdp, Stochastic(), 9, 1, seed=0))
    assert said.filename == __file__


@pytest.mark.parametrize("settings", [{"lower": 0.0}, {"best_reward": 0.0}, {}])
def test_a_reward_above_the_largest_possible_is_spoken_of_as_a_reward(settings):
    learner = CostSCB(2, **settings)
    [said] = heard(lambda: learner.tell(learner.ask(), reward=3.0))
    text = str(said.message)
    assert "a reward of 3 is above the largest possible, 0," in text
    assert "best_reward=" in text
    assert "loss" not in text
    assert said.filename == __file__
    mdp = CostSCBRL([1], 2, **settings)
    plan = mdp.ask()
    [said] = heard(lambda: mdp.tell(plan, [0], [plan.act(0, 0)], rewards=[3.0]))
    assert "a reward of 3 is above the largest possible, 0," in str(said.message)
    assert said.filename == __file__


def test_compiled_simulations_say_nothing():
    assert heard(lambda: simulate(CostSCB(2), StochasticGap(), 20, 6, seed=0)) == []
