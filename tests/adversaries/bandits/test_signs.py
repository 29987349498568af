"""Signs of the losses."""

import numpy as np
import pytest

from loss_helpers import losses_of, uniforms
from unbounded.adversaries import Signs

LIMITS = [("positive", 0.0, 1.0), ("negative", -1.0, 0.0), ("mixed", -1.0, 1.0)]


@pytest.mark.parametrize(("pattern", "low", "high"), LIMITS)
def test_stay_in_their_range_and_one_arm_is_better(pattern, low, high):
    losses = losses_of(Signs(pattern, gap=0.5, best=2), rounds=5000)
    assert losses.min() >= low
    assert losses.max() <= high
    assert losses.mean(axis=0).argmin() == 2


@pytest.mark.parametrize(("pattern", "low", "high"), LIMITS)
def test_losses(pattern, low, high):
    """A number of the upper half of the range, less the gap for the better arm, spread evenly."""
    losses = losses_of(Signs(pattern), rounds=50)
    means = 0.5 - np.array([0.2, 0.0, 0.0, 0.0])
    for t in range(1, 51):
        expected = low + (high - low) * (0.5 * uniforms(17, t, 4) + 0.5 * means)
        np.testing.assert_allclose(losses[t - 1], expected, rtol=0, atol=1e-15)


def test_alternating_signs_concern_all_arms_at_once():
    losses = losses_of(Signs("alternating"), rounds=1100)
    sign = np.sign(losses)
    assert (sign == sign[:, :1]).all()
    assert (np.diff(sign[:, 0]) != 0).sum() == 10
    assert sign[0, 0] == 1.0
    positive = losses_of(Signs("positive"), rounds=1100)
    np.testing.assert_allclose(losses, np.where(sign < 0.0, positive - 1.0, positive), atol=0)


def test_mixed_is_the_default():
    assert np.array_equal(losses_of(Signs(), rounds=5), losses_of(Signs("mixed"), rounds=5))


def test_errors():
    with pytest.raises(ValueError, match="pattern must be one of"):
        Signs("odd")
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        Signs(gap=0.6)
