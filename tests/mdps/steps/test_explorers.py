"""The library of exploration policies."""

import numpy as np
import pytest

from mdp_play import reach, reached
from unbounded import worlds
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import Markov, occupancy
from unbounded.mdps.steps import explorers
from unbounded.mdps.steps.explorers import Library

LAYERS = Layers([2, 3], 2)
LAY = LAYERS.table
EVEN = LAYERS.even
CHOICE = np.array([0, 1, 0, 1, 0, 1], dtype=float)  # of s_0, the two, and the three states


def library_of(*parts, capacity=8):
    """``parts``: (weight, target, choice) of each policy."""
    library = explorers.new_library(LAYERS, capacity)
    for k, (weight, target, choice) in enumerate(parts):
        library.weight[k], library.target[k] = weight, target
        library.choice[6 * k : 6 * k + 6] = choice
    return library._replace(size=len(parts))


def test_states_are_numbered_through_the_layers():
    assert [explorers.place(LAY, k) for k in range(5)] == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("layer", "first", "second"),
    [
        (0, [[0, 1], [1, 0]], [[0, 1], [1, 0], [0, 1]]),  # no target: deterministic everywhere
        (2, [[0, 1], [1, 0]], [[0.5, 0.5]] * 3),
        (1, [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 3),
    ],
)
def test_e33_actions_are_uniform_from_the_targets_layer_on(layer, first, second):
    pi = np.full(LAYERS.n_pairs, np.nan)
    explorers.fill_policy(LAY, EVEN, CHOICE, layer, pi)
    tables = LAYERS.unpack_pairs(pi)
    assert pi[0] == 1.0
    assert tables[0].tolist() == first
    assert tables[1].tolist() == second


def test_e33_the_override_does_not_change_the_reach_of_the_target():
    """Each episode visits the target at most once, whatever is done there and after."""
    mdp = worlds.dirichlet([2, 3, 3], 2, np.random.default_rng(3))
    rng = np.random.default_rng(4)
    for _ in range(5):
        choice = rng.integers(2, size=mdp.layers.n_states).astype(float)
        plain, overridden = np.empty(mdp.layers.n_pairs), np.empty(mdp.layers.n_pairs)
        explorers.fill_policy(mdp.layers.table, mdp.layers.even, choice, 0, plain)
        explorers.fill_policy(mdp.layers.table, mdp.layers.even, choice, 2, overridden)
        q, other = (occupancy(mdp, Markov(mdp.layers, pi)) for pi in (plain, overridden))
        at = slice(mdp.layers.index(2, 0), mdp.layers.index(2, 2, 1) + 1)
        mass, other_mass = (x[at].reshape(3, 2).sum(axis=1) for x in (q, other))
        np.testing.assert_allclose(mass, other_mass, rtol=1e-14)
        assert not np.allclose(q[at], other[at])


def test_a_policy_is_drawn_by_weight():
    library = library_of((0.25, 0, CHOICE), (0.0, 1, CHOICE), (0.5, 2, CHOICE), (0.25, 3, CHOICE))
    drawn = [explorers.draw(library, x) for x in (0.0, 0.249, 0.25, 0.5, 0.7499, 0.75, 0.999)]
    assert drawn == [0, 0, 2, 2, 2, 3, 3]
    assert explorers.draw(library, 1.0) == 3  # past the last sum by rounding
    library = library_of((0.0, 0, CHOICE), (1.0, 1, CHOICE), (0.0, 2, CHOICE))
    assert [explorers.draw(library, x) for x in (0.0, 0.5, 1.0)] == [1, 1, 1]


def test_e12_the_occupancy_of_the_library_is_the_weighted_mean_of_its_policies():
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(5))
    library = library_of((0.1, 2, CHOICE), (0.3, 3, 1 - CHOICE), (0.6, 0, CHOICE))
    X, S = LAYERS.n_pairs, LAYERS.n_states
    q, pi = np.full(X, np.nan), np.empty(X)
    explorers.mean_occupancy(LAY, EVEN, library, mdp.P, np.empty(X), np.empty(S), np.empty(X), q)
    expected = np.zeros(X)
    for k, weight in enumerate((0.1, 0.3, 0.6)):
        explorers.fill_component(LAY, EVEN, library, k, pi)
        expected += weight * occupancy(mdp, Markov(LAYERS, pi))
    np.testing.assert_allclose(q, expected, rtol=1e-14)


def test_a_library_has_room_for_a_policy_per_state_at_least():
    assert explorers.new_library(LAYERS).weight.size == 32
    wide = Layers([50], 2)
    library = explorers.new_library(wide)
    assert library.weight.size == library.target.size == 52
    assert library.choice.size == 52 * 51
    assert library.size == 0


def test_growing_keeps_every_policy():
    parts = [(0.5, 2, CHOICE), (0.25, 3, 1 - CHOICE), (0.25, 4, CHOICE)]
    library = library_of(*parts)
    more = explorers.grown(library)
    assert isinstance(more, Library)
    assert more.size == 3
    for before, after in zip(library[1:], more[1:], strict=True):
        assert after.size == 2 * before.size
        assert np.array_equal(after[: before.size], before)
        assert not after[before.size :].any()


def test_mixtures_are_those_of_the_states_that_are_done():
    parts = [(2.0, 0, CHOICE), (1.0, 1, CHOICE), (6.0, 2, CHOICE), (2.0, 2, 1 - CHOICE)]
    library = library_of(*parts, (9.0, 3, CHOICE))
    found = explorers.mixtures(LAYERS, library, 3)
    assert list(found) == [(0, 0), (0, 1), (1, 0)]
    assert found[1, 0].weights.tolist() == [0.75, 0.25]
    first, second = found[1, 0].policies
    assert first.tables[0].tolist() == [[0, 1], [1, 0]]
    assert second.tables[0].tolist() == [[1, 0], [0, 1]]
    assert explorers.mixtures(LAYERS, library, 0) == {}


def test_the_oracle_reaches_every_state_as_often_as_possible():
    mdp = worlds.dirichlet([2, 3, 2], 3, np.random.default_rng(6))
    library = explorers.oracle(mdp.layers, mdp.P)
    assert library.size == 7
    assert library.weight[:7].tolist() == [1 / 7] * 7
    found = explorers.mixtures(mdp.layers, library, 7)
    assert reached(mdp, found) == pytest.approx(reach(mdp), abs=1e-12)
