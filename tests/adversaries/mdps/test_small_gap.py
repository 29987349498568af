"""Little mean, much noise."""

import pytest

from loss_helpers import assert_losses
from unbounded.adversaries.mdps import SmallGap


def test_losses():
    assert_losses(SmallGap(), lambda c: 0.05 * c.mu + (1.0 - 0.05) * c.u)
    assert_losses(SmallGap(0.75, scale=8.0), lambda c: 0.75 * c.mu + 0.25 * c.u)


def test_errors():
    with pytest.raises(ValueError, match=r"weight must be in \[0, 1\], got 1.5"):
        SmallGap(1.5)
