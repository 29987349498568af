"""Arms that sleep: `ask(available=...)` of learners that charge them what was paid."""

from __future__ import annotations

import numpy as np
import pytest

from bandit_examples import EXAMPLES
from slow import twin_of
from unbounded import SCB, AdaFTRL, AdaINF, CostSCB, CostSCBIX

SLEEPING = [
    "AdaINF", "CostSCB", "CostSCBIX", "Exp3", "Exp3IX", "SCBIX", "TsallisINF", "TsallisINFRV",
]  # fmt: skip
ALL = [one for one in EXAMPLES if one.values[0].spec.name in SLEEPING]


FREE = [one for one in ALL if one.values[0].spec.scale_free]
DELAYED = [one for one in ALL if one.values[0].spec.delayed]


def masks_of(rounds: int, n: int, seed: int = 3) -> np.ndarray:
    """A random set of arms in each round, never empty; now and then all of them, or one."""
    rng = np.random.default_rng(seed)
    masks = rng.uniform(size=(rounds, n)) < rng.choice([0.2, 0.6, 1.0], size=(rounds, 1))
    masks[np.arange(rounds), rng.integers(n, size=rounds)] = True
    return masks


def losses_of(kind: str, rounds: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(12)
    if kind == "in [0, 1]":
        return rng.uniform(size=(rounds, n)) * np.linspace(0.3, 1.0, n)
    losses = rng.normal(size=(rounds, n)) + np.linspace(-0.5, 0.5, n)
    losses[rounds // 3 :] *= 3.7
    return losses


def play(learner, losses, masks):
    """Play with masks; the arms, and the distributions over all and over the available arms."""
    arms, seen = [], []
    for row, mask in zip(losses, masks, strict=True):
        seen.append([learner.probabilities(), learner.probabilities(available=mask)])
        choice = learner.ask(available=mask)
        assert mask[choice.arm]
        assert choice.probability == pytest.approx(seen[-1][1][choice.arm], rel=1e-12)
        arms.append(choice.arm)
        learner.tell(choice, float(row[choice.arm]))
    return arms, np.array(seen)


@pytest.mark.parametrize("example", ALL)
@pytest.mark.parametrize(
    ("kind", "n"), [("in [0, 1]", 5), pytest.param("of both signs", 3, marks=pytest.mark.long)]
)
def test_masked_plays_agree_with_the_slow_implementation(example, kind, n):
    if kind == "of both signs" and example.spec.name != "AdaINF":
        kind = "in [0, 1]"
    losses, masks = losses_of(kind, 200, n), masks_of(200, n)
    learner = example.make(n, seed=4)
    slow = twin_of(example.cls)(n, **example.settings)
    expected = next(slow)
    for t, (row, mask) in enumerate(zip(losses, masks, strict=True)):
        p = learner.probabilities()
        np.testing.assert_allclose(p, expected, rtol=0.0, atol=1e-9, err_msg=f"round {t + 1}")
        choice = learner.ask(available=mask)
        learner.tell(choice, float(row[choice.arm]))
        some = () if mask.all() else (mask,)
        expected = slow.send((choice.arm, row, *some))


@pytest.mark.parametrize("example", [one for one in ALL if "-0" in one.id])
def test_many_arms_and_few_have_the_same_law(example):
    # 200 arms are kept by the lazy samplers; the slow twin knows nothing of these.
    n, rounds = 200, 60
    losses, masks = losses_of("in [0, 1]", rounds, n), masks_of(rounds, n)
    learner, slow = example.make(n, seed=4), twin_of(example.cls)(n, **example.settings)
    expected = next(slow)
    for row, mask in zip(losses, masks, strict=True):
        np.testing.assert_allclose(learner.probabilities(), expected, rtol=0.0, atol=1e-9)
        choice = learner.ask(available=mask)
        learner.tell(choice, float(row[choice.arm]))
        expected = slow.send((choice.arm, row, *(() if mask.all() else (mask,))))


@pytest.mark.parametrize("example", FREE)
@pytest.mark.parametrize("power", [-600, 600])
def test_powers_of_two_change_no_bit(example, power):
    losses, masks = losses_of("in [0, 1]", 120, 5), masks_of(120, 5)
    arms, seen = play(example.make(5, seed=1), losses, masks)
    arms_scaled, seen_scaled = play(example.make(5, seed=1), losses * 2.0**power, masks)
    assert arms == arms_scaled
    assert np.array_equal(seen, seen_scaled)


def test_a_factor_of_three_changes_bits():  # the control
    losses, masks = losses_of("in [0, 1]", 120, 5), masks_of(120, 5)
    _, seen = play(CostSCB(5, seed=1), losses, masks)
    _, tripled = play(CostSCB(5, seed=1), losses * 3.0, masks)
    assert not np.array_equal(seen, tripled)


@pytest.mark.parametrize("example", ALL)
def test_a_mask_of_all_arms_is_no_mask(example):
    losses = losses_of("in [0, 1]", 100, 5)
    learner = example.make(5, seed=1)
    arms, _ = play(learner, losses, np.ones((100, 5), bool))
    assert arms == example.play(plain := example.make(5, seed=1), losses)[0]
    assert np.array_equal(learner.probabilities(), plain.probabilities())


@pytest.mark.parametrize("example", DELAYED)
def test_the_delayed_loss_of_an_arm_that_has_gone_and_after_a_save(example):
    losses, masks = losses_of("in [0, 1]", 60, 5), masks_of(60, 5)
    learner = example.make(5, seed=1)
    play(learner, losses, masks)
    late = learner.ask(available=[0, 1])
    plain = learner.ask()
    gone = [k for k in range(5) if k != late.arm]
    learner.tell(learner.ask(available=gone), 0.5)
    loaded = type(learner).load(learner.save())
    assert loaded.outstanding[late.id].probability == late.probability
    for one in (learner, loaded):
        one.tell(late, 0.75)
        one.tell(plain, 0.25)
    assert np.array_equal(learner.probabilities(), loaded.probabilities())
    assert not np.array_equal(learner.probabilities(), example.make(5, seed=1).probabilities())


def test_a_note_that_no_ask_takes_is_rejected():
    import json

    from unbounded.learners import persistence as documents

    learner = CostSCB(5, seed=0)
    learner.ask(available=[0, 1])
    for note in ([0.0] * 6, [np.nan] * 7, [2.0] * 7, [-1.0] * 7):
        document = json.loads(learner.save())
        (entries,) = document["outstanding"].values()
        entries[0][5] = documents.encoded(np.array(note))
        fields = {k: document[k] for k in document if k not in ("format", "version", "digest")}
        algorithm = fields.pop("algorithm")
        with pytest.raises(ValueError, match="note"):
            CostSCB.load(documents.written(algorithm, fields))


HOSTILE = [
    ([], "at least one arm"), ([False] * 3, "at least one arm"), ([True] * 2, "3 entries"),
    ([True] * 4, "3 entries"), ([0, 0], "once"), ([3], "0 .. 2"), ([-1], "0 .. 2"),
    (["eu"], "names"), ("eu", "names"), (1, "mask"), ([0.0, 1.0, 1.0], "mask"),
    ([True, 2], "mask"), ([[True, False, True]], "mask"), ([[0], [1, 2]], "mask"),
    (np.array(1), "mask"), ([None], "mask"), ({"a": 1}, "names"), ([2**70], "mask"),
    (np.array([], bool), "3 entries|at least one arm"),
]  # fmt: skip


@pytest.mark.parametrize(("available", "said"), HOSTILE)
def test_a_mask_that_makes_no_sense_is_rejected_before_anything_changes(available, said):
    learner = CostSCB(3, seed=0)
    learner.tell(learner.ask(available=[0, 2]), 1.0)
    before = learner.save()
    for call in (learner.ask, learner.probabilities):
        with pytest.raises(ValueError, match=said) as caught:
            call(available=available)
        assert caught.value.argument == "available"
    assert learner.save() == before


def test_one_arm_alone_is_certain():
    learner = CostSCB(3, seed=0)
    for t in range(50):
        choice = learner.ask(available=[t % 3])
        assert (choice.arm, choice.probability) == (t % 3, 1.0)
        learner.tell(choice, 1.0)
    assert CostSCB(1, seed=0).ask(available=[0]).arm == 0


WITHOUT = {"tune": "scale", "implicit": 0.0, "rate": 1.0, "delayed": "adaptive"}


@pytest.mark.parametrize("learner", [SCB(3), AdaFTRL(3), CostSCB(3, **WITHOUT)])
def test_learners_without_a_rule_say_so(learner):
    with pytest.raises(TypeError, match="available"):
        learner.ask(available=[0, 1])


def test_masks_and_plain_asks_may_alternate_between_interpreted_and_compiled_steps(monkeypatch):
    from unbounded import settings

    plays = []
    for modes in (["never"], ["always"], ["never", "always"]):
        learner, arms = CostSCBIX(5, half_life=30, seed=2), []
        rows, masks = losses_of("in [0, 1]", 90, 5), masks_of(90, 5)
        for t, (row, mask) in enumerate(zip(rows, masks, strict=True)):
            monkeypatch.setattr(settings, "jit", modes[t * len(modes) // 90])
            choice = learner.ask(available=None if t % 3 else mask)
            arms.append(choice.arm)
            learner.tell(choice, float(row[choice.arm]))
        plays.append((arms, learner.probabilities().tolist()))
    assert plays[0] == plays[1] == plays[2]


def test_the_center_of_ada_inf_does_not_see_an_offset():
    losses, masks = losses_of("of both signs", 300, 5), masks_of(300, 5)
    arms, seen = play(AdaINF(5, seed=1), losses, masks)
    moved, seen_moved = play(AdaINF(5, seed=1), losses + 1024.0, masks)
    assert arms == moved
    np.testing.assert_allclose(seen, seen_moved, rtol=0.0, atol=1e-6)
