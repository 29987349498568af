"""Losses that double again and again, and means that become their opposites."""

import numpy as np
import pytest

from loss_helpers import assert_losses
from unbounded.adversaries.mdps import GrowthSwitch


def test_losses():
    def formula(doublings, at):
        def losses(c):
            mu = 1.0 - c.mu if c.t > at * c.T else c.mu
            return np.exp2(doublings * c.t / c.T) * (0.5 * mu + 0.5 * c.u)

        return losses

    assert_losses(GrowthSwitch(), formula(20.0, 0.5), rtol=1e-14)
    assert_losses(GrowthSwitch(3.5, at=0.2, scale=-3.0), formula(3.5, 0.2), rtol=1e-14)
    assert_losses(GrowthSwitch(0.0, at=1.0), formula(0.0, 1.0))


def test_errors():
    with pytest.raises(ValueError, match=r"doublings must be in \[0, 1000\], got -1"):
        GrowthSwitch(-1)
    with pytest.raises(ValueError, match=r"at must be in \[0, 1\], got 2"):
        GrowthSwitch(at=2)
    with pytest.raises(ValueError, match="times scale, must be finite"):
        GrowthSwitch(scale=1e305)
