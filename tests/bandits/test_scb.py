"""SCB and SCB-IX: the errata that concern their clipping, their ablations, their exploration."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded import SCB, SCBIX


def test_e1_lazy_and_largest_thresholds_differ():
    """Erratum E1: after 1 and 1.5 the pseudo-code has C = 2, the text has C = 3."""
    lazy, largest = (SCB(1, profile="paper", threshold=rule) for rule in ("lazy", "largest"))
    for learner in (lazy, largest):
        for loss in (1.0, 1.5):
            learner.tell(learner.ask(), loss)
    assert (lazy.scale, largest.scale) == (2.0, 3.0)


def test_e1_counterexample_to_the_bands():
    """Erratum E1: a constant 0.6 after 0.35 never moves C = 0.7, though 0.6 is in (1/2, 1]."""
    learner = SCB(1, profile="paper")
    for loss in [0.35] + [0.6] * 50:
        learner.tell(learner.ask(), loss)
    assert learner.scale == 0.7
    assert learner.clipped == 1


def test_e4_the_first_loss_other_than_zero_only_sets_the_threshold():
    learner = SCB(3, profile="paper", seed=0)
    for _ in range(5):
        learner.tell(learner.ask(), 0.0)
        assert learner.probabilities().tolist() == [1 / 3] * 3
        assert learner.scale == 0.0
    learner.tell(learner.ask(), -7.0)
    assert learner.scale == 14.0
    np.testing.assert_allclose(learner.probabilities(), 1 / 3)


def test_the_threshold_is_never_above_twice_the_largest_loss():
    rng = np.random.default_rng(0)
    for clip, factor in (("scale", 2.0), ("range", 2.0)):
        learner, largest = SCB(4, clip=clip, seed=1), 0.0
        for loss in rng.standard_cauchy(500):
            largest = max(largest, abs(loss))
            learner.tell(learner.ask(), loss)
            assert learner.scale <= factor * largest


@pytest.mark.parametrize("clip", ["scale", "range"])
def test_extreme_jump_of_the_scale(clip):
    """From 5e-324 to 1.8e308 and back: what was learned before the jump weighs nothing."""
    learner = SCB(2, clip=clip, seed=0)
    for _ in range(20):
        learner.tell(learner.ask(), 5e-324)
    for sign in (1.0, -1.0):
        learner.tell(learner.ask(), sign * 1.7976931348623157e308)
    q = learner.probabilities()
    assert np.isfinite(q).all()
    learner.tell(learner.ask(), -5e-324)
    assert np.isfinite(learner.probabilities()).all()
    assert learner.scale == math.inf or learner.scale > 1e308


@pytest.mark.parametrize("cls", [SCB, SCBIX])
@pytest.mark.parametrize("clip", ["scale", "range"])
def test_exploration_floor(cls, clip):
    """q_{t,k} >= beta_t / n in every round that is not uniform already."""
    n, rng = 6, np.random.default_rng(7)
    learner = cls(n, profile="paper", clip=clip, seed=1)
    for t, row in enumerate(rng.normal(size=(300, n)), 2):
        learner.tell(learner.ask(), row[0])
        if cls is SCB:
            beta = n / (2 * n + math.sqrt(n * t))
        else:
            cap = 0.5 if clip == "range" else 1.0
            beta = min(cap, math.sqrt(n * math.log(n) / (n * math.log(n) + t)))
        assert learner.probabilities().min() >= beta / n * (1 - 1e-15)


# -------------------------------------------------------------------------- profiles


@pytest.mark.parametrize(
    ("kind", "practical"),
    [
        (SCB, {"clip": "range", "rate": 2.0, "mixing": 0.5}),
        (SCBIX, {"clip": "range", "mixing": 0.5}),
    ],
)
def test_a_profile_is_its_constants_and_what_is_given_overrides_them(kind, practical):
    paper = {name: {"clip": "scale"}.get(name, 1.0) for name in practical}
    for profile, constants in (("practical", practical), ("paper", paper)):
        made = kind(3, profile=profile).settings
        assert {name: made[name] for name in constants} == constants
        for name, value in practical.items():
            changed = kind(3, profile=profile, **{name: value}).settings
            assert changed == {**made, name: value}
    assert kind(3).settings == kind(3, profile="practical").settings

    def play(**settings):
        learner = kind(3, **settings, seed=0)
        for loss in (5.0, 6.0, 5.5, 9.0, 5.0, 7.0):
            learner.tell(learner.ask(), loss)
        return learner.probabilities().tolist()

    assert play() == play(profile="paper", **practical) != play(profile="paper")
    with pytest.raises(ValueError, match="profile must be one of 'practical', 'paper'"):
        kind(3, profile="theory")
    with pytest.raises(ValueError, match="choose clip='scale' with it"):
        kind(3, threshold="largest")


# ------------------------------------------------------------------------- ablations


@pytest.mark.parametrize("kind", [SCB, SCBIX])
def test_any_finite_loss_is_legal_without_clipping(kind):
    learner = kind(3, clip="none", ablation=True, seed=0)
    for loss in (5e-324, 1.7e308, -1.7e308, 0.0, 1e-300, 3.0):
        learner.tell(learner.ask(), loss)
        q = learner.probabilities()
        assert np.isfinite(q).all()
        assert q.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [5, 100])
def test_without_clipping_nothing_differs_while_nothing_would_be_clipped(n):
    plays = {}
    for clip in ("scale", "none"):
        learner = SCB(n, clip=clip, ablation=True, seed=1)
        learner.tell(learner.ask(), 0.0)
        choice = learner.ask()
        learner.tell(choice, 1.0)  # exceeds C = 0: l+ is 0 or 1
        if clip == "scale":
            reached = learner.scale
        plays[clip] = learner.probabilities()
    assert reached == 2.0
    assert not np.allclose(plays["scale"], plays["none"])
    assert plays["none"].argmin() == choice.arm
    assert np.ptp(plays["scale"]) == 0.0


@pytest.mark.parametrize("kind", [SCB, SCBIX])
def test_what_can_fail_must_be_meant(kind):
    with pytest.raises(ValueError, match="clip='none' can fail"):
        kind(3, clip="none")
    with pytest.raises(ValueError, match="choose mixing above 0, or ablation=True"):
        kind(3, clip="range", mixing=0.0)
    with pytest.raises(ValueError, match=r"mixing must be in \[0, 1\]"):
        kind(3, mixing=1.5)
    with pytest.raises(TypeError, match="ablation must be True or False"):
        kind(3, ablation=1)
    kind(3, clip="range", mixing=0.0, ablation=True)
    kind(3, clip="scale", mixing=0.0)


@pytest.mark.parametrize("kind", [SCB, SCBIX])
@pytest.mark.parametrize("n", [5, 100])
def test_without_mixing_there_is_no_floor(kind, n):
    floor = {}
    for mixing in (0.0, 0.5, 1.0):
        learner = kind(n, clip="range", mixing=mixing, ablation=True, seed=0)
        for _ in range(3000):
            choice = learner.ask()
            learner.tell(choice, 0.0 if choice.arm == 0 else 1.0)
        floor[mixing] = learner.probabilities().min()
    assert floor[0.0] < 0.5 * floor[0.5] < 0.5 * floor[1.0]
