"""Greedy optimistic transitions and upper occupancy bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from occupancy_facades import ConfidenceSet, greedy_transitions, known, u_all, upper_occupancy
from occupancy_reference import boxes_as_arrays, fill_counts, greedy_value, upper_bound_by_lp
from unbounded import worlds
from unbounded.core.occupancy.confidence import JIN
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, STATE, TRIPLE, Layers
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, Mixture, occupancy
from unbounded.core.occupancy.upper import (
    best_values,
    descending,
    scratch,
    spare_mass,
    u_everywhere,
    u_unknown,
)

seeds = st.integers(0, 2**32 - 1)


def random_sets(rng, max_layers=4, max_states=4, max_actions=3, constants=JIN):
    sizes = rng.integers(1, max_states + 1, size=rng.integers(1, max_layers + 1))
    mdp = worlds.dirichlet(sizes, int(rng.integers(1, max_actions + 1)), rng, concentration=0.5)
    sets = ConfidenceSet(mdp.layers, 1000, 0.1, constants)
    fill_counts(sets, mdp, rng, lambda p: 0 if rng.random() < 0.2 else 10 ** rng.uniform(0, 6))
    policy = Markov.from_tables(
        mdp.layers, [rng.dirichlet(np.ones(mdp.layers.n_actions), n) for n in sizes]
    )
    return mdp, sets, policy


def random_member(sets, rng):
    """Transitions in the boxes: greedy for random values, mixed with the middle of the box."""
    layers = sets.layers
    corner = greedy_transitions(layers, sets.lo, sets.hi, rng.normal(size=layers.n_states))
    other = greedy_transitions(layers, sets.lo, sets.hi, rng.normal(size=layers.n_states))
    share = rng.random()
    return share * corner + (1 - share) * other


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_greedy_step_equals_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    layers = Layers([n], n_actions=1)
    sets = ConfidenceSet(layers, 100, 0.1, constants=(0.5, 0.5))
    mdp = worlds.dirichlet([n], 1, rng)
    fill_counts(sets, mdp, rng, lambda p: rng.choice([0, 10, 1000]))
    f = rng.normal(size=n)
    P = greedy_transitions(layers, sets.lo, sets.hi, np.concatenate([[0], f]))
    assert abs(P.sum() - 1) < 1e-15
    assert np.all(sets.lo <= P)
    assert np.all(sets.hi + 1e-16 >= P)
    lp = linprog(-f, A_eq=np.ones((1, n)), b_eq=[1], bounds=np.column_stack([sets.lo, sets.hi]))
    assert P @ f == pytest.approx(-lp.fun, abs=1e-14)
    if not sets.N[0]:  # N = 0: everything on the best state
        assert P @ f == f.max()


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_upper_bounds_equal_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    mdp, sets, policy = random_sets(rng, max_layers=3)
    u = upper_occupancy(policy, sets.lo, sets.hi)
    for h in range(1, mdp.layers.horizon + 1):
        s = int(rng.integers(mdp.layers.sizes[h - 1]))
        lp = upper_bound_by_lp(mdp.layers, policy.pi, sets.lo, sets.hi, h, s)
        first = mdp.layers.index(h, s)
        ours = u[first : first + mdp.layers.n_actions].sum()
        assert ours == pytest.approx(lp, abs=1e-14), (h, s)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_upper_bounds_hold_for_every_member_of_the_set(seed):
    rng = np.random.default_rng(seed)
    mdp, sets, policy = random_sets(rng)
    other = Markov.uniform(mdp.layers)
    mixture = Mixture([0.4, 0.6], [policy, other])
    for p in (policy, mixture):
        u = upper_occupancy(p, sets.lo, sets.hi)
        for _ in range(3):
            member = random_member(sets, rng)
            initial, arrays = mdp.layers.unpack_transitions(member)
            q = occupancy(LayeredMDP(initial, arrays, mdp.layers.n_actions), p)
            assert np.all(u >= q - 1e-14)
    # erratum E12: the bound of a mixture is the mixture of the bounds
    parts = [upper_occupancy(p, sets.lo, sets.hi) for p in (policy, other)]
    assert np.allclose(u, 0.4 * parts[0] + 0.6 * parts[1], atol=1e-15)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_visited_states_get_the_same_bounds_as_all_states(seed):
    rng = np.random.default_rng(seed)
    mdp, sets, policy = random_sets(rng)
    visited = rng.integers(mdp.layers.sizes)
    everything = upper_occupancy(policy, sets.lo, sets.hi)
    some = upper_occupancy(policy, sets.lo, sets.hi, states=visited)
    for h, s in enumerate(visited, start=1):
        first = mdp.layers.index(h, s)
        where = slice(first, first + mdp.layers.n_actions)
        assert np.array_equal(some[where], everything[where])


def test_bounds_that_are_known_stay_as_they_are():
    mdp, sets, policy = random_sets(np.random.default_rng(0))
    layers, (work, order) = mdp.layers, scratch(mdp.layers)
    lay, room, every = layers.table, np.empty(layers.n_pairs), np.empty(layers.n_states)
    spare_mass(lay, sets.lo, room)
    u_all(lay, sets.lo, sets.hi, room, policy.pi, every, work, order)
    last, visited = layers.horizon, np.zeros(layers.horizon, int)
    u, known = np.full(layers.n_states, -1.0), lay[STATE, last]
    u[known] = 0.625
    u_unknown(lay, sets.lo, sets.hi, room, policy.pi, visited, u, work, order)
    expected = np.full(layers.n_states, -1.0)
    for h in range(1, last):
        expected[lay[STATE, h]] = every[lay[STATE, h]]
    expected[known] = 0.625
    assert last > 1
    assert np.array_equal(u, expected)


@pytest.mark.parametrize("without_boxes", [0.0, 0.6, 1.0])
def test_bounds_of_whole_layers_are_those_of_their_states_bit_for_bit(without_boxes):
    rng = np.random.default_rng(int(10 * without_boxes))
    for _ in range(30):
        mdp, sets, policy = random_sets(rng)
        layers, (work, order) = mdp.layers, scratch(mdp.layers)
        lay, room, every = layers.table, np.empty(layers.n_pairs), np.empty(layers.n_states)
        lo, hi = sets.lo.copy(), sets.hi.copy()
        for h in range(layers.horizon):  # some pairs have the whole simplex
            m = int(lay[SIZE, h] * lay[ACTIONS, h])
            free = np.tile(rng.random(m) < without_boxes, int(lay[SIZE, h + 1]))
            for box, whole in ((lo, 0.0), (hi, 1.0)):
                box[lay[TRIPLE, h] : lay[TRIPLE, h + 1]][free] = whole
        spare_mass(lay, lo, room)
        u_all(lay, lo, hi, room, policy.pi, every, work, order)
        wanted = (rng.random(layers.horizon) < 0.7) * 1.0
        u = np.full(layers.n_states, -1.0)
        buffer = np.full(2 * layers.n_transitions + 4 * layers.n_pairs, np.nan)
        u_everywhere(lay, lo, hi, room, policy.pi, wanted, u, work, order, buffer)
        assert u[0] == -1.0
        for h in range(1, layers.horizon + 1):
            states = slice(lay[STATE, h], lay[STATE, h + 1])
            expected = every[states] if wanted[h - 1] else np.full(lay[SIZE, h], -1.0)
            assert np.array_equal(u[states], expected)


@pytest.mark.parametrize("n_actions", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("sizes", [(1, 2, 3), (5, 4, 6), (9, 8, 1), (2, 11, 10)])
def test_upper_bounds_of_layers_of_every_width(sizes, n_actions):
    """Against a recursion with one pair at a time."""
    rng = np.random.default_rng([*sizes, n_actions])
    mdp = worlds.dirichlet(sizes, n_actions, rng)
    width = rng.choice([0.0, 0.1, 1.0], size=mdp.layers.n_transitions)
    lo, hi = np.maximum(mdp.P - width, 0.0), np.minimum(mdp.P + width, 1.0)
    tables = [rng.dirichlet(np.full(n_actions, 0.5), size=n) for n in sizes]
    policy = Markov(mdp.layers, np.concatenate([[1.0], *[t.ravel() for t in tables]]))
    u = mdp.layers.unpack_pairs(upper_occupancy(policy, lo, hi))
    lows, highs = boxes_as_arrays(mdp.layers, lo), boxes_as_arrays(mdp.layers, hi)
    for k, n in enumerate(sizes, start=1):
        for t in range(n):
            f = np.eye(n)[t]
            for h in range(k - 1, -1, -1):
                best = [
                    [greedy_value(*box, f) for box in zip(*rows, strict=True)]
                    for rows in zip(lows[h], highs[h], strict=True)
                ]
                f = np.sum(best * (tables[h - 1] if h else np.ones((1, 1))), axis=1)
            assert np.allclose(u[k - 1][t], f[0] * tables[k - 1][t], rtol=0, atol=1e-14)


def test_ties_are_ordered_by_number():
    rng = np.random.default_rng(4)
    for n in (1, 2, 3, 4, 5, 8, 13, 40):
        f, order = rng.integers(-2, 3, size=n).astype(float), np.empty(n, dtype=np.int64)
        expected = np.argsort(-f, kind="stable")
        descending(n, f, order)
        assert np.array_equal(order, expected)


def test_known_transitions_give_the_occupancy_itself():
    rng = np.random.default_rng(3)
    mdp = worlds.dirichlet([2, 3, 4], 2, rng)
    policy = Markov.uniform(mdp.layers)
    u = upper_occupancy(policy, *known(mdp))
    assert np.allclose(u, occupancy(mdp, policy), rtol=0, atol=1e-15)


def test_nothing_known_bounds_every_state_by_one():
    layers = Layers([2, 3], 2)
    u = upper_occupancy(Markov.uniform(layers), np.zeros(14), np.ones(14))
    assert np.allclose(u[1:], 0.5)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_best_values_are_the_greedy_ones(seed):
    """For every number of states and of values that are zero; other pairs are not written."""
    rng = np.random.default_rng(seed)
    m, n, start, first = (int(rng.integers(*r)) for r in ((1, 40), (1, 12), (0, 5), (0, 4)))
    P = rng.dirichlet(np.ones(n), size=m).T.ravel()
    width = rng.choice([0.0, 0.1, 1.0], size=n * m)
    lo, hi = (np.concatenate([np.full(start, np.nan), x]) for x in (P - width, P + width))
    lo, hi = np.maximum(lo, 0.0), np.minimum(hi, 1.0)
    lows, highs = (x[start:].reshape(n, m).T for x in (lo, hi))
    room = np.concatenate([np.full(first, np.nan), np.maximum(1 - lows.sum(1), 0.0)])
    f = rng.random(n) * (rng.random(n) < 0.7)
    value, rest = np.full(m + 2, 7.0), np.empty(m + 2)
    best_values(m, n, lo, hi, start, room, first, f, np.empty(n, np.int64), value, rest)
    for i in range(m):
        assert value[i] == pytest.approx(greedy_value(lows[i], highs[i], f), abs=1e-15)
    assert np.array_equal(value[m:], [7.0, 7.0])


def test_spare_mass_is_what_lo_leaves():
    rng = np.random.default_rng(5)
    mdp = worlds.dirichlet([2, 3, 2], 2, rng)
    lo = mdp.P * rng.random(mdp.P.size)
    room = np.full(mdp.layers.n_pairs, np.nan)
    spare_mass(mdp.layers.table, lo, room)
    sums = [x.sum(2).ravel() for x in boxes_as_arrays(mdp.layers, lo)]
    last = mdp.layers.table[PAIR, 3]
    assert np.allclose(room[:last], 1 - np.concatenate(sums), rtol=0, atol=1e-15)
    assert not room[last:].any()
    spare_mass(mdp.layers.table, mdp.P * (1 + 1e-15), room)
    assert np.all(room >= 0)


def test_no_bound_is_above_one_by_the_rounding_of_a_policy():
    layers = Layers([1, 1], 2)
    policy = Markov(layers, [1.0, 0.5, 0.5 + 5e-10, 0.25, 0.75])
    assert upper_occupancy(policy, np.zeros(3), np.ones(3))[3:].tolist() == [0.25, 0.75]


def test_wrong_arguments_are_rejected():
    layers = Layers([2], 2)
    policy = Markov.uniform(layers)
    with pytest.raises(ValueError, match="states must be integers"):
        upper_occupancy(policy, np.zeros(2), np.ones(2), states=[2])
    with pytest.raises(ValueError, match="0 <= lo <= hi <= 1"):
        upper_occupancy(policy, [0.5, 0.0], [0.4, 1.0])
    with pytest.raises(ValueError, match="3 finite numbers"):
        greedy_transitions(layers, np.zeros(2), np.ones(2), [0.0, np.nan, 1.0])
