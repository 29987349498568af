"""The flat layout of layered MDPs and the kernels on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_facades import episode
from unbounded import worlds
from unbounded.core.occupancy.layout import (
    STATE,
    TRIPLE,
    Layers,
    backward_induction,
    condition,
    dots,
    draw,
    horizon,
    roll_forward,
)

seeds = st.integers(0, 2**32 - 1)


def random_world(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 10, size=rng.integers(1, 5))
    return worlds.dirichlet(sizes, int(rng.integers(1, 5)), rng, concentration=0.5), rng


def word(u):
    """The random word whose uniform number is u."""
    return np.uint64(int(u * 2**53) << 11)


def test_the_table_of_offsets():
    layers = Layers([2, 3], n_actions=4)
    assert layers.table.tolist() == [
        [1, 2, 3, 1],  # states
        [1, 4, 4, 0],  # actions
        [0, 1, 3, 6],  # first state
        [0, 1, 9, 21],  # first pair
        [0, 2, 26, 26],  # first transition: 1 x 2, then 8 x 3
    ]
    assert horizon(layers.table) == layers.horizon == 2
    assert (layers.n_states, layers.n_pairs, layers.n_transitions) == (6, 21, 26)


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


def test_draws_follow_cumulative_sums_and_skip_zeros():
    P = np.array([9.0, 0.0, 9.0, 0.25, 9.0, 0.0, 9.0, 0.75, 9.0, 0.0])  # every other from 1 on
    for u, expected in ((0.0, 1), (0.2499, 1), (0.25, 3), (0.5, 3), (1 - 2**-53, 3)):
        assert draw(P, 1, 2, 5, word(u)) == expected
    short = np.array([0.5, 0.4999999999, 0.0])
    assert draw(short, 0, 1, 3, word(1 - 2**-53)) == 1  # past the last sum: the last that can be


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_dots_are_sums_over_the_pairs(seed):
    rng = np.random.default_rng(seed)
    m, n, start = (int(rng.integers(*r)) for r in ((1, 20), (1, 14), (0, 5)))
    x, P = rng.normal(size=m), rng.normal(size=start + n * m + 3)
    out = np.full(n + 1, 7.0)
    dots(m, n, x, P, start, out)
    expected = P[start : start + n * m].reshape(n, m) @ x
    assert np.allclose(out[:n], expected, rtol=0, atol=1e-13)
    assert out[n] == 7.0


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_kernels_agree_with_the_definitions_on_ordinary_arrays(seed):
    mdp, rng = random_world(seed)
    layers, lay = mdp.layers, mdp.layers.table
    tables = [rng.dirichlet(np.full(layers.n_actions, 0.3), n) for n in layers.sizes]
    pi = layers.pack_pairs(tables, first=1.0)
    mass, q = np.empty(layers.n_states), np.empty(layers.n_pairs)
    roll_forward(lay, mdp.P, pi, mass, q)
    states, expected = mdp.initial, [[1.0]]
    for h, table in enumerate(tables):
        expected.append((states[:, None] * table).ravel())
        if h < len(mdp.transitions):
            states = np.einsum("s,sa,sat->t", states, table, mdp.transitions[h])
    assert np.allclose(q, np.concatenate(expected), rtol=0, atol=1e-14)
    assert mass[0] == q[0] == 1.0
    assert np.allclose(mass[1:], np.concatenate([t.sum(1) for t in layers.unpack_pairs(q)]))

    again = np.full(layers.n_pairs, np.nan)
    condition(lay, q, again)
    seen = np.repeat(mass[1:] > 0, layers.n_actions)
    assert np.allclose(again[1:][seen], pi[1:][seen], rtol=1e-12, atol=1e-15)
    condition(lay, np.zeros(layers.n_pairs), again)
    assert np.all(again[1:] == 1.0 / layers.n_actions)

    losses = rng.normal(size=layers.n_pairs)
    value, best = np.empty(layers.n_states), np.empty(layers.n_pairs)
    total = backward_induction(lay, mdp.P, losses, value, best)
    after = np.zeros(1)
    for h in range(layers.horizon - 1, -1, -1):
        cost = layers.unpack_pairs(losses)[h]
        if h < len(mdp.transitions):
            cost = cost + mdp.transitions[h] @ after
        after = cost.min(1)
        first = lay[STATE, h + 1]
        assert np.allclose(value[first : first + after.size], after, rtol=0, atol=1e-13)
        assert np.array_equal(
            layers.unpack_pairs(best)[h], np.eye(layers.n_actions)[cost.argmin(1)]
        )
    assert total == value[0] == pytest.approx(mdp.initial @ after, abs=1e-13)


def test_the_first_of_equally_good_actions_is_taken():
    mdp = worlds.dirichlet([2, 2], 3, np.random.default_rng(0))
    value, pi = np.empty(5), np.empty(13)
    backward_induction(mdp.layers.table, mdp.P, np.zeros(13), value, pi)
    assert np.array_equal(pi[1:], np.tile([1.0, 0.0, 0.0], 4))


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_episodes_use_two_words_per_layer(seed):
    mdp, rng = random_world(seed)
    layers = mdp.layers
    tables = [rng.dirichlet(np.ones(layers.n_actions), n) for n in layers.sizes]
    u = rng.random(2 * layers.horizon)
    states, actions = np.empty((2, layers.horizon), np.int64)
    words = np.array([word(x) for x in u])
    pi = layers.pack_pairs(tables, first=1.0)
    episode(layers.table, mdp.P, pi, words, states, actions)
    for h in range(layers.horizon):
        before = mdp.initial if h == 0 else mdp.transitions[h - 1][states[h - 1], actions[h - 1]]
        assert states[h] == min(np.searchsorted(np.cumsum(before), u[2 * h], "right"), before.size)
        taken = np.cumsum(tables[h][states[h]])
        assert actions[h] == np.searchsorted(taken, u[2 * h + 1], "right")


def test_transitions_given_flat_are_checked():
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(1))
    checked = mdp.layers.checked_transitions(mdp.P)
    assert np.allclose(checked, mdp.P, rtol=1e-15)
    wrong = mdp.P.copy()
    wrong[-1] += 0.1
    with pytest.raises(ValueError, match=r"transitions of layer 1\[3\] sums to 1.1"):
        mdp.layers.checked_transitions(wrong)
    with pytest.raises(ValueError, match="flat vector of shape"):
        mdp.layers.checked_transitions(mdp.P[:-1])


def test_wrong_arguments_are_rejected():
    layers = Layers([2], n_actions=2)
    for bad in (lambda: Layers([], 2), lambda: Layers([2, 0], 2), lambda: Layers([2], 0)):
        with pytest.raises(ValueError, match="at least"):
            bad()
    for place in ((1, 2), (1, -1), (1, 0, 2), (0, 1)):
        with pytest.raises(IndexError, match="states and"):
            layers.index(*place)
    with pytest.raises(IndexError, match="layer h must be in"):
        layers.index(2, 0)
    with pytest.raises(ValueError, match="one per layer"):
        layers.pack_pairs([])
    with pytest.raises(ValueError, match=r"arrays\[0\] must have shape \(2, 2\)"):
        layers.pack_pairs([[[1.0, 2.0, 3.0]]])
