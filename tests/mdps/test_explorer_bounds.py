"""Bounds of all exploration policies at once: those of each, added up, bit for bit."""

import numpy as np
import pytest

from unbounded import worlds
from unbounded.core.occupancy.upper import scratch, spare_mass, u_state
from unbounded.mdps import explorer_bounds, rf_elp
from unbounded.mdps.seekers import RFELP
from unbounded.play.sections import LIBRARY, carve, length


@pytest.mark.parametrize("seed", range(12))
def test_equal_to_one_policy_at_a_time(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, size=rng.integers(1, 6)).tolist()
    A = int(rng.integers(1, 5))
    mdp = worlds.dirichlet(sizes, A, rng)
    layers, lay = mdp.layers, mdp.layers.table
    seeker = RFELP(sizes, A, episodes=int(rng.integers(1, 12)), seed=seed)
    while not seeker.done:
        plan = seeker.ask()
        states = rng.integers(sizes)
        actions = [plan.act(h, int(s)) for h, s in enumerate(states)]
        seeker.tell(plan, states, actions, np.zeros(len(sizes)))
    library, count = seeker._state.library, int(seeker._state.head[LIBRARY])
    width = rng.choice([0.0, 0.1, 1.0], size=layers.n_transitions)
    lo, hi = np.maximum(mdp.P - width, 0.0), np.minimum(mdp.P + width, 1.0)
    room = np.empty(layers.n_pairs)
    spare_mass(lay, lo, room)

    needed = explorer_bounds.sizes(layers)
    work = carve(explorer_bounds.Scratch, needed, np.full(length(needed), np.nan))
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
        for k in range(count):
            rf_elp.component(lay, library, k, pi)
            bound = u_state(lay, lo, hi, room, pi, h, s, values, order)
            expected[pairs] += library.weight[k] * bound * pi[pairs]
    explorer_bounds.library_bounds(lay, lo, hi, room, library, count, visited, u, work)
    assert np.array_equal(u, expected)
