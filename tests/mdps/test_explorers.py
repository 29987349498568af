"""The library of exploration policies."""

import numpy as np
import pytest

import unbounded
from mdp_play import reach, reached, state_of, walk
from unbounded import SCBRL, worlds
from unbounded.core.occupancy.layout import STATE, Layers
from unbounded.core.occupancy.policies import Markov, occupancy
from unbounded.mdps import explorers
from unbounded.mdps.explorers import Library

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


S_MET = 6  # states of the lock that are met early_stop times; one may be too deep


def few(mdp, T, seed=0, **settings):
    """SCB-RL with few explorers that has just explored, and how often each state was met then."""
    sizes, n_actions = mdp.layers.sizes, mdp.layers.n_actions
    learner = SCBRL(sizes, n_actions, T, seed=seed, few=True, early_stop=4, **settings)
    rng, met = np.random.default_rng(seed), [np.zeros(n) for n in sizes]
    while learner.phase == "exploring":
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(mdp.layers.horizon))
        learner.tell(plan, states, actions, np.zeros(mdp.layers.horizon))
        for h, s in enumerate(states):
            met[h][s] += 1
    return learner, np.concatenate(met)


@pytest.mark.parametrize("seed", range(4))
def test_few_explorers(seed, monkeypatch):
    """One policy per state that was not met anyway, no two of them equal, in one budget."""
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    mdp = worlds.combination_lock(4, 3, np.random.default_rng(seed))
    learner, met = few(mdp, 2000, seed, exploration_cap=0.2)
    library, lay = state_of(learner).search.library, mdp.layers.table
    assert learner.episodes_explored <= 400
    assert np.sum(met >= 4) >= S_MET
    size, S = library.size, mdp.layers.n_states
    assert size < S - 1
    assert library.weight[:size].sum() == pytest.approx(1.0, abs=1e-12)
    shares = library.weight[:size] * (S - 1)
    assert np.allclose(shares, np.round(shares))  # whole numbers of states
    seen = set()
    for k in range(size):
        layer, _ = explorers.place(lay, int(library.target[k]))
        choice = library.choice[k * S + 1 : k * S + lay[STATE, layer]]
        seen.add((layer, *choice))
    assert len(seen) == size
    # Even actions, which are there for the rest, and what was sought for the deep state.
    assert any(layer == 1 for layer, *_ in seen)
    deep = int(np.argmin(reached_evenly(mdp)))
    mixed = sum(
        w * occupancy(mdp, policy)[pair_slice(mdp, deep)].sum() for w, policy in policies(learner)
    )
    assert mixed > 2 * reached_evenly(mdp)[deep]
    # The control: without `few`, states that were met on the way have policies of their own.
    control = SCBRL(mdp.layers.sizes, 3, 2000, seed=seed, few=False, exploration_cap=0.2)
    assert control.explored.per_state * (S - 1) > 390
    assert state_of(control).search.progress.target == 0


def test_a_budget_that_does_not_suffice(monkeypatch):
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    mdp = worlds.dirichlet([5, 6, 7], 2, np.random.default_rng(3))
    learner, met = few(mdp, 100, exploration_cap=0.07)
    assert learner.episodes_explored == 7
    assert learner.explored.capped
    assert np.any(met < 4)
    library = state_of(learner).search.library
    assert library.weight[: library.size].sum() == pytest.approx(1.0, abs=1e-12)
    copy = SCBRL.load(learner.save())
    assert copy.phase == "playing"


def policies(learner):
    """Weights and policies of the whole library."""
    library = state_of(learner).search.library
    for k in range(library.size):
        pi = np.empty(learner.layers.n_pairs)
        explorers.fill_component(learner.layers.table, learner.layers.even, library, k, pi)
        yield library.weight[k], Markov(learner.layers, pi)


def pair_slice(mdp, number):
    h, s = explorers.place(mdp.layers.table, number)
    first = mdp.layers.index(h, s)
    return slice(first, first + mdp.layers.n_actions)


def reached_evenly(mdp):
    """Probability of each state under even actions."""
    q = occupancy(mdp, Markov.uniform(mdp.layers))
    return np.array([q[pair_slice(mdp, k)].sum() for k in range(mdp.layers.n_states - 1)])
