"""Log-normal losses with time-outs."""

import math

import numpy as np
import pytest
from scipy import stats

from loss_helpers import losses_of, uniforms
from unbounded.adversaries import Latencies


def test_have_their_distribution():
    losses = losses_of(Latencies(sigma=0.7, spread=4.0, fastest=1), n=4, rounds=4000)
    for k, median in enumerate([4.0, 1.0, 2.0, 3.0]):
        assert stats.kstest(losses[:, k], stats.lognorm(0.7, scale=median).cdf).pvalue > 1e-3


def test_losses():
    adversary = Latencies(0.3, 2.0, rate=0.2, fastest_rate=0.6, timeout=99.0, fastest=6)
    losses, medians = losses_of(adversary, n=4, rounds=200), [5 / 3, 2.0, 1.0, 4 / 3]
    for t in range(1, 201):
        u = uniforms(17, t, 12).reshape(4, 3)
        normal = np.sqrt(-2.0 * np.log(1.0 - u[:, 0])) * np.cos(2.0 * math.pi * u[:, 1])
        late = u[:, 2] < [0.2, 0.2, 0.6, 0.2]
        expected = np.where(late, 99.0, medians * np.exp(0.3 * normal))
        np.testing.assert_allclose(losses[t - 1], expected, rtol=1e-13)


def test_by_default_all_arms_time_out_alike_and_none_does():
    assert losses_of(Latencies(), rounds=500).max() < 750.0
    late = losses_of(Latencies(rate=0.1), rounds=4000) == 750.0
    assert stats.chisquare(late.sum(axis=0)).pvalue > 1e-3
    assert stats.binomtest(int(late.sum()), 16_000, 0.1).pvalue > 1e-3


def test_one_arm():
    assert np.isfinite(losses_of(Latencies(), n=1, rounds=20)).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sigma": 81.0}, r"sigma must be in \[0, 80\]"),
        ({"spread": 0.5}, "spread must be at least 1"),
        ({"rate": 1.5}, r"rate must be in \[0, 1\]"),
        ({"fastest_rate": -1.0}, r"fastest_rate must be in \[0, 1\]"),
        ({"timeout": 0.0}, "timeout must be above 0"),
    ],
)
def test_errors(settings, said):
    with pytest.raises(ValueError, match=said):
        Latencies(**settings)
