"""Losses of either sign that double again and again."""

import numpy as np
import pytest

from loss_helpers import coins, losses_of
from unbounded.adversaries import Growth


@pytest.mark.parametrize("settings", [{}, {"doublings": 3.0, "gap": 0.1}])
def test_losses(settings):
    rounds, gap = 64, settings.get("gap", 0.3)
    losses = losses_of(Growth(**settings), 4, rounds)
    for t in range(1, rounds + 1):
        size = np.exp2(settings.get("doublings", 20.0) * (t / rounds - 1.0))
        expected = np.where(coins(17, t, 4, 0, gap), size, -size)
        np.testing.assert_allclose(losses[t - 1], expected, rtol=1e-14)


def test_means_and_sizes():
    losses = losses_of(Growth(20.0, gap=0.3), 3, 10_000)
    assert np.abs(losses[0]).max() == pytest.approx(2.0**-20, rel=0.01)
    assert np.abs(losses[-1]).max() == 1.0
    np.testing.assert_allclose(np.sign(losses).mean(axis=0), [-0.6, 0.0, 0.0], atol=0.04)


def test_errors():
    with pytest.raises(ValueError, match=r"doublings must be in \[0, 1000\], got -1.0"):
        Growth(-1.0)
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        Growth(gap=0.6)
