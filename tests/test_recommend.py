"""`recommend`, against its page and against what the learners themselves declare."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import unbounded
from unbounded import recommend
from unbounded.learners.bandit import Learner

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "which-learner.md"
ROWS = re.findall(r"^\| `(recommend\(.*?\))` \| `(.+?)` \|", PAGE.read_text("utf-8"), re.MULTILINE)


def test_the_page_has_rows() -> None:
    assert len(ROWS) >= 15


@pytest.mark.parametrize(("call", "answer"), ROWS)
def test_the_page_says_what_the_function_says(call: str, answer: str) -> None:
    found = eval(call, {"recommend": recommend})
    assert str(found).splitlines()[0] == answer


KNOWN = ({}, {"lower": 2.0}, {"best_reward": 5.0}, {"range": (2.0, 9.0)})
FLAGS = ("outliers", "delayed", "high_probability", "all_losses")
SIZES = (None, 1, 2, 10, 100_000)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: "".join(known) or "nothing")
def test_every_bandit_recommended_can_do_what_is_asked_of_it(known: dict) -> None:
    for flags in product((False, True), repeat=len(FLAGS)):
        asked = dict(zip(FLAGS, flags, strict=True))
        for n_arms in SIZES:
            found = recommend(**known, **asked, n_arms=n_arms)
            learner = found.learner(n_arms=n_arms or 4, seed=0)
            assert isinstance(learner, Learner)
            assert type(learner).__name__ == found.name
            spec = learner.spec
            assert spec.delayed or not asked["delayed"]
            assert (spec.feedback == "full") == (asked["all_losses"] and not asked["delayed"])
            needs_a_range = "loss_range" in found.settings
            assert needs_a_range == (
                "range" in known and not (asked["outliers"] or asked["high_probability"])
                and spec.feedback == "bandit"
            )  # fmt: skip
            assert spec.scale_free or needs_a_range
            assert found.why


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: "".join(known) or "nothing")
@pytest.mark.parametrize("changing", [True, 20_000])
def test_what_is_recommended_for_changes_forgets_or_says_that_it_does_not(known, changing) -> None:
    for flags in product((False, True), repeat=len(FLAGS)):
        asked = dict(zip(FLAGS, flags, strict=True))
        for n_arms in (None, 10):
            found = recommend(**known, **asked, n_arms=n_arms, changing=changing)
            learner = found.learner(n_arms=n_arms or 4, seed=0)
            assert "loss_range" not in found.settings  # it would have to be right for ever
            if "half_life" in found.settings:
                assert learner.settings["half_life"] >= 30 * (n_arms or 1)
            else:
                assert any("does not forget" in caveat for caveat in found.caveats)
    assert "half_life" not in recommend(**known).settings  # control


def test_the_half_life_follows_the_rule_of_the_theory() -> None:
    by = {T: recommend(changing=T, n_arms=10).settings["half_life"] for T in (5000, 40_000)}
    assert by[5000] == round((10 * 5000**2) ** (1 / 3))
    assert by[40_000] == pytest.approx(4.0 * by[5000], rel=1e-2)
    with pytest.raises(ValueError, match="changing"):
        recommend(changing=0)


@pytest.mark.parametrize("known", [{}, {"lower": 0.0}])
@pytest.mark.parametrize(("changing", "n_arms"), [(1, 10), (2, 10**9), (2**52, 10), (True, 500)])
def test_half_lives_at_both_ends_are_legal(known: dict, changing: int, n_arms: int) -> None:
    found = recommend(**known, changing=changing, n_arms=n_arms)
    h = found.settings["half_life"]
    assert min(30 * n_arms, 2**30) <= h <= 2**30
    found.learner(n_arms=2, seed=0)  # which takes it
    assert any("faster" in caveat for caveat in found.caveats) == (n_arms != 500 and changing < 3)
    assert any(f"{h} is a guess" in caveat for caveat in found.caveats) == (changing is True)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: "".join(known) or "nothing")
def test_every_learner_recommended_for_mdps_can_be_made(known: dict) -> None:
    for outliers, delayed in product((False, True), repeat=2):
        found = recommend(mdp=True, **known, outliers=outliers, delayed=delayed)
        learner = found.learner(layers=[1, 2], n_actions=2, episodes=100, seed=0)
        assert found.name == ("CostSCBRL" if known else "SCBRL") == type(learner).__name__
        assert len(found.caveats) == 1 + outliers + delayed + 2 * (not known)
        assert any("PolicyOptimization" in caveat for caveat in found.caveats)
        assert any("profile='paper'" in caveat for caveat in found.caveats) == (not known)


def test_a_half_life_in_mdps_has_no_theorem_by_default() -> None:
    for changing in (5000, False):
        found = recommend(mdp=True, lower=0.0, changing=changing)
        assert any("profile='paper'" in caveat for caveat in found.caveats) == bool(changing)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: "".join(known) or "nothing")
def test_many_states_without_a_lower_bound_are_for_policy_optimization(known: dict) -> None:
    small, large = (recommend(mdp=True, n_states=n, **known).name for n in (29, 30))
    assert small == recommend(mdp=True, **known).name
    assert large == ("CostSCBRL" if known else "PolicyOptimization")
    with pytest.raises(ValueError, match="n_states"):
        recommend(n_states=30)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: "".join(known) or "nothing")
def test_who_sees_the_losses_of_all_states_and_actions_learns_from_them(known: dict) -> None:
    for outliers, delayed in product((False, True), repeat=2):
        found = recommend(mdp=True, all_losses=True, **known, outliers=outliers, delayed=delayed)
        learner = found.learner(layers=[1, 2], n_actions=2, seed=0)
        assert type(learner).__name__ == found.name == "APOMVP"
        assert learner.spec.feedback == "full"
        assert len(found.caveats) == 1 + outliers + delayed


@pytest.mark.parametrize(("mdp", "all_losses"), [(True, False), (True, True), (False, True)])
def test_where_no_bound_holds_with_high_probability(mdp: bool, all_losses: bool) -> None:
    wanted = recommend(mdp=mdp, all_losses=all_losses, high_probability=True)
    [caveat] = set(wanted.caveats) - set(recommend(mdp=mdp, all_losses=all_losses).caveats)
    assert "high-probability" in caveat


def test_a_known_range_gives_its_lower_bound() -> None:
    assert recommend(range=(2.0, 9.0), outliers=True).settings["lower"] == 2.0
    assert recommend(mdp=True, range=(2.0, 9.0)).settings == {"lower": 2.0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lower": 0.0, "range": (0.0, 1.0)}, "give one"),
        ({"lower": 0.0, "best_reward": 1.0}, "give one"),
        ({"lower": float("nan")}, "lower"),
        ({"range": (1.0, 0.0)}, "range"),
        ({"n_arms": 0}, "n_arms"),
        ({"mdp": True, "n_arms": 3}, "leave it out"),
        ({"mdp": True, "all_losses": True, "n_arms": 3}, "leave it out"),
        ({"delayed": 1}, "delayed"),
    ],
)
def test_what_makes_no_sense_is_rejected(given: dict, said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        recommend(**given)


def test_a_recommendation_says_all_of_it() -> None:
    text = str(unbounded.recommend(range=(0.0, 1.0), delayed=True))
    assert text.splitlines()[0] == "TsallisINF(n_arms, loss_range=(0.0, 1.0))"
    assert text.count("because") == 2
    assert text.count("caveat") == 2


def test_whoever_gets_ada_inf_is_told_what_rare_huge_losses_mean_to_it() -> None:
    for known in ({}, {"outliers": True}, {"delayed": True}, {"n_arms": 2}):
        found = recommend(**known)
        assert found.name == "AdaINF"
        assert any("robust=False" in caveat for caveat in found.caveats)
    assert not any("robust" in caveat for caveat in recommend(lower=0.0).caveats)


REWARDS = ({}, {"best_reward": 5.0}, {"range": (-3.0, 5.0)})


@pytest.mark.parametrize("known", REWARDS, ids=lambda known: "".join(known) or "nothing")
def test_rewards_are_spoken_of_as_rewards_and_get_the_learner_for_the_same_losses(known) -> None:
    losses = {"best_reward": {"lower": -5.0}, "range": {"range": (-5.0, 3.0)}}
    for name in known:
        asked = losses[name]
        for flags in product((False, True), repeat=len(FLAGS)):
            more = dict(zip(FLAGS, flags, strict=True))
            found, same = recommend(**known, **more, reward=True), recommend(**asked, **more)
            assert found.name == same.name
            assert "loss" not in " ".join(found.why + found.caveats)
            assert "reward=" in str(found)
            told = {**found.settings, "lower": -found.settings.get("best_reward", 0.0)}
            told.pop("best_reward", None)
            assert {"lower": 0.0, **same.settings} == {**told, "lower": told["lower"] + 0.0} or (
                told["lower"] == same.settings.get("lower")
            )
    for mdp in (False, True):
        text = str(recommend(reward=True, mdp=mdp, changing=True))
        assert "losses" not in text
        assert "losses" in str(recommend(mdp=mdp, changing=True))  # the control


def test_a_bound_of_the_wrong_sign_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"lower=3.0 .* best_reward=-3.0"):
        recommend(reward=True, lower=3.0)


def test_it_is_readable_where_it_is_shown() -> None:
    found = recommend(lower=0.0)
    assert repr(found) == str(found)
    assert repr(found).startswith("CostSCB(n_arms, lower=0.0)\n  because")
