"""PerContext: formulas, units, wrong arguments, saving, and how finely it splits."""

from __future__ import annotations

import json
import sys
import warnings
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from slow import per_context as slow
from unbounded import SCB, SCBIX, AdaINF, CostSCB, CostSCBIX, Exp3, PerContext
from unbounded.advice.per_context import Mixture
from unbounded.learners import persistence

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
try:
    import contexts
finally:
    del sys.path[0]  # `durable` is a package of tests, and a benchmark

pytestmark = pytest.mark.filterwarnings("ignore::unbounded.ScaleWarning")
FACTORS = ["region", "tier"]
MADE = [AdaINF(4, seed=0), AdaINF(4, half_life=50, seed=0), CostSCB(4, seed=0),
        CostSCB(4, half_life=50, seed=0), CostSCBIX(4, seed=0), SCB(4, seed=0),
        SCBIX(4, seed=0)]  # fmt: skip


def request(rng: np.random.Generator) -> dict[str, object]:
    return {"region": ["eu", "us", None][rng.integers(3)], "tier": int(rng.integers(2))}


def test_agrees_with_the_formulas():
    rng = np.random.default_rng(0)
    learner = PerContext(CostSCB(4, tune="scale", implicit=0.0), FACTORS, seed=1)
    twin = slow.play(4, 4)
    next(twin)
    for _ in range(200):
        context = request(rng)
        expected = twin.send([tuple(context[f] for f in split) for split in learner.splits])
        choice = learner.ask(context)
        assert choice.probability == pytest.approx(expected[choice.arm], abs=1e-9)
        loss = float(rng.exponential() * (1 + choice.arm))
        learner.tell(choice, loss)
        twin.send((choice.arm, loss))


@pytest.mark.parametrize("made", MADE, ids=repr)
@pytest.mark.parametrize("exponent", [-600, 600])
def test_powers_of_two_change_nothing(made, exponent):
    rng = np.random.default_rng(5)
    learners = [PerContext(made, FACTORS, seed=2) for _ in range(2)]
    for _ in range(150):
        context = request(rng)
        first, second = (learner.ask(context) for learner in learners)
        assert (first.arm, first.probability) == (second.arm, second.probability)
        loss = float(rng.exponential())
        learners[0].tell(first, loss)
        learners[1].tell(second, loss * 2.0**exponent)
    assert learners[0].weights() == learners[1].weights()


def test_losses_of_other_kinds_count_half():
    mixture = Mixture(2, 1.0)
    mixture.kinds[:] = 1.0, 2.0
    alone = mixture.weights(("us",))
    for loss in (2.0, 1.0, 0.0, 0.5):  # below the mean so far: the first split knows the good arm
        mixture.learn(("eu",), loss, np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0.5)
    here, there, fresh = (mixture.weights(kind) for kind in (("eu",), ("us",), None))
    assert here[0] > there[0] > alone[0]
    assert there.tolist() == fresh.tolist()
    mixture.learn(("us",), 4.0, np.array([1.0, 0.0]), np.array([0.5, 0.5]), 0.5)
    assert mixture.weights(("us",))[0] < mixture.weights(("eu",))[0]


def test_a_half_life_in_time_or_none_at_all_is_a_value_error():
    for half_life in ("auto", timedelta(hours=1)):
        with pytest.raises(ValueError, match="half_life"):
            PerContext(AdaINF(2, half_life=half_life), FACTORS)


def test_a_single_split_is_one_learner_per_kind():
    rng, paired = np.random.default_rng(3), PerContext(AdaINF(3), FACTORS, splits=[FACTORS], seed=0)
    alone = {}
    for _ in range(300):
        context = request(rng)
        choice = paired.ask(context)
        other = alone.setdefault(tuple(context.values()), AdaINF(3, seed=0))
        np.testing.assert_allclose(other.probabilities()[choice.arm], choice.probability)
        ticket = other.ask()  # made to play the same arm
        _, _, _, number = other._records[ticket.id]
        other._records[number] = (choice.arm, choice.probability, choice.probability, number)
        loss = float(rng.normal()) + choice.arm
        paired.tell(choice, loss)
        other.tell(ticket, loss)
    assert paired.weights() == {("region", "tier"): 1.0}


