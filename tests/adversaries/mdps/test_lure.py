"""The way to the spike costs more than all the rest."""

import numpy as np
import pytest

from loss_helpers import WORLDS, assert_losses, filled, some_q
from spike_helpers import hard_pairs, on_the_way
from unbounded.adversaries.mdps import Lure


def formula(height, chance, at):
    def losses(c):
        out = np.where(on_the_way(c.mdp), 0.5 + 0.5 * c.u, 0.5 * c.u)
        if c.t > at * c.T and c.toss < chance:
            out[hard_pairs(c.mdp)] = -height
        return out

    return losses


def test_losses():
    assert_losses(Lure(), formula(64.0, 0.2, 0.5))
    assert_losses(Lure(0.5, chance=0.7, at=0.1, scale=-4.0), formula(0.5, 0.7, 0.1))
    assert_losses(Lure(3.0, chance=1.0, at=0.0), formula(3.0, 1.0, 0.0))


def test_spikes_come_late_and_as_often_as_they_should():
    mdp = WORLDS["dirichlet"]
    q = some_q(mdp, 0)
    rows = np.array([filled(Lure(), mdp, 2000, t, q, key=5) for t in range(1, 2001)])
    spikes = np.all(rows[:, hard_pairs(mdp)] == -64.0, axis=1)
    assert not spikes[:1000].any()
    assert 150 < spikes[1000:].sum() < 250


def test_errors():
    with pytest.raises(ValueError, match="height must be above 0, got 0"):
        Lure(0)
    with pytest.raises(ValueError, match=r"chance must be in \[0, 1\], got 2"):
        Lure(chance=2)
    with pytest.raises(ValueError, match=r"at must be in \[0, 1\], got -1"):
        Lure(at=-1)
    with pytest.raises(ValueError, match="64 times scale, must be finite"):
        Lure(scale=-1e307)
    assert Lure(0.5).largest == 1.0
