"""What must hold for every algorithm; a new file in ``unbounded/bandits`` is tested as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandit_examples import EXAMPLES, Example
from tiers import chosen, first_only, tiered
from unbounded import simulate
from unbounded.adversaries import SpikeLeastLikely, StochasticGap
from unbounded.bounds import bound_of
from unbounded.learners.seeds import replicate_key, root_of
from unbounded.simulation.ledger import (
    EXPECTED,
    PLAYED,
    UNIT,
    new_book,
    tally,
    tally_expected,
    tally_played,
)
from unbounded.testing import check_learner

ROUNDS = 300
SCALE_FREE = chosen(tiered(EXAMPLES), lambda example: example.spec.scale_free)
NOT_SCALE_FREE = chosen(tiered(EXAMPLES), lambda example: not example.spec.scale_free)


def some_losses(n: int = 5, rounds: int = ROUNDS, seed: int = 7) -> np.ndarray:
    """Losses of both signs with a jump of the scale and one better arm."""
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=(rounds, n))
    losses[:, 1] -= 0.7
    losses[rounds // 3 :] *= 3.7
    return losses


def test_every_example_keeps_the_contract(every_example):
    check_learner(every_example.cls, **every_example.settings)


@pytest.mark.parametrize(
    "example", chosen(tiered(EXAMPLES), lambda example: "loss_range" in example.make().settings)
)
def test_losses_outside_the_range_are_counted(example):
    learner = example.cls(3, **example.settings | {"loss_range": (0.0, 8.0)})
    for loss, outside in ((-1.0, 1), (0.0, 1), (8.0, 1), (8.5, 2)):
        learner.tell(learner.ask(), loss)
        assert learner.clipped == outside


@pytest.mark.parametrize(
    ("adversary", "n"),
    [
        (StochasticGap(scale=3.0), 3), (SpikeLeastLikely(), 70),
        pytest.param(StochasticGap(scale=3.0), 70, marks=pytest.mark.long),
        pytest.param(SpikeLeastLikely(), 3, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_a_replicate_is_repeated_by_ask_and_tell_bit_for_bit(example, adversary, n):
    rounds = 60
    result = simulate(
        example.make(n), adversary, rounds, replicates=2, seed=5, checkpoints=range(1, rounds + 1)
    )
    learner = example.make(n, seed=result.seed(1))
    params, state = adversary.begin(n, rounds, replicate_key(root_of(5), 1))
    book, cumulative = new_book(), np.zeros(n)
    row, arm = np.empty(n), -1
    for t in range(1, rounds + 1):
        q = learner.probabilities()
        type(adversary).fill(params[2:], state, t, arm, q, row)
        losses = params[0] * row + params[1]
        choice = learner.ask()
        arm = choice.arm
        tally(book, cumulative, losses[None])
        tally_expected(book, q, losses)
        tally_played(book, losses[arm])
        example.tell(learner, choice, losses)
        best, unit = cumulative.min(), book[UNIT]
        assert (book[PLAYED] - best) / unit == result.regret[1, t - 1]
        assert (2.0 * book[EXPECTED] - best) / unit == result.pseudo_regret[1, t - 1]
        assert learner.scale == result.threshold[1, t - 1]
        assert learner.clipped == result.clipped[1, t - 1]


def test_blocks_and_workers_do_not_matter(example):
    learner, adversary = example.make(), SpikeLeastLikely()
    whole = simulate(learner, adversary, 3000, 3, seed=1, checkpoints=[3000], workers=1)
    parts = simulate(learner, adversary, 3000, 3, seed=1, checkpoints=[7, 1234, 3000], workers=2)
    assert np.array_equal(whole.regret[:, -1], parts.regret[:, -1])
    assert np.array_equal(whole.pseudo_regret[:, -1], parts.pseudo_regret[:, -1])
    assert np.array_equal(whole.threshold[:, -1], parts.threshold[:, -1])


def test_save_and_load_in_the_middle_equals_uninterrupted(example):
    losses = some_losses()
    whole = example.play(example.make(), losses)
    for at in (0, 1, 100, 257):
        learner = example.make()
        arms, qs = example.play(learner, losses[:at])
        restored = type(learner).load(learner.save())
        more_arms, more_qs = example.play(restored, losses[at:])
        assert arms + more_arms == whole[0], at
        assert np.array_equal(np.concatenate([qs[:-1], more_qs]), whole[1]), at
        assert restored.rounds == ROUNDS


@pytest.mark.parametrize("example", SCALE_FREE)
def test_powers_of_two_change_nothing_where_scale_freeness_is_claimed(example):
    losses = some_losses()
    losses[:20] = np.where(np.arange(20)[:, None] < 5, 0.0, losses[:20])  # an all-zero start
    arms, qs = example.play(example.make(), losses)
    for k in (-900, -301, -7, 1, 64, 900):
        scaled_arms, scaled_qs = example.play(example.make(), np.ldexp(losses, k))
        assert arms == scaled_arms, k
        assert np.array_equal(qs, scaled_qs), k


# They square losses, or take means of them as they are: below 1e-290 or so they round.
ROUNDS_TINY_LOSSES = {"AdaFTRL", "AdaHedge", "EpsilonGreedy", "SOLOFTRL", "UMABNN"}


@pytest.mark.parametrize("n", first_only([5, 150]))
@pytest.mark.parametrize("example", SCALE_FREE)
def test_powers_of_two_change_nothing_among_the_least_floats_either(example, n):
    """Losses that are a few times 5e-324, and the same losses times 2^k."""
    rng = np.random.default_rng(8)
    losses = 5e-324 * np.round(40.0 * rng.standard_normal((90, n)))
    losses[60:] = np.ldexp(losses[60:], 200)  # from the least ones to others that are small
    losses[75:, : n // 2] = np.ldexp(losses[75:, : n // 2], -150)
    arms, qs = example.play(example.make(n), losses)
    for k in (7, 1000, 1800):
        large = np.ldexp(losses, k)
        assert np.array_equal(np.ldexp(large, -k), losses)
        scaled_arms, scaled_qs = example.play(example.make(n), large)
        same = arms == scaled_arms and np.array_equal(qs, scaled_qs)
        rounds = example.spec.name in ROUNDS_TINY_LOSSES
        assert same or rounds, f"k = {k}: make it exact, or name it in ROUNDS_TINY_LOSSES"


@pytest.mark.parametrize(
    "example", chosen(EXAMPLES, lambda example: example.spec.name in ROUNDS_TINY_LOSSES)
)
def test_who_rounds_tiny_losses(example):
    """The control: those that are excused above need it."""
    losses = 5e-324 * np.round(3.0 * np.random.default_rng(8).standard_normal((90, 5)))
    _, qs = example.play(example.make(), losses)
    _, scaled_qs = example.play(example.make(), np.ldexp(losses, 900))
    assert not np.array_equal(qs, scaled_qs)


@pytest.mark.parametrize("example", NOT_SCALE_FREE)
def test_scale_matters_where_scale_freeness_is_not_claimed(example):
    losses = 0.5 + 0.1 * some_losses()
    _, qs = example.play(example.make(), losses)
    _, scaled_qs = example.play(example.make(), np.ldexp(losses, -10))
    assert not np.allclose(qs, scaled_qs, atol=1e-3)


def test_shifts_change_nothing_exactly_where_shift_freeness_is_claimed(example):
    # Losses that are multiples of 2^-20 stay exact when 2^10 is added.
    losses = np.round(some_losses(rounds=150) * 2**20) / 2**20
    _, qs = example.play(example.make(), losses)
    _, shifted_qs = example.play(example.make(), losses + 1024.0)
    free = example.spec.translation_invariant or example.make().settings.get("clip") == "range"
    assert np.allclose(qs, shifted_qs, atol=1e-6) == free


def test_one_arm(example):
    learner = example.make(1)
    for loss in (0.0, 3.0, -1e200 if example.spec.largest_loss > 1e200 else -1e100):
        choice = learner.ask()
        assert (choice.arm, choice.probability) == (0, 1.0)
        example.tell(learner, choice, np.array([loss]))
    assert learner.probabilities().tolist() == [1.0]


def test_any_finite_loss_is_legal(example):
    limit = min(example.spec.largest_loss, 1.797e308)
    sizes = [0.0, 5e-324, 1e-310, 2.3e-308, 1e-200, 1.0, 1e100, limit, 1.0, 0.0, 5e-324]
    learner = example.make(4)
    for size in sizes:
        for sign in (1.0, -1.0):
            for _ in range(3):
                choice = learner.ask()
                losses = sign * size * np.array([1.0, 0.5, -1.0, 0.0])
                example.tell(learner, choice, losses)
                q = learner.probabilities()
                assert np.isfinite(q).all()
                assert (q >= 0.0).all()
                assert abs(q.sum() - 1.0) < 1e-12


def test_the_simulator_at_the_ends_of_float64(example):
    scales = [scale for scale in (1e-300, 1.0, 1.7e308) if scale <= example.spec.largest_loss]
    assert len(scales) >= 2
    for scale in scales:
        adversary = StochasticGap(0.4, scale=scale)
        result = simulate(example.make(), adversary, 2000, 2, seed=0)
        relative = result.relative_regret("scale")
        assert np.isfinite(relative).all()
        assert (np.abs(relative[:, -1]) <= 2000).all()
        assert (result.largest_loss[:, -1] == scale).all()


def bound(example: Example) -> Any:
    return bound_of(example.spec.name, example.settings)


@pytest.mark.parametrize("example", chosen(tiered(EXAMPLES), bound))
def test_regret_is_below_the_bound_of_these_settings(example):
    """For as many rounds as it was told; tests with controls are in test_published_bounds.py."""
    claimed = bound(example)
    n, rounds, replicates, delta = 5, claimed.rounds or 4000, 40, 0.05
    for adversary in (StochasticGap(), StochasticGap(0.02)):
        result = simulate(example.make(n), adversary, rounds, replicates, seed=2)
        unit = "scale" if claimed.unit == "scale" else "range"  # what is told is the range
        regret = result.relative_regret(unit, pseudo=not claimed.with_probability)[:, -1]
        if claimed.with_probability:  # 8 of 40 would refute P(exceed) <= 0.05 at the level 0.001
            assert (regret > claimed.of(n, rounds, delta)).sum() < 8
        else:
            assert regret.mean() <= claimed.of(n, rounds, delta)