def test_any_finite_loss_is_legal():
    learner = PerContext(AdaINF(2), key=lambda c: c, seed=0)
    for i, loss in enumerate((5e-324, -1.7e308, 1.7e308, 0.0, 1e-300, 1.7e308, 3.0) * 5):
        learner.tell(learner.ask(i % 2), loss)
    assert np.isfinite(learner.probabilities(0)).all()
    assert sum(learner.weights().values()) == pytest.approx(1.0)


def test_a_quiet_service_is_asked_on_after_hundreds_of_half_lives():
    learner = PerContext(AdaINF(1, half_life=1), FACTORS, seed=0)
    for t in range(2500):  # C^2 underflows after 540 half-lives, C after 1,100
        context = {"region": "eu", "tier": t % 2}
        learner.tell(learner.ask(context), float(t == 3))
    assert sum(learner.weights().values()) == pytest.approx(1.0)
    assert PerContext.load(learner.save()).weights() == learner.weights()


def test_the_mean_of_the_largest_losses_of_both_signs_is_finite():
    learner = PerContext(AdaINF(1, half_life=1), FACTORS, seed=0)
    for t in range(20):
        learner.tell(learner.ask({"region": "eu", "tier": t % 2}), [1.7e308, -1.7e308][t % 2])
    assert sum(learner.weights().values()) == pytest.approx(1.0)


