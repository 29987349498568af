"""Builders of layered MDPs."""

import numpy as np
import pytest

from unbounded import worlds
from unbounded.core.occupancy.policies import Markov, best_policy, occupancy


def test_builders():
    rng = np.random.default_rng(4)
    lock = worlds.combination_lock(5, 3, rng, slip=0.1)
    uniform = occupancy(lock, Markov.uniform(lock.layers))
    assert lock.layers.unpack_pairs(uniform)[4][0].sum() == pytest.approx((0.9 / 3) ** 4)
    goal = np.zeros(lock.layers.n_pairs)
    goal[lock.layers.index(5, 0, 0)] = -1
    assert best_policy(lock, goal)[0] == pytest.approx(-(0.9**4))
    for sizes in ([4], [2, 3, 4]):
        hard = worlds.hard_to_reach(sizes, 2, rng, reach=1e-3)
        goal = np.zeros(hard.layers.n_pairs)
        last = hard.layers.index(len(sizes), sizes[-1] - 1)
        goal[last : last + 2] = -1
        assert 0 < -best_policy(hard, goal)[0] <= 1e-3 * (1 + 1e-12)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    expanded = worlds.time_expansion(P, [0, 1, 0], horizon=4)
    assert expanded.layers.sizes == (3, 3, 3, 3)
    chain = P.mean(axis=1)
    q = occupancy(expanded, Markov.uniform(expanded.layers))
    expected = np.array([0, 1, 0]) @ np.linalg.matrix_power(chain, 3)
    assert np.allclose(expanded.layers.unpack_pairs(q)[3].sum(1), expected, atol=1e-14)
