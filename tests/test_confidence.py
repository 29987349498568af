"""Confidence sets, greedy optimistic transitions and upper occupancy bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from occupancy_reference import boxes_as_arrays, fill_counts, greedy_value, upper_bound_by_lp
from unbounded import worlds
from unbounded.core.occupancy.confidence import (
    JIN,
    PAPER,
    ConfidenceSet,
    check_boxes,
    known,
    log_term,
)
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import Markov, Mixture, occupancy
from unbounded.core.occupancy.upper import descending, greedy_transitions, upper_occupancy

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


def test_boxes_follow_the_formula():
    rng = np.random.default_rng(0)
    for constants in (PAPER, JIN):
        layers = Layers([3, 2], n_actions=2)
        sets = ConfidenceSet(layers, episodes=500, delta=0.2, constants=constants)
        for _ in range(60):
            sets.observe(rng.integers([3, 2]), rng.integers([2, 2]))
        sets.nested = False
        sets.refresh()
        ln = np.log(500 * 5 * 2 / 0.2)
        assert sets.log_term == log_term(layers, 500, 0.2) == pytest.approx(ln)
        M, lo, hi = (layers.unpack_transitions(x)[1][0] for x in (sets.M, sets.lo, sets.hi))
        for s in range(3):
            for a in range(2):
                N = sets.N[layers.index(1, s, a)]
                assert N == M[s, a].sum() > 1
                factor = 2 if constants is PAPER else 1
                eps = 2 * factor * np.sqrt(M[s, a] / N * ln / (N - 1))
                eps += factor * 14 * ln / (3 * (N - 1))
                assert np.allclose(lo[s, a], np.maximum(M[s, a] / N - eps, 0), atol=1e-15)
                assert np.allclose(hi[s, a], np.minimum(M[s, a] / N + eps, 1), atol=1e-15)


def test_epochs_start_when_visits_double_and_at_every_first_visit():
    layers = Layers([1], n_actions=1)
    sets = ConfidenceSet(layers, episodes=100, delta=0.1)
    starts = [t for t in range(1, 33) if sets.observe([0], [0])]
    assert starts == [1, 2, 4, 8, 16, 32]
    layers = Layers([2, 2], n_actions=2)
    sets = ConfidenceSet(layers, episodes=100, delta=0.1)
    for _ in range(3):
        sets.observe([0, 0], [0, 0])
    assert sets.observe([0, 1], [0, 0])  # a first visit in the last layer


def test_counts_follow_the_trajectory():
    layers = Layers([2, 3], n_actions=2)
    sets = ConfidenceSet(layers, episodes=100, delta=0.1)
    sets.observe([1, 2], [0, 1])
    sets.observe([1, 0], [0, 1])
    initial, (inner,) = layers.unpack_transitions(sets.M)
    assert initial.tolist() == [0, 2]
    assert inner[1, 0].tolist() == [1, 0, 1]
    assert sets.M.sum() == 4
    assert sets.N[layers.index(0, 0)] == 2
    assert sets.N[layers.index(2, 2, 1)] == 1


def test_e13_boxes_are_nested_and_never_empty():
    rng = np.random.default_rng(1)
    mdp = worlds.dirichlet([2, 3, 2], 2, rng)
    sets = ConfidenceSet(mdp.layers, 2000, 0.1)
    lo, hi = sets.lo.copy(), sets.hi.copy()
    for _ in range(2000):
        states, actions, s = [], [], None
        for h in range(3):
            p = mdp.initial if h == 0 else mdp.transitions[h - 1][s, actions[-1]]
            s = int(rng.choice(len(p), p=p))
            states.append(s)
            actions.append(int(rng.integers(2)))
        if sets.observe(states, actions):
            assert np.all(sets.lo >= lo)
            assert np.all(sets.hi <= hi)
            lo, hi = sets.lo.copy(), sets.hi.copy()
            check_boxes(mdp.layers, lo, hi)
    assert sets.contains(mdp.P)
    assert np.mean(hi - lo < 1) > 0.2  # it has learned something


def test_e13_an_empty_intersection_falls_back_to_the_new_box():
    layers = Layers([2], n_actions=1)
    sets = ConfidenceSet(layers, episodes=10, delta=0.5, constants=(1e-3, 1e-3))
    sets.N[0], sets.M[:] = 1000, [1000, 0]
    sets.refresh()
    assert sets.lo[0] > 0.99
    sets.N[0], sets.M[:] = 2000, [1000, 1000]  # contradicts the first box
    sets.refresh()
    assert sets.hi[0] < 0.6
    assert sets.lo[0] == pytest.approx(0.5, abs=0.01)


def test_e22_no_visits_means_the_whole_simplex():
    sets = ConfidenceSet(Layers([2, 3], 2), 100, 0.1)
    sets.refresh()
    assert not sets.lo.any()
    assert np.all(sets.hi == 1)


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


@pytest.mark.parametrize("n_actions", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("sizes", [(1, 2, 3), (5, 4, 6), (9, 8, 1), (2, 11, 10)])
def test_upper_bounds_of_layers_of_every_width(sizes, n_actions):
    """Pairs are taken 16 and 4 at a time: against a recursion with one pair at a time."""
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
        f, order = np.empty(n + 3), np.empty(n, dtype=np.int64)
        f[:n] = rng.integers(-2, 3, size=n)
        expected = np.argsort(-f[:n], kind="stable")
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


def test_wrong_arguments_are_refused():
    layers = Layers([2], 2)
    with pytest.raises(ValueError, match="delta must be in"):
        ConfidenceSet(layers, 10, 1.5)
    with pytest.raises(ValueError, match="episodes must be"):
        ConfidenceSet(layers, 0, 0.5)
    with pytest.raises(ValueError, match="constants must be positive"):
        ConfidenceSet(layers, 10, 0.5, constants=(1.0, 0.0))
    sets = ConfidenceSet(layers, 10, 0.5)
    for states, actions in (([2], [0]), ([0], [-1]), ([0.5], [0]), ([0, 0], [0])):
        with pytest.raises(ValueError, match="must"):
            sets.observe(states, actions)
    assert not sets.N.any()  # nothing was counted
    with pytest.raises(ValueError, match="0 <= lo <= hi <= 1"):
        check_boxes(layers, [0.5, 0.0], [0.4, 1.0])