def test_a_warning_comes_once_and_after_every_learner_has_learned():
    learner = PerContext(CostSCB(2), FACTORS, seed=0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for tier in range(4):
            learner.tell(learner.ask({"region": "eu", "tier": tier}), -1.0)
    assert ["-1" in str(one.message) for one in heard] == [True]
    learner = PerContext(CostSCB(2), FACTORS, seed=0)
    choice = learner.ask({"region": "eu", "tier": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            learner.tell(choice, -1.0)
    assert (learner.rounds, learner.outstanding) == (1, [])


def test_masks_are_kept_by_every_split():
    learner, rng = PerContext(CostSCB(4), FACTORS, seed=0), np.random.default_rng(0)
    for _ in range(100):
        context, awake = request(rng), [int(rng.integers(4)), 3]
        choice = learner.ask(context, available=sorted(set(awake)))
        assert choice.arm in awake
        learner.tell(choice, 1.0 + choice.arm)


@pytest.mark.parametrize("made", MADE, ids=repr)
def test_saved_in_the_middle_it_plays_on_as_if_it_had_not_been(made):
    rng, learner, waiting = np.random.default_rng(1), PerContext(made, FACTORS, seed=4), []
    for t in range(80):
        waiting.append(learner.ask(request(rng)))
        if t % 3:
            learner.tell(waiting.pop(int(rng.integers(len(waiting)))), float(rng.exponential()))
    copy = PerContext.load(learner.save())
    assert (copy.rounds, copy.outstanding) == (learner.rounds, learner.outstanding)
    for ticket in waiting:
        learner.tell(ticket, 0.5)
        copy.tell(ticket, 0.5)
    assert copy.save() == learner.save()
    for _ in range(20):
        context = request(rng)
        assert copy.ask(context).arm == learner.ask(context).arm


def test_a_key_is_code_and_must_be_passed_again():
    learner = PerContext(AdaINF(2), key=lambda c: c["user"], seed=0)
    learner.ask({"user": "ann"})
    with pytest.raises(ValueError, match="key="):
        PerContext.load(learner.save())
    assert PerContext.load(learner.save(), key=lambda c: c["user"]).splits == ((), ("key",))


def test_a_damaged_file_is_a_value_error():
    text = PerContext(AdaINF(2), FACTORS, seed=0).save()
    for wrong in (text[:-40], text.replace("region", "tier"), "{}", text.replace("AdaINF", "SCB")):
        with pytest.raises(ValueError, match="not a saved PerContext"):
            PerContext.load(wrong)


def test_a_forged_file_is_a_value_error():
    learner = PerContext(AdaINF(2), FACTORS, seed=0)
    for _ in range(2):
        learner.ask({"region": "eu", "tier": 0})
    learner.tell(learner.ask({"region": "eu", "tier": 0}), 1.0)
    learner.tell(learner.ask({"region": "eu", "tier": 0}), 2.0)

    def loaded(**forged):
        fields = persistence.read(learner.save(), "PerContext")
        del fields["format"], fields["version"], fields["algorithm"]
        return PerContext.load(persistence.written("PerContext", fields | forged))

    fields = json.loads(learner.save())
    (first, second), (kinds, L, Z, N, C, *rest) = fields["outstanding"], fields["mixture"]
    assert 0.5 <= C < 1.0
    same = loaded(outstanding=[first, second], mixture=[kinds, L, Z, N, C, *rest])
    assert same.save() == learner.save()  # the control
    split, kind, text, means = fields["cells"][0]
    for forged in (
        {"outstanding": [first, [second[0], *first[1:]]]},  # one ticket for both
        {"mixture": [kinds, L, Z, N, 1e-300, *rest]},  # C^2 would underflow
        {"mixture": [kinds, L, [-1.0], N, C, *rest]},
        {"mixture": [kinds * 2, L * 2, Z * 2, N * 2, C, *rest]},  # one kind twice
        {"cells": [[split, kind, text, means[:1]], *fields["cells"][1:]]},
    ):
        with pytest.raises(ValueError, match="not a saved PerContext"):
            loaded(**forged)


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ((Exp3(3), FACTORS), {}), ((3, FACTORS), {}), ((AdaINF(3),), {}), ((AdaINF(3), []), {}),
        ((AdaINF(3), "region"), {}), ((AdaINF(3), ["a", "a"]), {}),
        ((AdaINF(3), list("abcde")), {}),
        ((AdaINF(3), FACTORS), {"splits": []}), ((AdaINF(3), FACTORS), {"splits": [["other"]]}),
        ((AdaINF(3), FACTORS), {"splits": ["region"]}),
        ((AdaINF(3), FACTORS), {"splits": [[], []]}),
        ((AdaINF(3),), {"key": ["region"]}),
    ],
)  # fmt: skip
def test_wrong_settings_raise(arguments, settings):
    with pytest.raises((TypeError, ValueError)) as caught:
        PerContext(*arguments, **settings)
    assert caught.value.argument in ("learner", "factors", "key", "splits")


@pytest.mark.parametrize(
    "context", [None, "eu", {}, {"region": "eu"}, {"region": [], "tier": 1},
                {"region": float("nan"), "tier": 1}],
)  # fmt: skip
def test_wrong_contexts_and_losses_raise_before_anything_changes(context):
    learner = PerContext(CostSCB(3), FACTORS, seed=0)
    choice = learner.ask({"region": "eu", "tier": 1})
    before = learner.save()
    with pytest.raises((TypeError, ValueError)):
        learner.ask(context)
    with pytest.raises(ValueError, match="available"):
        learner.ask({"region": "new", "tier": 1}, available=[])
    with pytest.raises((TypeError, ValueError)):
        learner.tell(choice, float("nan"))
    with pytest.raises((TypeError, ValueError)):
        learner.tell(choice)
    assert learner.save() == before
    learner.forget(choice)
    with pytest.raises(ValueError, match="not outstanding"):
        learner.tell(choice, 1.0)


# ------------------------------------------------------------------ how finely to split


@pytest.mark.long
@pytest.mark.parametrize("case", contexts.BEST)
def test_it_pays_nearly_what_the_best_split_pays(case):
    """Six services, three regions, two tiers: what is paid is within 3% of the best split, and
    regret within 30% of it. The worst split fails both."""
    rounds, seeds = 10_000, 20
    found = contexts.compared(
        lambda seed: AdaINF(contexts.SERVICES, seed=seed), case, rounds, seeds
    )
    ours = found.pop("PerContext").mean()
    best, worst = (f(regret.mean() for regret in found.values()) for f in (min, max))
    least = rounds * contexts.MEDIANS.min()
    assert least + ours < 1.03 * (least + best)
    assert ours < 1.3 * best
    assert worst > 1.3 * best
    assert least + worst > 1.03 * (least + best)


def test_it_finds_the_factor_that_matters():
    learner, rng = PerContext(AdaINF(4), FACTORS, seed=0), np.random.default_rng(0)
    best = {"eu": 0, "us": 1, None: 3}
    for _ in range(2500):
        context = request(rng)
        choice = learner.ask(context)
        loss = float(rng.exponential()) * (0.5 if choice.arm == best[context["region"]] else 1.5)
        learner.tell(choice, loss)
    weights = learner.weights()
    assert weights["region",] > 0.8
    assert learner.probabilities({"region": "us", "tier": 7}).argmax() == 1  # never seen
