"""Losses that double again and again."""

import numpy as np
import pytest

from loss_helpers import WORLDS, assert_losses, filled, some_q
from unbounded.adversaries.mdps import Growth


def test_losses():
    def formula(doublings):
        return lambda c: np.exp2(doublings * c.t / c.T) * (0.5 * c.mu + 0.5 * c.u)

    assert_losses(Growth(), formula(20.0), rtol=1e-14)
    assert_losses(Growth(3.5, scale=-3.0), formula(3.5), rtol=1e-14)
    assert_losses(Growth(0.0), formula(0.0))


def test_the_last_losses_are_2_to_the_20_times_larger():
    mdp = WORLDS["lock"]
    first, last = (filled(Growth(), mdp, 1000, t, some_q(mdp, 0), key=5) for t in (1, 1000))
    assert 2.0**18 < last.max() / first.max() < 2.0**22
    assert last.max() < Growth().largest == 2.0**20


def test_errors():
    with pytest.raises(ValueError, match=r"doublings must be in \[0, 1000\], got 1001"):
        Growth(1001)
    with pytest.raises(ValueError, match=r"1.04858e\+06 times scale, must be finite"):
        Growth(scale=1e305)
    assert Growth(10.0, scale=1e305).scale == 1e305
