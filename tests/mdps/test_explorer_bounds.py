"""Bounds of all exploration policies at once: those of each, added up, bit for bit."""

import numpy as np
import pytest

from mdp_play import explore, state_of
from unbounded import RFELP, LayeredMDP, worlds
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.mdps import explorer_bounds, explorers


@pytest.mark.parametrize("seed", range(12))
def test_equal_to_one_policy_at_a_time(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=rng.integers(1, 6)).tolist()
    A = int(rng.integers(1, 5))
    mdp = worlds.dirichlet(sizes, A, rng)
    if seed % 2:  # with actions that are not allowed
        allowed = [rng.random((n, A)) < 0.6 for n in sizes]
        for table in allowed:
            table[~table.any(axis=1), 0] = True
        mdp = LayeredMDP(mdp.initial, mdp.transitions, A, allowed)
    layers, lay = mdp.layers, mdp.layers.table
    seeker = RFELP.for_mdp(mdp, int(np.random.default_rng([seed, 1]).integers(1, 12)), seed=seed)
    explore(seeker, mdp, seed)
    library = state_of(seeker).library
    width = rng.choice([0.0, 0.1, 1.0], size=layers.n_transitions)
    lo, hi = np.maximum(mdp.P - width, 0.0), np.minimum(mdp.P + width, 1.0)
    room = np.empty(layers.n_pairs)
    spare_mass(lay, lo, room)

    work = explorer_bounds.new_scratch(layers)
    for array in work:
        array[:] = np.nan if array.dtype == float else -(10**6)  # nothing of it is read
    visited = rng.integers(sizes)
    known = rng.random(len(sizes)) < 0.3  # from earlier in the epoch
    u = np.full(layers.n_pairs, -1.0)
    expected = u.copy()
    values, order = scratch(layers)
    pi = np.empty(layers.n_pairs)
    for h, s in enumerate(visited, start=1):
        pairs = slice(layers.index(h, s), layers.index(h, s) + A)
        if known[h - 1]:
            u[pairs] = expected[pairs] = 7.0
            continue
        expected[pairs] = 0.0
        for k in range(library.size):
            explorers.fill_component(lay, layers.even, library, k, pi)
            bound = u_state(lay, lo, hi, room, pi, h, s, values, order)
            expected[pairs] += library.weight[k] * bound * pi[pairs]
    explorer_bounds.library_bounds(lay, layers.even, lo, hi, room, library, visited, u, work)
    assert np.array_equal(u, expected)


def test_a_policy_of_weight_zero_counts_for_nothing():
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(1))
    layers, lay = mdp.layers, mdp.layers.table
    library = explorers.oracle(layers, mdp.P)
    library.weight[2:5] = 0.0
    room = np.empty(layers.n_pairs)
    spare_mass(lay, mdp.P, room)
    u = np.full(layers.n_pairs, -1.0)
    visited = np.array([1, 2])
    work = explorer_bounds.new_scratch(layers)
    explorer_bounds.library_bounds(lay, layers.even, mdp.P, mdp.P, room, library, visited, u, work)
    first = layers.index(1, 1)
    assert u[first : first + 2] == pytest.approx(0.2 * 2 * mdp.initial[1] / 2)
    untouched = np.ones(layers.n_pairs, bool)
    for h, s in ((1, 1), (2, 2)):
        untouched[layers.index(h, s) : layers.index(h, s) + 2] = False
    assert np.all((u == -1.0) == untouched)
