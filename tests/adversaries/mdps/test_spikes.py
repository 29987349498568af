"""The state that is hardest to reach, and the way there."""

import numpy as np

from loss_helpers import WORLDS
from spike_helpers import hard_pairs, on_the_way
from unbounded import worlds
from unbounded.adversaries.mdps.spikes import hardest_state, path_to_spike
from unbounded.core.occupancy.mdp import LayeredMDP


def test_the_hardest_state_is_that_of_least_mass_under_uniform_play():
    for mdp in WORLDS.values():
        h, s = hardest_state(mdp)
        A = mdp.layers.n_actions
        assert mdp.layers.index(h, s) == hard_pairs(mdp).start
        assert hard_pairs(mdp).stop - hard_pairs(mdp).start == A
    assert hardest_state(worlds.combination_lock(3, 2, np.random.default_rng(1))) == (3, 0)


def test_a_state_that_cannot_be_reached_is_not_the_hardest():
    to_first = [[[0.9, 0.1, 0.0], [0.9, 0.1, 0.0]]]
    assert hardest_state(LayeredMDP([1.0], [to_first])) == (2, 1)


def test_the_way_to_the_spike():
    for mdp in WORLDS.values():
        assert np.array_equal(path_to_spike(mdp) > 0.0, on_the_way(mdp))
        assert set(path_to_spike(mdp)) <= {0.0, 1.0}
    lock = WORLDS["lock"]
    combination = [int(P[0, :, 0].argmax()) for P in lock.transitions]
    path = lock.layers.unpack_pairs(path_to_spike(lock))
    assert [int(table[0].argmax()) for table in path[:-1]] == combination
    assert path[-1].tolist() == [[1.0] * 3, [0.0] * 3]
