"""AHB: what is special about it."""

import numpy as np

from unbounded import AHB


def test_losses_that_are_subnormal_beside_the_largest():
    """A loss of 1 beside one of 1.8e308 makes a gap whose inverse is beyond the largest float."""
    largest = np.finfo(float).max
    losses = np.random.default_rng(0).choice([-largest, largest, 0.0, 1.0], (60, 3))
    learner = AHB(3, seed=0)
    for row in losses:
        choice = learner.ask()
        learner.tell(choice, float(row[choice]))
        q = learner.probabilities()
        assert abs(q.sum() - 1.0) < 1e-12
        assert np.isfinite(learner.scale)
