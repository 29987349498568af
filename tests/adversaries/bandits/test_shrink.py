"""Losses whose scale falls."""

import numpy as np
import pytest

from loss_helpers import coins, losses_of
from unbounded.adversaries import Shrink


@pytest.mark.parametrize("settings", [{}, {"final": 1e-6, "gap": 0.4, "best": 5}])
def test_losses(settings):
    losses = losses_of(Shrink(**settings), 4, 100)
    for t in range(1, 101):
        size = settings.get("final", 1e-3) ** ((t - 1) / 99)
        lost = coins(17, t, 4, settings.get("best", 0) % 4, settings.get("gap", 0.1))
        np.testing.assert_allclose(losses[t - 1], size * lost, rtol=1e-13)


def test_ends_at_its_final_size():
    losses = losses_of(Shrink(final=1e-4), rounds=1000)
    assert losses[0].max() in (0.0, 1.0)
    sizes = losses.max(axis=1)
    expected = 1e-4 ** (np.arange(1000) / 999)
    seen = sizes > 0.0
    np.testing.assert_allclose(sizes[seen], expected[seen], rtol=1e-12)


def test_one_round():
    assert set(losses_of(Shrink(), rounds=1)[0]) <= {0.0, 1.0}


def test_errors():
    with pytest.raises(ValueError, match=r"final must be above 0 and at most 1, got 0\.0"):
        Shrink(final=0.0)
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got -1"):
        Shrink(gap=-1)
