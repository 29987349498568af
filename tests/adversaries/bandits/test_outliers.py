"""Rounds in which every arm has the same huge loss."""

import numpy as np
import pytest
from scipy import stats

from loss_helpers import coins, losses_of, uniforms
from unbounded.adversaries import Outliers


@pytest.mark.parametrize(("count", "rounds"), [(1, 100), (7, 100), (3, 10), (10, 10)])
def test_every_part_of_the_run_has_one(count, rounds):
    losses = losses_of(Outliers(count, 50.0), rounds=rounds)
    at = np.flatnonzero((losses == 50.0).all(axis=1))
    assert at.size == count
    assert (at * count // rounds).tolist() == list(range(count))
    assert set(losses[np.setdiff1d(np.arange(rounds), at)].ravel()) <= {0.0, 1.0}


def test_losses():
    losses = losses_of(Outliers(2, gap=0.3, best=6), n=4, rounds=60)
    drawn = [int(30 * u) + 30 * part for part, u in enumerate(uniforms(17, 0, 2))]
    for t in range(60):
        expected = np.full(4, 1e4) if t in drawn else 1.0 * coins(17, t + 1, 4, 2, 0.3)
        assert np.array_equal(losses[t], expected)


def test_they_come_at_any_time():
    at = [losses_of(Outliers(), rounds=50, key=key).max(axis=1).argmax() for key in range(400)]
    assert stats.kstest(np.array(at) / 50.0, "uniform").pvalue > 1e-3


def test_errors():
    with pytest.raises(ValueError, match="count must be at most the 10 rounds, got 11"):
        Outliers(11).params(4, 10)
    with pytest.raises(ValueError, match="count must be at least 0"):
        Outliers(-1)
