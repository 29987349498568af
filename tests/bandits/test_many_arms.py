"""Learners with many arms: the same play however few arms are touched.

The sampler itself is tested in core/simplex/test_arms.py.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import unbounded.jit.interpreter as _interpret
from slow import twin_of
from tiers import first_only
from unbounded import SCB, SCBIX, AdaINF, CostSCB, CostSCBIX, Exp3IX, TsallisINF, simulate
from unbounded.adversaries import Growth, LowerBound, StochasticGap, Switch
from unbounded.core.simplex import lazy as lazy_picture
from unbounded.core.simplex import shannon_arms, signed_arms, tsallis_arms
from unbounded.learners.seeds import replicate_key, root_of

LEARNERS = {
    "SCB": (SCB, {"profile": "paper"}),
    "SCB-range": (SCB, {}),
    "SCB-largest": (SCB, {"profile": "paper", "threshold": "largest"}),
    "SCBIX": (SCBIX, {"profile": "paper"}),
    "SCBIX-range": (SCBIX, {}),
    "CostSCB": (CostSCB, {}),
    "CostSCB-floor": (CostSCB, {"lower": -19.0}),
    "CostSCB-sqrt": (CostSCB, {"lower": -19.0, "outliers": "sqrt", "tune": "scale"}),
    "CostSCB-half-life": (CostSCB, {"half_life": 90}),
    "CostSCB-half-life-scale": (CostSCB, {"half_life": 200, "outliers": 2, "tune": "scale"}),
    "CostSCBIX": (CostSCBIX, {}),
    "CostSCBIX-half-life": (CostSCBIX, {"half_life": 90}),
    "CostSCBIX-floor": (CostSCBIX, {"lower": -19.0, "outliers": 2}),
    "AdaINF": (AdaINF, {}),
    "AdaINF-pure": (AdaINF, {"robust": False}),
    "AdaINF-trim": (AdaINF, {"trim": 2, "exploration": 0.1}),
    "AdaINF-half-life": (AdaINF, {"half_life": 90}),
    "TsallisINF": (TsallisINF, {}),
    "Exp3IX": (Exp3IX, {}),
}


@pytest.fixture(autouse=True)
def lazy(monkeypatch):
    """Lazy from the first arm on; learners begin in Python, where kernels see copies of names."""
    for module in (shannon_arms, signed_arms, tsallis_arms):
        monkeypatch.setattr(module, "MANY_ARMS", 1)
    monkeypatch.setattr(_interpret, "_mirrors", {})


@pytest.fixture(params=LEARNERS)
def make(request):
    cls, options = LEARNERS[request.param]
    return lambda n, seed=0: cls(n, **options, seed=seed)


def losses_with_jumps(rounds: int, n: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    losses = rng.random((rounds, n))
    losses[:, 3 % n] *= 0.4
    losses[: rounds // 2, 5 % n] *= 0.1
    losses[rounds // 2 :, 5 % n] += 1.0
    losses[rounds // 4 :] *= 1.3
    losses[rounds // 3 :] *= -7.0
    return losses


def play(learner: Any, losses: np.ndarray) -> list[int]:
    arms = []
    for row in losses:
        choice = learner.ask()
        arms.append(choice.arm)
        learner.tell(choice, float(row[choice.arm]))
    return arms


def test_a_picture_is_drawn_from_whatever_the_number_of_arms(make):
    learner = make(3)
    assert learner.spec.packing.python.state(learner._buffer).arms.picture is not None


@pytest.mark.parametrize("cls", [TsallisINF, Exp3IX])
def test_changes_since_the_last_anchor_are_counted(cls):
    """Their rounding errors add up; after many of them there is another anchor."""
    learner, counted = cls(80, seed=0), [0.0]
    for _ in range(60):
        learner.tell(learner.ask(), 0.5)
        picture = learner.spec.packing.python.state(learner._buffer).arms.picture
        counted.append(float(picture[lazy_picture.CHANGES]))
    assert all(b in (0.0, a + 1.0) for a, b in pairwise(counted))
    assert max(counted) > 3.0


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("name", LEARNERS)
def test_probabilities_agree_with_the_slow_twin(name, n):
    cls, options = LEARNERS[name]
    learner, slow = cls(n, **options, seed=2), twin_of(cls)(n, **options)
    expected = next(slow)
    for row in losses_with_jumps(300, n):
        np.testing.assert_allclose(learner.probabilities(), expected, rtol=0.0, atol=1e-9)
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
        expected = slow.send((choice.arm, row))


def test_the_probability_of_a_choice_is_that_of_its_arm(make):
    learner = make(90)
    for row in losses_with_jumps(300, 90):
        q = learner.probabilities()
        choice = learner.ask()
        assert choice.probability == q[choice.arm] > 0.0
        learner.tell(choice, float(row[choice.arm]))


@pytest.mark.parametrize(
    "name",
    ["SCB", "SCB-range", "SCB-largest", "SCBIX", "SCBIX-range", "CostSCB", "CostSCBIX", "AdaINF",
     "CostSCB-half-life", "CostSCB-half-life-scale", "AdaINF-half-life"],
)  # fmt: skip
@pytest.mark.parametrize("k", [-900, -7, 1, 900])
def test_powers_of_two_change_nothing(name, k):
    cls, options = LEARNERS[name]
    losses = losses_with_jumps(700, 80)
    plain, scaled = cls(80, **options, seed=1), cls(80, **options, seed=1)
    assert play(plain, losses) == play(scaled, np.ldexp(losses, k))
    assert np.array_equal(plain.probabilities(), scaled.probabilities())
    assert scaled.scale == math.ldexp(plain.scale, k)


@pytest.mark.parametrize("at", [1, 333, 1030])
def test_save_and_load_between_anchors_equals_uninterrupted(make, at):
    losses = losses_with_jumps(1200, 80)
    whole, part = make(80), make(80)
    arms = play(whole, losses)
    first = play(part, losses[:at])
    restored = type(part).load(part.save())
    assert first + play(restored, losses[at:]) == arms
    assert np.array_equal(restored.probabilities(), whole.probabilities())


@pytest.mark.parametrize(
    "adversary", first_only([Switch(scale=3.0, shift=-1.0), StochasticGap(0.3), Growth()])
)
def test_following_a_few_arms_is_the_same_play_and_that_of_ask_and_tell(make, adversary):
    n, rounds, followed = 70, 100, [0, 1, 5]
    points = range(1, rounds + 1)
    settings = {"rounds": rounds, "replicates": 2, "seed": 3, "checkpoints": points}
    every = simulate(make(n), adversary, **settings)
    all_followed = simulate(make(n), adversary, **settings, comparators=range(n))
    few = simulate(make(n), adversary, **settings, comparators=followed, workers=1)
    assert np.array_equal(every.regret, all_followed.regret)
    for name in ("clipped", "threshold"):
        assert np.array_equal(getattr(every, name), getattr(few, name))
    assert np.isnan(few.pseudo_regret).all()
    learner = make(n, seed=few.seed(1))
    params, state = adversary.begin(n, rounds, replicate_key(root_of(3), 1))
    sums, played, seen = np.zeros(3), 0.0, []
    for t in points:
        choice = learner.ask()
        row = np.empty(n)
        type(adversary).fill(params[2:], state, t, -1, row, row)
        row = params[0] * row + params[1]
        sums += row[followed]
        played += row[choice.arm]
        seen += [*row[followed], row[choice.arm]]
        learner.tell(choice, float(row[choice.arm]))
        assert few.regret[1, t - 1] == played - sums.min()
        assert (few.low[1, t - 1], few.high[1, t - 1]) == (min(seen), max(seen))
        assert few.threshold[1, t - 1] == learner.scale


@pytest.mark.parametrize("adversary", [StochasticGap(0.1, 2), Switch(), Growth(), LowerBound()])
def test_entries_are_what_fill_writes(adversary):
    n, rounds = 9, 50
    params, state = adversary.begin(n, rounds, 77)
    row = np.empty(n)
    for t in range(1, rounds + 1):
        type(adversary).fill(params[2:], state, t, -1, row, row)
        entries = [type(adversary).entry(params[2:], state, t, k) for k in range(n)]
        assert row.tolist() == entries


def test_comparators_are_checked():
    learner = SCB(5)
    with pytest.raises(ValueError, match=r"0 \.\. 4"):
        simulate(learner, StochasticGap(), 10, comparators=[5])
    with pytest.raises(ValueError, match="comparators"):
        simulate(learner, StochasticGap(), 10, comparators=[])
    with pytest.raises(TypeError, match="entry"):
        simulate(learner, lambda t, last_arm, q, rng: np.zeros(5), 10, comparators=[0])


def test_any_finite_loss_is_legal(make):
    learner = make(6)
    for size in [0.0, 5e-324, 1e-310, 2.3e-308, 1e-200, 1.0, 1e100, 1.797e308, 1.0, 0.0, 5e-324]:
        for sign in (1.0, -1.0) * 3:
            choice = learner.ask()
            learner.tell(choice, sign * size * [1.0, 0.5, -1.0, 0.0, 0.1, -0.2][choice.arm])
            q = learner.probabilities()
            assert np.isfinite(q).all()
            assert (q > 0.0).all() or not isinstance(learner, SCB | SCBIX)
            assert abs(q.sum() - 1.0) < 1e-12
