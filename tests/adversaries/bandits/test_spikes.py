"""Rare losses far outside of the usual ones."""

import numpy as np
import pytest
from scipy import stats

from loss_helpers import coins, losses_of, uniforms
from unbounded.adversaries import Spikes


@pytest.mark.parametrize(("sign", "low", "high"), [("positive", 0, 9), ("negative", -9, 1)])
def test_have_their_rate_and_sign(sign, low, high):
    losses = losses_of(Spikes(height=9.0, rate=0.1, sign=sign), rounds=5000)
    assert (losses.min(), losses.max()) == (low, high)
    spikes = np.abs(losses) == 9.0
    assert stats.binomtest(int(spikes.sum()), 5000, 0.1).pvalue > 1e-4
    assert stats.chisquare(spikes.sum(axis=0)).pvalue > 1e-4  # on any arm


@pytest.mark.parametrize(
    ("sign", "positive"), [("positive", 1.0), ("negative", 0.0), ("both", 0.5)]
)
def test_losses(sign, positive):
    losses = losses_of(Spikes(7.5, rate=0.4, sign=sign, gap=0.3, best=6), 4, 300)
    for t in range(1, 301):
        expected = 1.0 * coins(17, t, 4, 2, 0.3)
        comes, where, which = uniforms(17, t, 7)[4:]
        if comes < 0.4:
            expected[int(4 * where)] = 7.5 if which < positive else -7.5
        assert np.array_equal(losses[t - 1], expected)


def test_defaults():
    losses = losses_of(Spikes(), 4, 5000)
    usual = np.array([coins(17, t, 4, 0, 0.1) for t in range(1, 5001)])
    changed = losses != usual
    assert set(losses[changed]) == {30.0}
    assert stats.binomtest(int(changed.sum()), 5000, 1e-3).pvalue > 1e-4


def test_errors():
    with pytest.raises(ValueError, match=r"rate must be in \[0, 1\], got 2.0"):
        Spikes(rate=2.0)
    with pytest.raises(ValueError, match="sign must be one of"):
        Spikes(sign="up")
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        Spikes(gap=0.6)
