"""Bandit learners: losses and rewards, late feedback, random words."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from saved_helpers import buffer_of, changed, with_buffer
from unbounded import SCB, SCBIX, UMABG, AdaHedge, Learner, TsallisINF, Uniform
from unbounded.learners.seeds import bit_generator
from unbounded.learners.spec import ASKED, DRAWN, TOLD, WORDS

BAD_LOSSES = [
    (math.nan, ValueError, "finite"),
    (math.inf, ValueError, "finite"),
    (-math.inf, ValueError, "finite"),
    (np.float64("nan"), ValueError, "finite"),
    (10**400, ValueError, "finite"),
    (True, TypeError, "real number"),
    (np.bool_(False), TypeError, "real number"),
    ("1.0", TypeError, "real number"),
    (None, TypeError, "loss= or reward="),
    ([1.0], TypeError, "real number"),
    (np.array([1.0]), TypeError, "real number"),
    (1j, TypeError, "real number"),
    (Decimal("NaN"), ValueError, "finite"),
    (np.timedelta64(1, "s"), TypeError, "real number"),
]


def state_of(learner: Learner) -> dict:
    return json.loads(learner.save())


@pytest.mark.parametrize(("loss", "error", "words"), BAD_LOSSES)
def test_a_bad_loss_is_an_error_and_changes_nothing(loss, error, words):
    learner = SCB(3, seed=0)
    learner.tell(learner.ask(), 1.0)
    choice = learner.ask()
    before = state_of(learner)
    with pytest.raises(error, match=words):
        learner.tell(choice, loss)
    if loss is not None:
        with pytest.raises(error, match=words):
            learner.tell(choice, reward=loss)
    assert state_of(learner) == before
    learner.tell(choice, 2.0)  # the choice is still good
    assert learner.rounds == 2


def test_numbers_of_every_kind_are_fine():
    learner = SCB(3, seed=0)
    for loss in (1, -2.5, np.float32(0.1), np.int64(7), np.float64(1e-300), 5e-324, 10**300):
        learner.tell(learner.ask(), loss)
    learner.tell(learner.ask(), reward=3)
    plain, exact = SCB(3, seed=0), SCB(3, seed=0)
    for loss in (Decimal("0.1"), Fraction(1, 3), np.array(2.5), np.longdouble(0.5)):
        exact.tell(exact.ask(), loss)
        plain.tell(plain.ask(), float(loss))
    assert exact.save() == plain.save()
    assert learner.rounds == 8


def test_reward_is_minus_loss():
    losses, rewards = SCB(3, seed=0), SCB(3, seed=0)
    for x in np.random.default_rng(0).normal(size=50):
        losses.tell(losses.ask(), loss=x)
        rewards.tell(rewards.ask(), reward=-x)
    assert np.array_equal(losses.probabilities(), rewards.probabilities())
    with pytest.raises(TypeError, match="not both"):
        losses.tell(losses.ask(), 1.0, reward=1.0)
    with pytest.raises(TypeError, match="not losses="):
        losses.tell(losses.ask(), losses=[1.0, 2.0, 3.0])


def test_a_choice_is_an_index():
    choice = SCB(3, seed=0).ask()
    assert ["a", "b", "c"][choice] == "abc"[choice.arm]
    assert np.arange(3)[choice] == choice.arm
    assert f"arm={choice.arm}" in repr(choice)


def test_delayed_feedback_uses_the_probability_of_the_ask():
    """Outstanding asks share q_t; estimates divide by the probability at the ask, and are
    clipped by the threshold at the tell."""
    learner = SCB(4, profile="paper", seed=2)
    learner.tell(learner.ask(), 1.0)  # C = 2
    q = learner.probabilities()
    late = [learner.ask() for _ in range(6)]
    assert len(learner.outstanding) == 6
    assert [c.probability for c in late] == [q[c.arm] for c in late]
    L = np.zeros(4)
    C, clipped = 2.0, 1
    for choice, loss in zip(reversed(late), [0.5, 3.0, -1.0, 0.25, 2.0, -9.0], strict=True):
        L[choice.arm] += (max(-C, min(C, loss)) + C) / choice.probability
        if abs(loss) > C:
            C, clipped = 2 * abs(loss), clipped + 1
        learner.tell(choice, loss)
    assert (learner.scale, learner.clipped, learner.rounds) == (C, clipped, 7)
    theta = L / (2 * C * math.sqrt(8))  # t = tells + 1
    low, high = theta.min() - 4.0, theta.min() - 2.0
    for _ in range(100):
        x = (low + high) / 2
        low, high = (low, x) if (4 / (theta - x) ** 2).sum() > 1 else (x, high)
    beta = 4 / (8 + math.sqrt(32))
    np.testing.assert_allclose(
        learner.probabilities(), (1 - beta) * 4 / (theta - x) ** 2 + beta / 4, atol=1e-12
    )


def test_tickets_survive_save_and_load(tmp_path):
    learner = SCBIX(4, seed=1)
    for loss in (0.1, -3.0, 2.0):
        learner.tell(learner.ask(), loss)
    late = [learner.ask() for _ in range(5)]
    path = tmp_path / "learner.json"
    text = learner.save(path)
    for restored in (SCBIX.load(text), SCBIX.load(path), SCBIX.load(str(path))):
        assert list(restored.outstanding) == [c.id for c in late]
        restored.tell(late[3], 1.0)  # the old ticket itself
        restored.tell(restored.outstanding[late[0].id], 2.0)  # or by its number
    learner.tell(late[3], 1.0)
    learner.tell(late[0], 2.0)
    assert np.array_equal(learner.probabilities(), restored.probabilities())
    assert [learner.ask().arm for _ in range(600)] == [restored.ask().arm for _ in range(600)]
    assert list(tmp_path.iterdir()) == [path]


def test_what_no_saved_bandit_can_have():
    learner = SCB(3, seed=0)
    learner.ask()
    text = learner.save()
    buffer = buffer_of(text)
    for damaged, words in [
        (changed(text, settings={"n_arms": 4}), "fit"),
        (changed(text, settings={"n_arms": 0}), "n_arms"),
        (changed(text, settings={"n_arms": 3.0}), "3.0 is not an integer"),
        *(
            (changed(text, outstanding={"x": [ticket]}), words)
            for ticket, words in [
                ([0, 99, 0.5, 0.5], "99 is not an integer below 3"),
                ([0, True, 0.5, 0.5], "True is not"),
                ([1, 0, 0.5, 0.5], "1 is not an integer below 1"),
                ([0, 0, 0.0, 0.5], "probability 0.0"),
                ([0, 0, 1.5, 1.5], "probability 1.5"),
                ([0, 0, math.nan, 0.5], "probability nan"),
                ([0, 0, 0.5, 0.1], "remembers 0.1"),
                ([0, 0, 0.5, math.inf], "remembers inf"),
            ]
        ),
        (changed(text, outstanding={"x": [[0, 0, 0.5, 0.5]] * 2}), "two tickets of number 0"),
        (changed(text, asked=2), "1 tickets were issued, and not 2"),
        *(
            (with_buffer(text, np.r_[buffer[:slot], value, buffer[slot + 1 :]]), words)
            for slot, value, words in [
                (ASKED, 0.5, "issued"),
                (ASKED, -1.0, "issued"),
                (ASKED, math.nan, "integer"),
                (DRAWN, WORDS + 1, "random words"),
                (DRAWN, 0.0, "random words"),
                (TOLD, 0.0, "numbered"),
                (TOLD + 5, 1.0, "numbered"),
                (SCB.spec.packing.slot("t"), 0.0, "state.t cannot be 0"),
                (SCB.spec.packing.slot("t"), 1.5, "state.t cannot be 1.5"),
                (SCB.spec.packing.slot("t"), 3.0, "more was told"),
                (SCB.spec.packing.slot("window.W"), 2.0, r"window\.W cannot be 2"),
                (SCB.spec.packing.slot("window.low"), math.nan, "nan"),
            ]
        ),
    ]:
        with pytest.raises(ValueError, match=words):
            SCB.load(damaged)


def test_each_ask_has_the_next_word_of_the_generator():
    """The n-th ask uses the n-th word, whatever is told or forgotten, across blocks of words."""
    n = 7  # few enough for plain inversion
    learner, bits = Uniform(n, seed=5), bit_generator(5)
    arms = []
    for i in range(2 * WORDS + 20):
        choice = learner.ask()
        arms.append(choice.arm)
        assert choice.id == i
        if i % 3:
            learner.tell(choice, 1.0)
        elif i % 2:
            learner.forget(choice)
        if i == 300:
            learner = Uniform.load(learner.save())
    words = bits.random_raw(len(arms))
    cumulative = np.cumsum(np.full(n, 1.0 / n))
    numbers = [(int(word) >> 11) * 2.0**-53 for word in words]
    assert arms == [int(np.searchsorted(cumulative, u, side="right")) for u in numbers]


def test_looking_uses_no_word():
    looked, plain = SCB(5, seed=1), SCB(5, seed=1)
    for t in range(300):
        looked.probabilities()
        looked.save()
        a, b = looked.ask(), plain.ask()
        assert a.arm == b.arm
        looked.tell(a, float(t))
        plain.tell(b, float(t))


def test_full_information_learners_want_all_losses():
    learner = AdaHedge(3, seed=0)
    choice = learner.ask()
    before = state_of(learner)
    for arguments, error, words in [
        ({"loss": 1.0}, TypeError, "pass losses=vector"),
        ({"reward": 1.0}, TypeError, "pass losses=vector"),
        ({"losses": [1.0, 2.0, 3.0], "loss": 1.0}, TypeError, "pass losses=vector"),
        ({}, TypeError, "pass losses=vector"),
        ({"losses": [1.0, 2.0]}, ValueError, r"shape \(3,\), one per arm; got \(2,\)"),
        ({"losses": ["a", "b", "c"]}, TypeError, "a real number"),
        ({"losses": [True, False, True]}, TypeError, "a real number"),
        ({"losses": [1.0, math.nan, 2.0]}, ValueError, "finite"),
    ]:
        with pytest.raises(error, match=words):
            learner.tell(choice, **arguments)
    assert state_of(learner) == before
    given = np.array([1, 2, 3])
    learner.tell(choice, losses=given)
    assert learner.rounds == 1
    assert learner.probabilities().argmax() == 0


def test_the_largest_loss_that_an_algorithm_takes():
    learner = UMABG(3, seed=0)
    limit = learner.spec.largest_loss
    choice = learner.ask()
    for loss in (2 * limit, -2 * limit, np.float64(2 * limit)):
        with pytest.raises(ValueError, match="squares its losses and takes at most 1e"):
            learner.tell(choice, loss)
    learner.tell(choice, limit)
    assert learner.rounds == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SCB(0), "n_arms must be at least 1, got 0"),
        (lambda: SCB(2.5), "n_arms must be an integer"),
        (lambda: SCB(True), "n_arms must be an integer"),
        (lambda: SCB(3, clip="rang"), "clip must be one of 'scale', 'range', 'none', got 'rang'"),
        (lambda: SCB(3, rate=0.0), "rate must be above 0"),
        (lambda: SCB(3, rate=math.nan), "rate must be above 0"),
        (lambda: SCBIX(3, delta=1.0), "delta must be above 0 and below 1"),
        (lambda: TsallisINF(3, loss_range=(1.0, 0.0)), "low < high"),
        (lambda: TsallisINF(3, loss_range=5), "two numbers"),
        (lambda: Learner(), "base of the learners"),
    ],
)
def test_bad_settings(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_a_shift_costs_nothing_with_range_clipping():
    """Losses in [1000, 1001] are learned as fast as losses in [0, 1]."""
    shares = {}
    for shift in (0.0, 1000.0):
        learner, rng = SCB(5, clip="range", seed=3), np.random.default_rng(3)
        best = 0
        for _ in range(5000):
            choice = learner.ask()
            best += choice.arm == 2
            learner.tell(choice, shift + (rng.random() < (0.2 if choice.arm == 2 else 0.6)))
        shares[shift] = best / 5000
    assert shares[0.0] > 0.6
    assert abs(shares[0.0] - shares[1000.0]) < 0.02
