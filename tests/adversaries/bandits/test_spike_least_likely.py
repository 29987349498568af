"""A spike where the learner hardly looks."""

import numpy as np
import pytest

from loss_helpers import coins, losses_of, uniforms
from unbounded.adversaries import SpikeLeastLikely


@pytest.mark.parametrize("settings", [{}, {"rate": 0.3, "height": 20.0, "gap": 0.1}])
def test_losses(settings):
    losses = losses_of(SpikeLeastLikely(**settings), 3, 500, q=[0.5, 0.1, 0.4])
    for t in range(1, 501):
        expected = 1.0 * coins(17, t, 3, 0, settings.get("gap", 0.4))
        if uniforms(17, t, 4)[3] < settings.get("rate", 0.01):
            expected[1] = settings.get("height", -8.0)
        assert np.array_equal(losses[t - 1], expected)


def test_rate():
    losses = losses_of(SpikeLeastLikely(rate=0.1, height=-50.0), 3, 5000, q=[0.5, 0.1, 0.4])
    assert set(losses[:, [0, 2]].ravel()) == {0.0, 1.0}
    assert (losses[:, 1] == -50.0).sum() == pytest.approx(500, abs=110)


def test_of_equally_rare_arms_the_first():
    losses = losses_of(SpikeLeastLikely(rate=1.0), 3, 5)
    assert (losses == -8.0).tolist() == [[True, False, False]] * 5


def test_errors():
    with pytest.raises(ValueError, match=r"rate must be in \[0, 1\], got 2.0"):
        SpikeLeastLikely(rate=2.0)
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        SpikeLeastLikely(gap=0.6)
