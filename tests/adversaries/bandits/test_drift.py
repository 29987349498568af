"""Means that wander."""

import numpy as np
import pytest

from loss_helpers import losses_of, uniforms
from unbounded.adversaries import Drift


def test_the_best_arm_moves():
    losses = losses_of(Drift(gap=0.5, cycles=1.0), n=2, rounds=8000)
    quarters = losses.reshape(4, 2000, 2).mean(axis=1)
    # arm 0 starts at its highest mean and is lowest in the middle; arm 1 is half a cycle away
    np.testing.assert_allclose(quarters[:, 0], [0.75, 0.25, 0.25, 0.75], atol=0.04)
    np.testing.assert_allclose(quarters[:, 1], [0.25, 0.75, 0.75, 0.25], atol=0.04)


def test_losses():
    n, rounds, gap, cycles = 3, 400, 0.25, 3.5
    losses = losses_of(Drift(), n, rounds)
    for t in range(1, rounds + 1):
        phase = cycles / rounds * (t - 1) + np.arange(n) / n
        wave = np.interp(phase % 1.0, [0.0, 0.5, 1.0], [1.0, -1.0, 1.0])
        u = uniforms(17, t, n)
        near = np.abs(u - 0.5 - gap * wave) < 1e-9
        assert np.array_equal(losses[t - 1][~near], (u < 0.5 + gap * wave)[~near])


def test_a_sine():
    n, rounds = 3, 400
    losses = losses_of(Drift(gap=0.3, cycles=3.0, wave="sine"), n, rounds)
    for t in range(1, rounds + 1):
        mean = 0.5 + 0.3 * np.sin(2.0 * np.pi * (3.0 / rounds * (t - 1) + np.arange(n) / n))
        assert np.array_equal(losses[t - 1], uniforms(17, t, n) < mean)


def test_errors():
    with pytest.raises(ValueError, match=r"gap must be in \[0, 0.5\], got 0.6"):
        Drift(gap=0.6)
    with pytest.raises(ValueError, match="cycles must be at least 0 and finite, got -1"):
        Drift(cycles=-1)
