"""Silence, then losses."""

import numpy as np
import pytest

from loss_helpers import coins, losses_of
from unbounded.adversaries import ZerosFirst


@pytest.mark.parametrize("settings", [{}, {"share": 0.3, "gap": 0.4, "best": 6}])
def test_losses(settings):
    losses = losses_of(ZerosFirst(**settings), rounds=100)
    silent = int(settings.get("share", 0.5) * 100)
    assert not losses[:silent].any()
    for t in range(silent + 1, 101):
        lost = coins(17, t, 4, settings.get("best", 0) % 4, settings.get("gap", 0.1))
        assert np.array_equal(losses[t - 1], lost)


def test_errors():
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], got 1.5"):
        ZerosFirst(share=1.5)
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        ZerosFirst(gap=0.6)
