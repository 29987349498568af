"""A negative loss where the learner hardly is."""

import numpy as np
import pytest

from loss_helpers import WORLDS, assert_losses, filled
from unbounded.adversaries.mdps import Hide


def formula(height):
    def losses(c):
        out = 0.5 * c.mu + 0.5 * c.u
        out[1 + np.argmin(c.q[1:])] = -height
        return out

    return losses


def test_losses():
    assert_losses(Hide(), formula(8.0))
    assert_losses(Hide(0.3, scale=-4.0), formula(0.3))


def test_of_equally_rare_pairs_the_first_is_taken():
    mdp = WORLDS["dirichlet"]
    equal = np.ones(mdp.layers.n_pairs)
    losses = filled(Hide(), mdp, 9, 3, equal, key=5)
    assert np.flatnonzero(losses == -8.0).tolist() == [1]


def test_errors():
    with pytest.raises(ValueError, match="height must be above 0, got -8"):
        Hide(-8)
    with pytest.raises(ValueError, match="8 times scale, must be finite"):
        Hide(scale=1e308)
    assert Hide(0.5).largest == 1.0
