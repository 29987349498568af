"""Half mean, half noise."""

from loss_helpers import assert_losses
from unbounded.adversaries.mdps import Stochastic


def test_losses():
    for scale in (1.0, 2.0**-40, -4.0):
        assert_losses(Stochastic(scale=scale), lambda c: 0.5 * c.mu + 0.5 * c.u)
    assert_losses(Stochastic(scale=3.7), lambda c: 0.5 * c.mu + 0.5 * c.u, rtol=1e-15)
