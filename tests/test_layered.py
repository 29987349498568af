"""Layered MDPs, policies and occupancy measures."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded import worlds
from unbounded.core.occupancy.layout import (
    TRIPLE,
    Layers,
)
from unbounded.core.occupancy.mdp import LayeredMDP, simulate_episode
from unbounded.core.occupancy.policies import (
    Markov,
    Mixture,
    best_policy,
    occupancy,
    policy_from_occupancy,
    regret,
)

shapes = st.tuples(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)


def random_policy(layers, rng, sparse=False):
    tables = [
        rng.dirichlet(np.full(layers.n_actions, 0.2 if sparse else 1), n) for n in layers.sizes
    ]
    return Markov.from_tables(layers, tables)


def world(shape):
    sizes, n_actions, seed = shape
    rng = np.random.default_rng(seed)
    return worlds.dirichlet(sizes, n_actions, rng, concentration=0.5), rng


def slow_occupancy(mdp, policy):
    """q(s, a) by definition, on ordinary arrays."""
    mass = mdp.initial
    out = [np.ones(1)]
    for h, table in enumerate(policy.tables):
        q = mass[:, None] * table
        out.append(q.ravel())
        if h < len(mdp.transitions):
            mass = np.einsum("sa,sat->t", q, mdp.transitions[h])
    return np.concatenate(out)


@given(shapes)
@settings(max_examples=60, deadline=None)
def test_occupancy_has_layer_mass_one_and_conserves_flow(shape):
    mdp, rng = world(shape)
    layers = mdp.layers
    q = occupancy(mdp, random_policy(layers, rng, sparse=True))
    tables = layers.unpack_pairs(q)
    assert all(abs(t.sum() - 1) < 1e-14 for t in tables)
    assert np.max(np.abs(tables[0].sum(1) - mdp.initial)) < 1e-15
    for before, P, after in zip(tables, mdp.transitions, tables[1:], strict=False):
        assert np.max(np.abs(np.einsum("sa,sat->t", before, P) - after.sum(1))) < 1e-15


@given(shapes)
@settings(max_examples=40, deadline=None)
def test_occupancy_agrees_with_the_definition_and_mixtures_are_linear(shape):
    mdp, rng = world(shape)
    policies = [random_policy(mdp.layers, rng) for _ in range(3)]
    weights = rng.dirichlet(np.ones(3))
    parts = [slow_occupancy(mdp, p) for p in policies]
    assert np.allclose(occupancy(mdp, policies[0]), parts[0], rtol=0, atol=1e-15)
    mixed = occupancy(mdp, Mixture(weights, policies))
    assert np.allclose(mixed, weights @ np.array(parts), rtol=0, atol=1e-15)


@given(shapes)
@settings(max_examples=40, deadline=None)
def test_the_policy_of_an_occupancy_measure_induces_it(shape):
    mdp, rng = world(shape)
    q = occupancy(mdp, Mixture([0.3, 0.7], [random_policy(mdp.layers, rng) for _ in range(2)]))
    again = occupancy(mdp, policy_from_occupancy(mdp.layers, q))
    assert np.allclose(q, again, rtol=0, atol=1e-14)


def test_expected_loss_agrees_with_simulated_episodes():
    rng = np.random.default_rng(5)
    mdp = worlds.dirichlet([2, 4, 3], 3, rng)
    policy = random_policy(mdp.layers, rng)
    losses = rng.normal(size=mdp.layers.n_pairs)
    losses[0] = 0
    n = 4000
    words = np.random.PCG64(1).random_raw(n * 6).reshape(n, 6)
    totals = np.empty(n)
    for t in range(n):
        states, actions = simulate_episode(mdp, policy.pi, words[t])
        totals[t] = sum(
            losses[mdp.layers.index(h + 1, s, a)]
            for h, (s, a) in enumerate(zip(states, actions, strict=True))
        )
    error = totals.std() / np.sqrt(n)
    assert abs(totals.mean() - occupancy(mdp, policy) @ losses) < 4 * error


def test_visits_follow_the_occupancy_of_a_mixture_by_chi_square():
    rng = np.random.default_rng(8)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    parts = [random_policy(mdp.layers, rng) for _ in range(2)]
    weights = np.array([0.3, 0.7])
    n = 6000
    words = np.random.PCG64(2).random_raw(n * 4).reshape(n, 4)
    counts = np.zeros(mdp.layers.n_pairs)
    for t in range(n):
        component = parts[int(rng.random() > weights[0])]
        states, actions = simulate_episode(mdp, component.pi, words[t])
        counts[mdp.layers.index(2, states[1], actions[1])] += 1
    expected = n * occupancy(mdp, Mixture(weights, parts))[-6:]
    assert np.sum((counts[-6:] - expected) ** 2 / expected) < 20.5  # chi2(5), p = 0.001


def test_trajectories_are_data_driven_and_repeatable():
    mdp = worlds.dirichlet([3, 3], 2, np.random.default_rng(0))
    words = np.random.PCG64(9).random_raw(4)
    policy = Markov.uniform(mdp.layers)
    first, again = (simulate_episode(mdp, policy.pi, words) for _ in range(2))
    assert np.array_equal(first, again)
    # the word of a state that has probability one of being 0 cannot matter, whatever it is
    sure = LayeredMDP([1.0, 0.0], [], n_actions=1)
    for word in (0, 2**64 - 1):
        states, _ = simulate_episode(sure, [1, 1, 1], np.array([word, word], dtype=np.uint64))
        assert states[0] == 0


@given(shapes)
@settings(max_examples=25, deadline=None)
def test_best_policy_beats_every_deterministic_policy(shape):
    sizes, n_actions, seed = shape
    sizes, n_actions = [min(n, 2) for n in sizes[:3]], min(n_actions, 2)
    mdp, rng = world((sizes, n_actions, seed))
    losses = rng.normal(size=mdp.layers.n_pairs)
    losses[0] = 0
    value, policy = best_policy(mdp, losses)
    assert value == pytest.approx(occupancy(mdp, policy) @ losses, abs=1e-13)
    best = np.inf
    n = sum(sizes)
    for choice in itertools.product(range(n_actions), repeat=n):
        pi = np.zeros(mdp.layers.n_pairs)
        pi[0] = 1
        pi[1 + n_actions * np.arange(n) + np.array(choice)] = 1
        best = min(best, slow_occupancy(mdp, Markov(mdp.layers, pi)) @ losses)
    assert value == pytest.approx(best, abs=1e-12)


def test_regret_of_a_play_is_exact():
    rng = np.random.default_rng(2)
    mdp = worlds.dirichlet([2, 3], 2, rng)
    losses = rng.normal(size=(7, mdp.layers.n_pairs))
    a, b = random_policy(mdp.layers, rng), random_policy(mdp.layers, rng)
    play = [a, Mixture([0.5, 0.5], [a, b]), b, b, a, b, a]
    path = regret(mdp, play, losses)
    masked = losses.copy()
    masked[:, 0] = 0
    paid = sum(occupancy(mdp, p) @ loss for p, loss in zip(play, masked, strict=True))
    assert path[-1] == pytest.approx(paid - best_policy(mdp, masked.sum(0))[0], abs=1e-12)
    # playing the best fixed policy has no regret at the end
    best = best_policy(mdp, masked.sum(0))[1]
    assert abs(regret(mdp, [best] * 7, losses)[-1]) < 1e-12


def test_layout_round_trip():
    rng = np.random.default_rng(0)
    layers = Layers([2, 1, 4], n_actions=3)
    initial, arrays = rng.random(2), [rng.random((2, 3, 1)), rng.random((1, 3, 4))]
    flat = layers.pack_transitions(initial, arrays)
    back = layers.unpack_transitions(flat)
    assert np.array_equal(back[0], initial)
    assert all(np.array_equal(x, y) for x, y in zip(back[1], arrays, strict=True))
    # P(j|s,a) of layer 2 is where the layout says
    lay = layers.table
    assert flat[lay[TRIPLE, 2] + 3 * (1 * 3) + (0 * 3 + 2)] == arrays[1][0, 2, 3]
    pairs = [rng.random((n, 3)) for n in layers.sizes]
    q = layers.pack_pairs(pairs)
    assert q[layers.index(3, 2, 1)] == pairs[2][2, 1]


@pytest.mark.parametrize(
    ("initial", "transitions", "n_actions", "message"),
    [
        ([0.5, 0.6], [], 2, "initial sums to 1.1"),
        ([1.0], [[[[0.5, 0.4], [0.5, 0.5]]]], None, r"transitions\[0\]\[0, 0\] sums to 0.9"),
        ([1.0], [[[[1.5, -0.5]]]], None, r"transitions\[0\]\[0, 0, 1\] is -0.5"),
        ([1.0], [[[0.5, 0.5]]], None, "must have shape"),
        ([1.0], [np.full((2, 1, 1), 1.0)], None, "must have shape"),
        ([1.0], [], None, "n_actions is needed"),
        ([np.nan], [], 1, "not finite"),
        ([1.0], [np.ones((1, 2, 1)), np.ones((1, 3, 1))], None, "3 actions, other layers 2"),
    ],
)
def test_wrong_transitions_are_refused_with_a_reason(initial, transitions, n_actions, message):
    with pytest.raises(ValueError, match=message):
        LayeredMDP(initial, transitions, n_actions)


def test_other_wrong_arguments_are_refused():
    layers = Layers([2], n_actions=2)
    for bad in (lambda: Layers([], 2), lambda: Layers([2, 0], 2), lambda: Layers([2], 0)):
        with pytest.raises(ValueError, match="at least"):
            bad()
    with pytest.raises(ValueError, match="shape"):
        Markov(layers, [0.5, 0.5])
    with pytest.raises(ValueError, match="sum to 1"):
        Mixture([0.5, 0.6], [Markov.uniform(layers)] * 2)
    with pytest.raises(ValueError, match="policy is for"):
        occupancy(LayeredMDP([1.0], [], n_actions=2), Markov.uniform(layers))
    with pytest.raises(IndexError, match="layer 1 has 2 states"):
        layers.index(1, 2)


def test_unreachable_states_are_legal():
    mdp = LayeredMDP([1.0, 0.0], [np.tile([1.0, 0.0], (2, 2, 1))])
    q = occupancy(mdp, Markov.uniform(mdp.layers))
    assert mdp.layers.unpack_pairs(q)[1].tolist() == [[0.5, 0.5], [0.0, 0.0]]
    assert policy_from_occupancy(mdp.layers, q).tables[1][1].tolist() == [0.5, 0.5]


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
