"""Banker where its action scale follows the losses that were kept, not the threshold alone."""

from __future__ import annotations

import math

import numpy as np

from slow import twin_of
from unbounded import Banker


def test_the_scale_of_many_losses_agrees_with_the_slow_twin():
    """With few arms and rounds sigma_t = sqrt((3 + D) / ln(3 + D / B^2)) / sqrt(n ln T) > 2 B."""
    n, T = 2, 2
    learner, slow = Banker(n, rounds=T, seed=0), twin_of(Banker)(n, rounds=T)
    expected = next(slow)
    losses = np.random.default_rng(3).uniform(0.5, 1.0, size=(300, n))
    kept, beyond = 0.0, 0
    for row in losses:
        np.testing.assert_allclose(learner.probabilities(), expected, rtol=0.0, atol=1e-9)
        choice, B = learner.ask(), learner.scale
        kept += row[choice.arm] ** 2 * (row[choice.arm] <= B)
        D = B * B + kept
        beyond += (3.0 + D) / math.log(3.0 + D / B**2) / (n * math.log(T)) > 4.0 * B * B
        learner.tell(choice, float(row[choice.arm]))
        expected = slow.send((choice.arm, row))
    assert beyond > 100
