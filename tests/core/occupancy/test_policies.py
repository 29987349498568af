"""Policies, mixtures, occupancy measures and regret."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_facades import policy_from_occupancy, regret, simulate_episode
from unbounded import worlds
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, Mixture, best_policy, occupancy

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


def test_unreachable_states_are_legal():
    mdp = LayeredMDP([1.0, 0.0], [np.tile([1.0, 0.0], (2, 2, 1))])
    q = occupancy(mdp, Markov.uniform(mdp.layers))
    assert mdp.layers.unpack_pairs(q)[1].tolist() == [[0.5, 0.5], [0.0, 0.0]]
    assert policy_from_occupancy(mdp.layers, q).tables[1][1].tolist() == [0.5, 0.5]


def test_wrong_arguments_are_rejected():
    layers = Layers([2], n_actions=2)
    with pytest.raises(ValueError, match="shape"):
        Markov(layers, [0.5, 0.5])
    with pytest.raises(ValueError, match="sum to 1"):
        Mixture([0.5, 0.6], [Markov.uniform(layers)] * 2)
    with pytest.raises(ValueError, match="one entry per policy"):
        Mixture([1.0], [Markov.uniform(layers)] * 2)
    with pytest.raises(ValueError, match="the same layers"):
        Mixture([0.5, 0.5], [Markov.uniform(layers), Markov.uniform(Layers([3], 2))])
    with pytest.raises(ValueError, match="policy is for"):
        occupancy(LayeredMDP([1.0], [], n_actions=2), Markov.uniform(layers))
    with pytest.raises(ValueError, match="q must be >= 0"):
        policy_from_occupancy(layers, [1.0, 0.5, 0.5, -0.1, 0.1])
