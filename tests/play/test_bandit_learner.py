"""Ask and tell: tickets, errors, late feedback, threads, saving."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pytest

from unbounded import AHB, SCB, SCBIX, Learner, TsallisINF

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
    (np.array(1.0), TypeError, "real number"),
    (1j, TypeError, "real number"),
    (Decimal("1.5"), TypeError, "real number"),
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


def test_wrong_tickets():
    learner, other = SCB(3, seed=0), SCB(3, seed=0)
    mine, theirs = learner.ask(), other.ask()
    with pytest.raises(ValueError, match="another learner"):
        learner.tell(theirs, 1.0)
    learner.tell(mine, 1.0)
    with pytest.raises(ValueError, match="told or forgotten"):
        learner.tell(mine, 1.0)
    forgotten = learner.ask()
    learner.forget(forgotten)
    with pytest.raises(ValueError, match="told or forgotten"):
        learner.tell(forgotten, 1.0)
    with pytest.raises(ValueError, match="told or forgotten"):
        learner.forget(forgotten)
    for wrong in (0, "0", None, 1.5):
        with pytest.raises(TypeError, match=r"what ask\(\) returned"):
            learner.tell(wrong, 1.0)
    assert learner.rounds == 1
    assert not learner.outstanding


def test_a_choice_is_an_index():
    choice = SCB(3, seed=0).ask()
    assert ["a", "b", "c"][choice] == "abc"[choice.arm]
    assert np.arange(3)[choice] == choice.arm
    assert f"arm={choice.arm}" in repr(choice)


def test_late_feedback_uses_the_probability_of_the_ask():
    """Outstanding asks share q_t; estimates divide by the probability at the ask, and are
    clipped by the threshold at the tell."""
    learner = SCB(4, seed=2)
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


def test_an_algorithm_without_late_feedback_says_so():
    learner = AHB(3, seed=0)
    choice = learner.ask()
    before = state_of(learner)
    with pytest.raises(RuntimeError, match=r"tell\(\) or forget\(\)"):
        learner.ask()
    assert state_of(learner) == before
    learner.forget(choice)
    learner.ask()


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


def test_what_is_not_a_saved_learner(tmp_path):
    good = SCB(3, seed=0).save()
    document = json.loads(good)
    for change, words in [
        ({"format": "x"}, "format"),
        ({"version": 99}, "version"),
        ({"algorithm": "AHB"}, "use AHB.load"),
        ({"buffer": "AAAA"}, "not a saved SCB"),
        ({"settings": {"n_arms": 4}}, "fit"),
        ({"settings": {"n_arms": 0}}, "n_arms"),
        ({"settings": {"nonsense": 1}}, "nonsense"),
        ({"outstanding": [[0, 99, 0.5, 0.5]]}, "arm 99"),
        ({"generator": {}}, "state"),
    ]:
        with pytest.raises(ValueError, match=words):
            SCB.load(json.dumps(document | change))
    with pytest.raises(ValueError, match="not a saved SCB"):
        SCB.load(good[: len(good) // 2])
    with pytest.raises(FileNotFoundError):
        SCB.load(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SCB(0), "n_arms must be at least 1, got 0"),
        (lambda: SCB(2.5), "n_arms must be a whole number"),
        (lambda: SCB(True), "n_arms must be a whole number"),
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


def test_threads_may_share_a_learner():
    """Calls are carried out one at a time: no ticket is lost, doubled or mixed up."""
    learner = SCB(8, seed=0)
    rounds, workers = 400, 8
    start = threading.Barrier(workers)

    def work(_: int) -> list[int]:
        start.wait()
        ids = []
        for i in range(rounds):
            choice = learner.ask()
            ids.append(choice.id)
            if i % 10 == 0:
                learner.forget(choice)
            else:
                learner.tell(choice, float(choice.arm))
        return ids

    with ThreadPoolExecutor(workers) as pool:
        ids = [i for part in pool.map(work, range(workers)) for i in part]
    assert sorted(ids) == list(range(rounds * workers))
    assert learner.rounds == workers * rounds * 9 // 10
    assert not learner.outstanding
    assert learner.probabilities().sum() == pytest.approx(1.0)
    assert learner.probabilities().argmax() == 0


def test_the_choices_are_independent_of_a_generator_with_the_same_seed():
    """An environment seeded like the learner must not be correlated with it."""
    learner, rng = SCB(2, seed=3), np.random.default_rng(3)
    arms = np.array([learner.ask().arm for _ in range(4000)])
    assert abs(np.corrcoef(arms, rng.random(4000))[0, 1]) < 5 / math.sqrt(4000)


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
