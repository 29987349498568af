"""AHB: what is special about it."""

import math

import numpy as np
import pytest

from unbounded import AHB
from unbounded.bandits.baselines import ahb


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


def test_a_gain_of_an_arm_that_only_exploration_draws_costs_nothing():
    """As interpreted, where a logarithm of 0 would be an error, and as compiled."""
    gap = ahb._mixability_gap
    assert gap.py_func(0.0, 800.0, 1.0) == gap(0.0, 800.0, 1.0) == 0.0
    tiny = gap(1e-300, 800.0, 1.0)  # the least arm that is not lost
    assert math.isclose(tiny, 800.0 + math.log(1e-300))


@pytest.mark.parametrize("losses", [(1.0, 2.0, -1e100, 1e305), (0.0, 1e-300, 2e-300, 1.0, -1e305)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_gaps_that_a_jump_of_the_scale_has_made_tiny_are_kept(n, losses):
    learner = AHB(n, seed=15208)
    for loss in losses:
        learner.tell(learner.ask(), loss)
        again = AHB.load(learner.save())
        assert again.probabilities().tolist() == learner.probabilities().tolist()
