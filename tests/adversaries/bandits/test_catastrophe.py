"""An arm that is cheap but for its catastrophes."""

import numpy as np
import pytest
from scipy import stats

from loss_helpers import losses_of, uniforms
from unbounded.adversaries import Catastrophe


def test_losses():
    losses = losses_of(Catastrophe(rate=0.3, height=9.0, gap=0.25, lure=6), n=4, rounds=100)
    for t in range(1, 101):
        dear = uniforms(17, t, 1)[0] < 0.3
        assert losses[t - 1].tolist() == [1.0, 1.0, 9.0 if dear else 0.75, 1.0]


def test_defaults():
    losses = losses_of(Catastrophe(), rounds=20_000)
    assert (losses[:, 1:] == 1.0).all()
    assert set(losses[:, 0]) == {0.9, 1e4}
    assert stats.binomtest(int((losses[:, 0] == 1e4).sum()), 20_000, 1e-3).pvalue > 1e-4
    assert losses[:, 0].mean() > 1.0  # so it is the worst arm
    assert np.median(losses[:, 0]) < 1.0


def test_errors():
    with pytest.raises(ValueError, match=r"rate must be in \[0, 1\]"):
        Catastrophe(rate=2.0)
