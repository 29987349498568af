"""Bounds of all exploration policies at once: those of each, added up, bit for bit."""

import itertools

import numpy as np
import pytest

from mdp_play import explore, state_of
from unbounded import RFELP, LayeredMDP, worlds
from unbounded.core.occupancy.mdp import Markov, occupancy
from unbounded.core.occupancy.solver.sparse import Lists, told_lists
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.mdps.steps import explorer_bounds, explorers

NONE = Lists(np.empty(0, np.int64), np.empty(0, np.int64))


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
    explorer_bounds.library_bounds(
        lay, layers.even, lo, hi, room, library, visited, NONE, False, u, work
    )
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
    explorer_bounds.library_bounds(
        lay, layers.even, mdp.P, mdp.P, room, library, visited, NONE, False, u, work
    )
    first = layers.index(1, 1)
    assert u[first : first + 2] == pytest.approx(0.2 * 2 * mdp.initial[1] / 2)
    untouched = np.ones(layers.n_pairs, bool)
    for h, s in ((1, 1), (2, 2)):
        untouched[layers.index(h, s) : layers.index(h, s) + 2] = False
    assert np.all((u == -1.0) == untouched)


@pytest.mark.parametrize("seed", range(6))
def test_lists_of_possible_successors_give_the_same_bounds(seed):
    rng = np.random.default_rng(seed)
    sizes, A = [1, 17, 20, 24, 18], 2
    steps = []
    for n, after in itertools.pairwise(sizes):
        P = np.zeros((n, A, after))
        for s, a in np.ndindex(n, A):
            P[s, a, rng.choice(after, 2, replace=False)] = rng.dirichlet([1.0, 1.0])
        steps.append(P)
    mdp = LayeredMDP([1.0], steps)
    layers, lay, possible = mdp.layers, mdp.layers.table, (mdp.P > 0).astype(float)
    width = rng.choice([0.0, 0.1, 1.0], size=layers.n_transitions)
    lo = np.maximum(mdp.P - width, 0.0)
    hi = np.minimum(mdp.P + width, 1.0) * possible
    room = np.empty(layers.n_pairs)
    spare_mass(lay, lo, room)
    library, lists = explorers.oracle(layers, mdp.P), told_lists(layers, possible)
    assert lists.to.size == np.count_nonzero(possible)
    found = []
    visited = np.array([0, *map(np.argmax, _reached(mdp))])
    for listed in (False, True):
        work = explorer_bounds.new_scratch(layers)
        for array in work:
            array[:] = np.nan if array.dtype == float else -(10**6)
        u = np.full(layers.n_pairs, -1.0)
        explorer_bounds.library_bounds(
            lay, layers.even, lo, hi, room, library, visited, lists, listed, u, work
        )
        found.append(u)
    assert np.count_nonzero(found[0] > 0.0) >= 8
    assert np.allclose(found[1], found[0], rtol=1e-13, atol=0)
    u = np.full(layers.n_pairs, -1.0)
    explorer_bounds.library_bounds(
        lay, layers.even, lo, 0.9 * hi, room, library, visited, lists, True, u, work
    )
    assert not np.allclose(u, found[0], rtol=1e-3, atol=0)


def _reached(mdp):
    """Occupancy of even play in layers 2..H, for each layer its states."""
    tables = mdp.layers.unpack_pairs(occupancy(mdp, Markov.uniform(mdp.layers)))
    return [table.sum(axis=1) for table in tables[1:]]
