"""One arm is better, by too little to be found in time."""

import math

import numpy as np
import pytest

from loss_helpers import coins, losses_of
from unbounded.adversaries import LowerBound


@pytest.mark.parametrize("factor", [0.5, 2.0, 100.0])
def test_losses(factor):
    n, rounds = 4, 300
    gap = min(0.25, factor * math.sqrt(n / rounds))
    for key in (17, 18):
        losses = losses_of(LowerBound(factor), n, rounds, key=key)
        expected = [coins(key, t, n, key % n, gap) for t in range(1, rounds + 1)]
        assert np.array_equal(losses, expected)
    if factor == 0.5:
        assert np.array_equal(losses, losses_of(LowerBound(), n, rounds, key=18))


def test_means():
    losses = losses_of(LowerBound(2.0), 4, 20_000, key=7)
    gap = 2.0 * math.sqrt(4 / 20_000)
    expected = np.where(np.arange(4) == 7 % 4, 0.5 - gap, 0.5)
    np.testing.assert_allclose(losses.mean(axis=0), expected, atol=0.015)


def test_errors():
    with pytest.raises(ValueError, match=r"factor must be at least 0 and finite, got -1.0"):
        LowerBound(-1.0)
