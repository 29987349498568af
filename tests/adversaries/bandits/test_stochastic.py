"""One better arm."""

import numpy as np
import pytest

from loss_helpers import coins, losses_of
from unbounded.adversaries import StochasticGap


@pytest.mark.parametrize(("gap", "best"), [(0.1, 0), (0.5, 2), (0.3, 7)])
def test_losses(gap, best):
    expected = [coins(17, t, 4, best % 4, gap) for t in range(1, 201)]
    assert np.array_equal(losses_of(StochasticGap(gap, best), rounds=200), expected)
    if best == 0:
        assert np.array_equal(losses_of(StochasticGap(), rounds=200), expected)


def test_means():
    means = losses_of(StochasticGap(0.3, best=2), 4, 20_000).mean(axis=0)
    np.testing.assert_allclose(means, [0.5, 0.5, 0.2, 0.5], atol=0.02)


def test_errors():
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        StochasticGap(0.6)
