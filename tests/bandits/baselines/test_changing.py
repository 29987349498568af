"""Baselines for a best arm that changes: what they follow, and who does not."""

from __future__ import annotations

import numpy as np
import pytest

from slow import twin_of
from unbounded import (
    UCB1,
    CostSCB,
    DiscountedThompson,
    DiscountedUCB,
    EpsilonGreedy,
    FixedShare,
    LogThompson,
    RestartingCostSCB,
    SlidingWindowUCB,
    Uniform,
    simulate,
)
from unbounded.adversaries import Replay
from unbounded.bandits.baselines.fixed_share import bound

N, ROUNDS = 4, 8000


MEANS = np.array([[0.1, 0.5, 0.9, 0.9], [0.9, 0.5, 0.9, 0.9]])[np.arange(ROUNDS) * 2 // ROUNDS]


def coins() -> np.ndarray:
    """Losses of which the best one gets worse than the second, half-way: 0 or 1."""
    return np.random.default_rng(3).uniform(size=(ROUNDS, N)) < MEANS


def log_normal() -> np.ndarray:
    """The same means, for positive losses."""
    return MEANS * np.exp(0.5 * np.random.default_rng(4).standard_normal((ROUNDS, N)))


def excess(learner, losses: np.ndarray) -> float:
    """How much more than arm 1 it pays in the second half, in units of uniform play."""
    half = ROUNDS // 2
    result = simulate(learner, Replay(losses), ROUNDS, 2, 0, checkpoints=[half, ROUNDS])
    best = [losses[:t].sum(axis=0).min() for t in (half, ROUNDS)]
    paid = result.regret.mean(axis=0) + best
    later = losses[half:].sum(axis=0)
    return float((paid[1] - paid[0] - later[1]) / (later.mean() - later[1]))


FORGETFUL = [  # with the same learner that does not forget
    (DiscountedUCB(N, half_life=300), UCB1(N), coins),
    (SlidingWindowUCB(N, window=600), UCB1(N), coins),
    (EpsilonGreedy(N, epsilon=0.1, step=0.05), EpsilonGreedy(N, epsilon=0.1), coins),
    (DiscountedThompson(N, half_life=300), LogThompson(N), log_normal),
]


@pytest.mark.parametrize(("learner", "control", "losses"), FORGETFUL)
def test_a_changing_best_arm_is_followed(learner, control, losses):
    assert excess(learner, 1.0 * losses()) < 0.5
    assert excess(control, 1.0 * losses()) > 0.7


@pytest.mark.parametrize("make", [lambda: DiscountedUCB(N, half_life=300), lambda: UCB1(N)])
def test_a_wrong_range_spoils_it(make):
    """Losses of a thousandth of the range that was given look all alike."""
    assert excess(make(), 1e-3 * coins()) > 0.9


def test_logarithms_do_not_see_losses_of_zero():
    assert excess(DiscountedThompson(N, half_life=300), 1.0 * coins()) > 0.8
    assert excess(DiscountedThompson(N, half_life=300), 0.5 + coins()) < 0.6  # the control


@pytest.mark.parametrize("scale", [1e-3, 1e100])
def test_no_range_is_needed(scale):
    assert excess(DiscountedThompson(N, half_life=300), scale * log_normal()) < 0.5
    assert excess(EpsilonGreedy(N, epsilon=0.1, step=0.05), scale * coins()) < 0.5


@pytest.mark.parametrize("window", [1, 5])
def test_what_leaves_the_window_leaves_no_trace(window):
    """After a window of equal losses, it plays as if nothing had been before."""
    learner, fresh = SlidingWindowUCB(3, window=window), SlidingWindowUCB(3, window=window)
    rng = np.random.default_rng(1)
    for _ in range(1000):
        learner.tell(learner.ask(), float(rng.uniform()))
    for one in (learner, fresh):
        for _ in range(2 * window):
            one.tell(one.ask(), 0.25)
    place = learner.spec.packing.place("gains", learner._buffer)
    gains = learner._buffer[place]
    assert gains.sum() == 0.75 * window * 2.0**32


def test_the_largest_window():
    with pytest.raises(ValueError, match=r"window must be at most 2\*\*20, got 1048577"):
        SlidingWindowUCB(2, window=2**20 + 1)


def test_fixed_share_follows_the_best_arm_within_its_bound():
    """Regret against the best sequence of arms; a learner that does not forget exceeds it."""
    n, rounds, phases = 4, 40_000, 8
    best = np.arange(rounds) * phases // rounds % n
    means = np.where(np.arange(n) == best[:, None], 0.02, 0.98)
    losses = 1e9 * (np.random.default_rng(1).uniform(size=(rounds, n)) < means)
    paid = losses[np.arange(rounds), best].sum()

    def tracking(learner) -> float:
        result = simulate(learner, Replay(losses), rounds, 4, 2)
        return (float(result.regret[:, -1].mean()) + losses.sum(axis=0).min() - paid) / 1e9

    limit = bound(n, rounds, rounds // phases, phases - 1)
    assert tracking(FixedShare(n, window=rounds // phases)) < limit
    assert tracking(Uniform(n)) > limit
    assert tracking(CostSCB(n)) > limit


@pytest.mark.parametrize("outliers", [0, 2])
def test_the_scale_of_fixed_share_rises_by_the_largest_loss_per_block(outliers):
    """Step (2) of its proof; the control is that it rises by more than that in all."""
    w, blocks, rng = 20, 30, np.random.default_rng(5)
    learner, scales = FixedShare(3, window=w, outliers=outliers), [0.0]
    for t in range(w * blocks):
        learner.tell(learner.ask(), float(rng.uniform() ** 4 * (1.0 if t // w % 3 == 0 else 1e-3)))
        scales.append(learner.scale)
    rises = np.maximum(np.diff(scales), 0.0).sum()
    assert 2.0 < rises <= blocks


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"window": 1}, "window must be at least 2, got 1"), ({"window": 3, "outliers": 3}, "got 3")],
)
def test_fixed_share_rejects(settings, what):
    with pytest.raises(ValueError, match=what):
        FixedShare(2, **settings)


def test_fixed_share_counts_and_warns_of_losses_below_the_lower_bound():
    learner = FixedShare(2, window=10, lower=1.0, seed=0)
    with pytest.warns(UserWarning, match="below the lower bound, 1"):
        learner.tell(learner.ask(), 0.5)
    learner.tell(learner.ask(), 3.0)
    assert (learner.below, learner.scale) == (1, 2.0)


RESTARTING = [{"every": 2000}, {"detect": "page-hinkley"}, {"detect": "cusum"}]


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_restarts_help_costs_of_any_size(scale):
    for settings in RESTARTING:
        assert excess(RestartingCostSCB(N, **settings), scale * coins()) < 0.25
    assert excess(CostSCB(N), scale * coins()) > 0.5


@pytest.mark.parametrize(("detect", "most"), [("page-hinkley", 0), ("cusum", 2)])
def test_changes_are_found_where_there_are_some(detect, most):
    learner, rng = RestartingCostSCB(2, detect=detect, seed=0), np.random.default_rng(2)
    found = []
    for means in ((0.2, 0.6), (0.9, 0.6)):
        for losses in rng.uniform(size=(3000, 2)) < means:
            choice = learner.ask()
            learner.tell(choice, float(losses[choice.arm]))
        found.append(learner.restarts)
    assert found[0] <= most
    assert found[1] > found[0]


@pytest.mark.filterwarnings("ignore:a loss of")
def test_cusum_agrees_with_the_slow_implementation():
    settings = {"detect": "cusum", "threshold": 0.5, "samples": 8, "lower": -0.5}
    losses = np.random.default_rng(3).uniform(-1.0, 1.0, size=(150, 3))
    losses[75:] *= 16.0
    learner, slow = (
        RestartingCostSCB(3, **settings, seed=1),
        twin_of(RestartingCostSCB)(3, **settings),
    )
    expected = next(slow)
    for row in losses:
        np.testing.assert_allclose(learner.probabilities(), expected, atol=1e-9)
        choice = learner.ask()
        learner.tell(choice, float(row[choice.arm]))
        expected = slow.send((choice.arm, row))
    assert learner.restarts > 1
    assert learner.below > 1


def test_after_a_restart_it_is_as_it_was_at_first():
    """Every number of its state but those that count all rounds; the control is one round less."""
    learner, rng = RestartingCostSCB(3, every=60, detect="cusum", seed=0), np.random.default_rng(1)
    packing = learner.spec.packing

    def state():
        return packing.python.state(learner._buffer.copy())

    first = state()
    for t in range(60):
        assert (t == 0) == (learner.scale == 0.0)
        learner.tell(learner.ask(), float(rng.exponential()))
    later = state()
    assert learner.restarts == 1
    for name in ("e", "low", "high", "plays", "means", "up", "down"):
        np.testing.assert_array_equal(getattr(later, name), getattr(first, name))
    assert later.inner[:3] == first.inner[:3] == (1, 0, 0)
    assert later.inner[4:8] == first.inner[4:8]
    for part in ("L", "picture", "table"):
        np.testing.assert_array_equal(
            getattr(later.inner.arms, part), getattr(first.inner.arms, part)
        )
    assert later.inner.arms.anchor == first.inner.arms.anchor
    np.testing.assert_array_equal(later.inner.arms.law.q, first.inner.arms.law.q)
    np.testing.assert_array_equal(later.inner.ceiling.largest, first.inner.ceiling.largest)
    assert later.inner.ceiling[:4] == first.inner.ceiling[:4]


def test_when_to_restart_must_be_said():
    with pytest.raises(TypeError, match="every or detect is needed"):
        RestartingCostSCB(2)
