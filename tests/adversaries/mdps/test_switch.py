"""Means that become their opposites."""

import numpy as np
import pytest

from loss_helpers import WORLDS, assert_losses, filled, some_q
from unbounded.adversaries.mdps import Switch


@pytest.mark.parametrize("at", [0.5, 0.2, 0.0, 1.0])
def test_losses(at):
    def formula(c):
        return 0.5 * (1.0 - c.mu if c.t > at * c.T else c.mu) + 0.5 * c.u

    assert_losses(Switch(at, scale=0.25), formula)
    if at == 0.5:
        assert_losses(Switch(), formula)


def test_the_best_pairs_become_the_worst():
    mdp = WORLDS["dirichlet"]
    q = some_q(mdp, 0)
    rows = np.array([filled(Switch(), mdp, 100, t, q, key=5)[1:] for t in range(1, 101)])
    assert np.corrcoef(rows[:50].mean(axis=0), rows[50:].mean(axis=0))[0, 1] < -0.5


def test_errors():
    with pytest.raises(ValueError, match=r"at must be in \[0, 1\], got -0.1"):
        Switch(-0.1)
