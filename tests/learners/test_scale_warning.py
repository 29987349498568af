"""One loss that spoils the scale of a learner is warned of; nothing else is."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

from unbounded import (
    AHB,
    SCB,
    SCBIX,
    CostSCB,
    CostSCBIX,
    EpsilonGreedy,
    ScaleWarning,
    TsallisINF,
    simulate,
)

SPOILT = {
    "SCB": lambda: SCB(3, seed=0),
    "SCB paper": lambda: SCB(3, profile="paper", seed=0),
    "SCBIX": lambda: SCBIX(3, seed=0),
    "CostSCB": lambda: CostSCB(3, seed=0),
    "CostSCB half-life": lambda: CostSCB(3, half_life=300, seed=0),
    "CostSCBIX": lambda: CostSCBIX(3, lower=-1.0, seed=0),
}


@pytest.fixture(params=SPOILT)
def learner(request):
    return SPOILT[request.param]()


def play(learner, rounds, low=0.0, high=1.0):
    """Losses of both ends and between, of which none may be warned of."""
    for t in range(rounds):
        learner.tell(learner.ask(), (low, high, 0.5 * (low + high))[t % 3])


def least_surprise(learner) -> float:
    """The smallest positive loss that makes the scale ten times what it is, by trying it."""
    low, high = 0.0, 1e6
    for _ in range(45):
        middle = 0.5 * (low + high)
        trial = type(learner).load(learner.save())
        before, choice = trial.scale, trial.ask()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial.tell(choice, middle)
        low, high = (low, middle) if trial.scale > 10.0 * before else (middle, high)
    return high


def test_a_loss_that_makes_the_scale_tenfold_is_warned_of_once(learner):
    play(learner, 1000)
    name = learner.spec.name
    with pytest.warns(ScaleWarning, match=f"a loss of 1e.06 makes the scale of {name}") as said:
        learner.tell(learner.ask(), 1e6)
    assert said[0].filename == __file__
    forgets = learner.settings.get("half_life") is not None
    assert ("for two half-lives" in str(said[0].message)) == forgets
    assert learner.scale >= 1e6
    learner.tell(learner.ask(), 1e9)  # in silence


def test_exactly_from_the_loss_on_that_does_it(learner):
    play(learner, 1500)
    surprise = least_surprise(learner)
    learner.tell(learner.ask(), surprise * (1.0 - 1e-9))
    surprise = least_surprise(learner)  # the scale has grown
    choice = learner.ask()
    with pytest.warns(ScaleWarning):
        learner.tell(choice, surprise * (1.0 + 1e-9))


def test_not_before_a_thousand_rounds(learner):
    play(learner, 999)
    learner.tell(learner.ask(), 1e6)
    play(learner, 500)


def test_rewards_and_numbers_of_other_types(learner):
    play(learner, 1100)
    with pytest.warns(ScaleWarning):
        learner.tell(learner.ask(), np.float64(1e6))


@pytest.mark.parametrize("cls", [SCB, SCBIX])
def test_a_great_reward_spoils_it_as_well(cls):
    learner = cls(3, seed=0)
    play(learner, 1100)
    with pytest.warns(ScaleWarning, match="a reward of 1e.06") as said:
        learner.tell(learner.ask(), reward=1e6)
    assert "Cost" not in str(said[0].message)  # a learner with a bound would take it as the bound


@pytest.mark.parametrize("cls", [SCB, SCBIX])
@pytest.mark.parametrize(
    ("told", "bound"), [({"loss": 1e6}, "lower="), ({"reward": -1e6}, "best_reward=")]
)
def test_the_remedy_is_in_the_words_in_which_it_was_told(cls, told, bound):
    learner = cls(3, seed=0)
    play(learner, 1100)
    with pytest.warns(ScaleWarning, match=rf"Cost{cls.__name__}\(n_arms, {bound}") as said:
        learner.tell(learner.ask(), **told)
    assert ("loss" in str(said[0].message)) == ("loss" in told)


def test_as_an_error_it_comes_before_anything_changes_and_the_choice_can_be_told_again(learner):
    play(learner, 1100)
    choice, before = learner.ask(), learner.save()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ScaleWarning):
            learner.tell(choice, 1e6)
        assert learner.save() == before
        learner.tell(choice, 1e6)
    assert learner.rounds == 1101


def test_a_scale_that_grows_by_and_by_is_no_surprise(learner):
    for t in range(3000):
        learner.tell(learner.ask(), 1.01**t)


def test_the_first_losses_other_than_zero_are_none_either(learner):
    least = learner.settings.get("lower") or 0.0
    for _ in range(1500):
        learner.tell(learner.ask(), least)
    play(learner, 300)
    with pytest.warns(ScaleWarning):
        learner.tell(learner.ask(), 1e6)


@pytest.mark.parametrize("rounds", [0, 300])
def test_a_restored_learner_watches(learner, rounds):
    play(learner, 1100)
    restored = type(learner).load(learner.save())
    play(restored, rounds)
    with pytest.warns(ScaleWarning):
        restored.tell(restored.ask(), 1e6)


@pytest.mark.parametrize(
    "made",
    [
        CostSCB(3, outliers=1, seed=0),
        CostSCB(3, outliers="sqrt", seed=0),
        CostSCBIX(3, outliers=2, seed=0),
        AHB(3, seed=0),
        EpsilonGreedy(3, seed=0),
        TsallisINF(3, seed=0),
    ],
    ids=lambda made: made.spec.name,
)
def test_who_does_not_mind_says_nothing(made):
    """The control: these do not work at the scale of the largest loss."""
    play(made, 1500)
    for loss in (1e6, sys.float_info.max):
        made.tell(made.ask(), loss)


def test_losses_below_the_lower_bound_are_distinguished():
    learner = CostSCB(3, seed=0)
    play(learner, 1500)
    with pytest.warns(UserWarning, match="is below the lower bound") as said:
        learner.tell(learner.ask(), -1e6)
    assert said[0].filename == __file__
    learner.tell(learner.ask(), -1e7)
    with pytest.warns(ScaleWarning):
        learner.tell(learner.ask(), 1e6)


def test_simulations_say_nothing():
    def spike(t, last_arm, q, rng):
        return [1e6, 1e6] if t == 1500 else rng.random(2)

    assert simulate(SCB(2), spike, 1600, seed=0).high[0, -1] == 1e6
