"""Every algorithm replayed for 300 rounds by an independent slow implementation."""

from __future__ import annotations

import numpy as np
import pytest

import slow_bandits


@pytest.mark.parametrize("n", [2, 7])
def test_probabilities_equal_those_of_the_slow_implementation(example, n):
    if example.spec.feedback == "full":
        pytest.skip("compared in its own test")
    rng = np.random.default_rng(11)
    learner = example.make(n, seed=4)
    slow = getattr(slow_bandits, example.spec.name)(n, **example.settings)
    for t in range(300):
        size = 0.0 if t < 3 else (1.0 if t < 150 else 6.0)
        losses = size * (rng.normal(size=n) + 0.3 - 0.5 * (np.arange(n) == 1))
        q = slow.q()
        np.testing.assert_allclose(learner.probabilities(), q, atol=1e-9)
        choice = learner.ask()
        slow.tell(choice.arm, q, losses[choice.arm])
        learner.tell(choice, losses[choice.arm])
