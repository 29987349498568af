"""The best arm changes."""

import numpy as np
import pytest

from loss_helpers import coins, losses_of
from unbounded.adversaries import Switch


@pytest.mark.parametrize(("gap", "at"), [(0.1, 0.5), (0.15, 0.2), (0.05, 0.0), (0.1, 1.0)])
def test_losses(gap, at):
    for key in range(17, 37):  # enough for the coins of the last round before to show
        expected = [
            coins(key, t, 4, 1, 3.0 * gap) if t > at * 20 else coins(key, t, 4, 0, gap)
            for t in range(1, 21)
        ]
        assert np.array_equal(losses_of(Switch(gap, at), rounds=20, key=key), expected)
        if at == 0.5:
            assert np.array_equal(losses_of(Switch(), rounds=20, key=key), expected)


def test_means():
    losses = losses_of(Switch(0.15, at=0.25), 3, 40_000)
    np.testing.assert_allclose(losses[:10_000].mean(axis=0), [0.35, 0.5, 0.5], atol=0.03)
    np.testing.assert_allclose(losses[10_000:].mean(axis=0), [0.5, 0.05, 0.5], atol=0.02)


def test_errors():
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.166667\], got 0.2"):
        Switch(0.2)
    with pytest.raises(ValueError, match=r"at must be in \[0, 1\], got 2.0"):
        Switch(at=2.0)
