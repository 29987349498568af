"""SCB-RL's interface: saving and loading, plans, what is refused."""

import base64
import json

import numpy as np
import pytest

from mdp_play import play, random_losses
from test_scb_rl import LAYERS, MDP, make
from unbounded import worlds
from unbounded.adversaries.mdps import Stochastic
from unbounded.mdps import profiles
from unbounded.mdps.scb_rl import SCBRL
from unbounded.play.simulate_mdp import simulate_mdp


@pytest.mark.parametrize("at", [5, 150, 299])
def test_a_saved_learner_resumes_exactly(at, tmp_path):
    losses = random_losses(LAYERS, 300, seed=29)
    whole, first = make(), make()
    policies, told = play(whole, MDP, losses, seed=30)
    play(first, MDP, losses[:at], seed=30)
    plan = first.ask()
    second = SCBRL.load(first.save(tmp_path / "learner.json"))
    from_file = SCBRL.load(tmp_path / "learner.json")
    assert np.array_equal(second.outstanding.policy[1], plan.policy[1])
    for learner in (first, second, from_file):
        for t in range(at, 300):
            plan = learner.outstanding or learner.ask()
            assert np.array_equal(plan._pi, policies[t])
            learner.tell(plan, *told[t][1:])
        assert np.array_equal(learner._state.head, whole._state.head)
        assert np.array_equal(learner.policy().pi, whole.policy().pi)


def test_what_cannot_be_loaded():
    saved = make().save()
    size = make()._buffer.size
    for change, message in [
        ({"version": 99}, "version"),
        ({"algorithm": "MVP"}, "use MVP.load"),
        ({"format": "x"}, "format"),
        ({"buffer": ""}, "does not fit"),
        ({"buffer": base64.b64encode(np.full(size, np.nan).tobytes()).decode()}, "no policy"),
    ]:
        with pytest.raises(ValueError, match=message):
            SCBRL.load(json.dumps(json.loads(saved) | change))


def test_a_saved_learner_keeps_the_constants_of_its_profile(monkeypatch):
    first = make()
    saved = first.save()
    other = profiles.PRACTICAL._replace(eta_factor=7.0, skip=3.0, bonus="paper")
    monkeypatch.setitem(profiles.PROFILES, "practical", other)
    assert SCBRL.load(saved)._params == first._params
    assert make()._params != first._params


def test_numpy_scalars_can_be_saved():
    learner = SCBRL(
        np.array([2, 3]), np.int64(2), np.int32(100), np.float32(0.25), literal=np.bool_(True),
        early_stop=np.int64(3), skip=np.float64(0.5),
    )  # fmt: skip
    assert SCBRL.load(learner.save()).settings == learner.settings


def test_a_plan_can_be_told_to_a_restored_learner():
    learner = make()
    plan = learner.ask()
    restored = SCBRL.load(learner.save())
    restored.tell(plan, [0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="not outstanding"):
        restored.tell(plan, [0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0])
    learner.tell(plan, [0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0])
    assert np.array_equal(learner._buffer, restored._buffer, equal_nan=True)


def test_more_episodes_than_it_was_made_for_are_remarked_upon():
    mdp = worlds.dirichlet([2], 2, np.random.default_rng(33))
    learner = SCBRL([2], 2, 5, seed=34)
    play(learner, mdp, random_losses(mdp.layers, 5, seed=35))
    with pytest.warns(UserWarning, match="made for 5 episodes"):
        learner.ask()
    with pytest.warns(UserWarning, match="made for 5 episodes"):
        simulate_mdp(learner, mdp, Stochastic(), 6)


def test_errors_change_nothing():
    learner = make()
    plan = learner.ask()
    buffer = learner._buffer.copy()
    good = ([0, 0, 0], [0, 0, 0], [0.0, 0.0, 0.0])
    for k, bad, message in [
        (0, [0, 3, 0], "states must be whole numbers"),
        (0, [0, 0], "shape"),
        (0, [0, 0.5, 0], "whole"),
        (0, [0, np.nan, 0], "whole"),
        (0, [0, np.inf, 0], "whole"),
        (0, ["a", "b", "c"], "whole numbers, not of type"),
        (0, [True, False, True], "whole numbers, not of type"),
        (0, [None, 0, 0], "whole numbers, not of type"),
        (1, [0, 0, 2], "actions must be whole numbers"),
        (2, [0.0, np.nan, 0.0], "losses must be finite"),
        (2, [0.0, 0.0], "losses must have shape"),
        (2, None, "either losses= or rewards="),
    ]:
        arguments = [bad if i == k else x for i, x in enumerate(good)]
        with pytest.raises((ValueError, TypeError), match=message):
            learner.tell(plan, *arguments)
    with pytest.raises(RuntimeError, match="outstanding"):
        learner.ask()
    with pytest.raises(ValueError, match="another learner"):
        make().tell(plan, *good)
    with pytest.raises(TypeError, match="what ask"):
        learner.tell(3, *good)
    assert np.array_equal(learner._buffer, buffer, equal_nan=True)
    learner.tell(plan, *good)
    with pytest.raises(ValueError, match="not outstanding"):
        learner.tell(plan, *good)
    learner.forget(learner.ask())
    assert learner.episodes_told == 1


def test_an_action_is_asked_for_a_state_that_there_is():
    plan = make().ask()
    for h, state, message in [
        (3, 0, r"h must be in 0 .. 2, got 3"),
        (-1, 0, "h must be at least 0"),
        (1, 3, r"layer 1 has states 0 .. 2, got 3"),
        (1, -1, "state must be at least 0"),
        (0, 0.5, "state must be a whole number"),
        (0.0, 0, "h must be a whole number"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            plan.act(h, state)
    assert plan.act(np.int64(2), np.uint8(1)) in (0, 1)
    plan.policy[0][:] = 7.0  # a copy
    assert plan.policy[0].max() <= 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 7}, "episodes must exceed the 7 states"),
        ({"delta": 1.0}, "delta"),
        ({"clip": "none"}, "clip must be one of"),
        ({"profile": "best"}, "profile must be one of"),
        ({"beta_factor": 0.0}, "needs exploration"),
        ({"explorer": "oracle"}, "needs transitions"),
        ({"transitions": [1.0]}, "explorer='oracle'"),
        ({"gamma_factor": -1.0}, "gamma_factor"),
        ({"early_stop": -1}, "early_stop"),
        ({"n_actions": 0}, "n_actions"),
        ({"layers": []}, "at least one layer"),
        ({"explorer": "oracle", "transitions": np.full(26, np.nan)}, "not finite"),
        ({"explorer": "oracle", "transitions": np.zeros(26)}, "transitions of layer 0"),
    ],
)
def test_bad_settings(settings, message):
    arguments = {"layers": [2, 3, 2], "n_actions": 2, "episodes": 100} | settings
    with pytest.raises(ValueError, match=message):
        SCBRL(**arguments)


@pytest.mark.parametrize("name", ["literal", "tight", "share_counts", "allow_no_exploration"])
def test_flags_are_true_or_false(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        make(**{name: "no"})
