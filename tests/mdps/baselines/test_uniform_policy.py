"""Uniform play."""

import numpy as np

from mdp_play import play, random_losses
from unbounded import UniformPolicy, worlds
from unbounded.core.occupancy.mdp import Markov


def test_is_uniform_whatever_happens():
    mdp = worlds.dirichlet([2, 3], 3, np.random.default_rng(0))
    learner = UniformPolicy([2, 3], 3, seed=1)
    policies, told = play(learner, mdp, random_losses(mdp.layers, 300, seed=2), seed=3)
    assert np.all(policies == Markov.uniform(mdp.layers).pi)
    actions = np.bincount([a for _, _, actions, _ in told for a in actions], minlength=3)
    assert np.all(np.abs(actions / 600 - 1 / 3) < 5 * np.sqrt(2 / 9 / 600))
    assert learner.made_for is None  # and so nothing is ever remarked upon
    assert learner.clipped == 0
    assert learner.certificate.solves == 0
