"""Means and their opposites in turn."""

from loss_helpers import assert_losses
from unbounded.adversaries.mdps import Alternating


def test_losses():
    def formula(c):
        return 0.5 * (c.mu if c.t % 2 == 1 else 1.0 - c.mu) + 0.5 * c.u

    assert_losses(Alternating(), formula)
    assert_losses(Alternating(scale=-4.0), formula)
