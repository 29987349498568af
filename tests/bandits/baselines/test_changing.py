"""Baselines for a best arm that changes: what they follow, and who does not."""

from __future__ import annotations

import numpy as np
import pytest

from unbounded import UCB1, DiscountedUCB, SlidingWindowUCB, simulate
from unbounded.adversaries import Replay

N, ROUNDS = 4, 8000


def coins(scale: float = 1.0) -> np.ndarray:
    """Coins of which the best one gets worse than the second, half-way."""
    means = np.array([[0.1, 0.5, 0.9, 0.9], [0.9, 0.5, 0.9, 0.9]])[np.arange(ROUNDS) * 2 // ROUNDS]
    return scale * (np.random.default_rng(3).uniform(size=(ROUNDS, N)) < means)


def excess(learner, scale: float = 1.0) -> float:
    """How much more than arm 1 it pays in the second half, in units of uniform play."""
    losses, half = coins(scale), ROUNDS // 2
    result = simulate(learner, Replay(losses), ROUNDS, 2, 0, checkpoints=[half, ROUNDS])
    best = [losses[:t].sum(axis=0).min() for t in (half, ROUNDS)]
    paid = result.regret.mean(axis=0) + best
    later = losses[half:].sum(axis=0)
    return float((paid[1] - paid[0] - later[1]) / (later.mean() - later[1]))


@pytest.mark.parametrize(
    "learner", [DiscountedUCB(N, half_life=300), SlidingWindowUCB(N, window=600)]
)
def test_a_changing_best_arm_is_followed(learner):
    assert excess(learner) < 0.5


def test_without_forgetting_it_is_not():
    """The control."""
    assert excess(UCB1(N)) > 0.8


def test_a_wrong_range_spoils_it():
    """Losses of a thousandth of the range that was given look all alike."""
    assert excess(DiscountedUCB(N, half_life=300), scale=1e-3) > 0.9


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
