"""Baselines for a best arm that changes: what they follow, and who does not."""

from __future__ import annotations

import numpy as np
import pytest

from unbounded import (
    UCB1,
    DiscountedThompson,
    DiscountedUCB,
    EpsilonGreedy,
    LogThompson,
    SlidingWindowUCB,
    simulate,
)
from unbounded.adversaries import Replay

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
