"""The likeliest action of every state costs 1."""

import numpy as np

from loss_helpers import WORLDS, assert_losses, filled
from unbounded.adversaries.mdps import Punish


def formula(c):
    out = np.zeros(c.mdp.layers.n_pairs)
    q = c.per_state(c.q)
    c.per_state(out)[np.arange(len(q)), q.argmax(axis=1)] = 1.0
    return out


def test_losses():
    for scale in (1.0, 3.7, -2.0):
        assert_losses(Punish(scale=scale), formula)


def test_of_equally_likely_actions_the_first_is_punished():
    mdp = WORLDS["dirichlet"]
    equal = np.ones(mdp.layers.n_pairs)
    for table in mdp.layers.unpack_pairs(filled(Punish(), mdp, 9, 3, equal, key=5)):
        assert table.tolist() == [[1.0, 0.0, 0.0]] * len(table)
