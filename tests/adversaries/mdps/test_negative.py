"""No positive loss."""

from loss_helpers import assert_losses
from unbounded.adversaries.mdps import Negative


def test_losses():
    for scale in (1.0, 2.0**-40, -4.0):
        assert_losses(Negative(scale=scale), lambda c: 0.5 * c.mu + 0.5 * c.u - 1.0)
