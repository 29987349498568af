"""Heavy tails of one sign."""

import math

import numpy as np
import pytest
from scipy import stats

from loss_helpers import losses_of, uniforms
from unbounded.adversaries import Pareto


def test_has_its_distribution():
    losses = losses_of(Pareto(), n=2, rounds=4000)
    assert stats.kstest(losses[:, 1], stats.pareto(1.5).cdf).pvalue > 1e-3
    assert stats.kstest(2.0 * losses[:, 0], stats.pareto(1.5).cdf).pvalue > 1e-3


def test_losses():
    losses = losses_of(Pareto(3.0, ratio=0.1, best=6), n=4, rounds=50)
    for t in range(1, 51):
        expected = (1.0 - uniforms(17, t, 4)) ** (-1.0 / 3.0) * [1.0, 1.0, 0.1, 1.0]
        np.testing.assert_allclose(losses[t - 1], expected, rtol=1e-14)


def test_errors():
    with pytest.raises(ValueError, match=r"shape must be at least 0.1 and finite, got inf"):
        Pareto(math.inf)
