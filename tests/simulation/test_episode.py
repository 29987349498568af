"""One simulated episode: its book, against exact rational arithmetic, and its course."""

from fractions import Fraction

import numpy as np
import pytest

from loss_helpers import uniforms
from mdp_play import paid, walk_of
from unbounded import Plan, worlds
from unbounded.core.occupancy.layout import PAIR, Layers
from unbounded.simulation.episode import (
    EXPECTED,
    LARGEST,
    PAID,
    UNIT,
    new_book,
    new_walk,
    play,
    tally,
)

MDP = worlds.dirichlet([2, 3, 2], 2, np.random.default_rng(0))
LAYERS = MDP.layers
LAY = LAYERS.table
MOST = np.finfo(float).max


def close(value, unit, expected, size):
    """Within rounding of the exact number; ``size`` is that of the terms."""
    error = Fraction(float(value)) / Fraction(float(unit)) - expected
    assert abs(error) <= size * Fraction(2) ** -40


@pytest.mark.parametrize("scales", [[1.0] * 5, [1e-300, 1.0, 1e-3, 1e300, MOST], [MOST] * 4])
def test_the_book(scales):
    """Expected and cumulative losses and extremes, at scales that come and go."""
    rng = np.random.default_rng(1)
    book, X = new_book(LAYERS), LAYERS.n_pairs
    sums, expected = [Fraction(0)] * X, Fraction(0)
    seen = []
    for scale in scales:
        losses = scale * rng.uniform(-1.0, 1.0, size=X)
        losses[0] = np.nan  # the dummy pair is not read
        q = np.concatenate([[1.0], *[rng.dirichlet(np.ones(2 * n)) for n in LAYERS.sizes]])
        tally(LAY, losses, q, book)
        seen.append(losses)
        largest = np.nanmax(np.abs(seen))
        unit = book.sums[UNIT]
        assert book.sums[LARGEST] == largest
        assert 0.5 <= largest * unit < 1.0  # it is a power of two that brings it below 1
        assert np.frexp(unit)[0] == 0.5
        for p in range(1, X):
            sums[p] += Fraction(float(losses[p]))
            expected += Fraction(float(q[p])) * Fraction(float(losses[p]))
            close(book.cumulative[p], unit, sums[p], Fraction(float(largest)) * 10)
        close(book.sums[EXPECTED], unit, expected, Fraction(float(largest)) * 100)
        for h in range(3):
            layer = np.array(seen)[:, LAY[PAIR, h + 1] : LAY[PAIR, h + 2]]
            assert (book.low[h], book.high[h]) == (layer.min(), layer.max())
    assert book.cumulative[0] == 0.0


def test_a_new_unit_changes_no_value():
    """Everything in the book is in it: expected, paid and cumulative losses."""
    book, q = new_book(LAYERS), np.full(LAYERS.n_pairs, 0.1)
    losses = np.random.default_rng(2).random(LAYERS.n_pairs)
    losses[1] = 0.9
    tally(LAY, losses, q, book)
    assert book.sums[UNIT] == 1.0
    book.sums[PAID] = 0.7
    before, cumulative = book.sums.copy(), book.cumulative.copy()
    spike = np.zeros(LAYERS.n_pairs)
    spike[3] = 1000.0
    tally(LAY, spike, np.zeros(LAYERS.n_pairs), book)
    assert book.sums[UNIT] == 2.0**-10
    assert book.sums[PAID] == 0.7 * 2.0**-10
    assert book.sums[EXPECTED] == before[EXPECTED] * 2.0**-10
    expected = cumulative.copy()
    expected[3] += 1000.0
    np.testing.assert_allclose(book.cumulative * 2.0**10, expected, rtol=1e-15)


def test_the_smallest_losses():
    """2^1074 is no float: the unit stops at 2^1000, and nothing is lost."""
    book, q = new_book(LAYERS), np.full(LAYERS.n_pairs, 0.5)
    tally(LAY, np.zeros(LAYERS.n_pairs), q, book)
    assert book.sums[UNIT] == 1.0  # nothing seen
    tally(LAY, np.full(LAYERS.n_pairs, 5e-324), q, book)
    assert book.sums[UNIT] == 2.0**1000
    assert book.cumulative[1] == np.ldexp(5e-324, 1000) > 0.0


def uniform_words(rng):
    return rng.integers(2**64, size=4, dtype=np.uint64)


def test_the_course_of_an_episode():
    """Actions by the learner's words, as `Plan.act` has them; states by the environment's stream,
    which is a function of the key and the episode."""
    rng = np.random.default_rng(3)
    walk, book = new_walk(LAYERS), new_book(LAYERS)
    total = 0.0
    for t in range(1, 200):
        key, words = int(rng.integers(2**53)), uniform_words(rng)
        tables = [rng.dirichlet(np.ones(2), size=n) for n in LAYERS.sizes]
        walk.pi[:] = LAYERS.pack_pairs(tables, first=1.0)
        walk.losses[:] = rng.normal(size=LAYERS.n_pairs)
        book.sums[UNIT] = 0.25
        play(LAY, MDP.P, key, t, words, walk, book)
        plan = Plan(LAYERS, walk.pi, -1, words, 0, "")
        states, actions = walk_of(MDP, plan, key, t)
        assert walk.states.tolist() == states.tolist()
        assert walk.actions.tolist() == actions.tolist()
        assert np.array_equal(walk.seen, paid(LAYERS, walk.losses, states, actions))
        for loss in walk.seen:
            total += loss * 0.25
        assert book.sums[PAID] == total


def test_states_have_the_transitions_of_the_mdp():
    mdp = worlds.dirichlet([3], 1, np.random.default_rng(4))
    layers = Layers([3], 1)
    walk, book, counts = new_walk(layers), new_book(layers), np.zeros(3)
    walk.pi[:], walk.losses[:] = 1.0, 0.0
    words = np.zeros(2, np.uint64)
    for t in range(3000):
        play(layers.table, mdp.P, 12345, t, words, walk, book)
        counts[walk.states[0]] += 1
    expected = 3000 * mdp.initial
    assert ((counts - expected) ** 2 / expected).sum() < 2 + 5 * 2
    assert uniforms(12345 + 7919, 0, 1)[0] != uniforms(12345, 0, 1)[0]  # not the adversary's
