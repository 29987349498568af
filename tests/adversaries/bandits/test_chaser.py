"""The likeliest arm is punished."""

from loss_helpers import losses_of
from unbounded.adversaries import Chaser


def test_the_likeliest_arm_is_punished():
    losses = losses_of(Chaser(), q=[0.2, 0.5, 0.3, 0.0], rounds=3)
    assert losses.tolist() == [[0.0, 1.0, 0.0, 0.0]] * 3


def test_of_equally_likely_arms_the_first():
    assert losses_of(Chaser(), rounds=1).tolist() == [[1.0, 0.0, 0.0, 0.0]]
