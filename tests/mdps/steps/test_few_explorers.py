"""Few exploration policies, chosen by counts."""

import itertools

import numpy as np
import pytest

import unbounded
from mdp_play import grouped, reach, reached, state_of, walk
from unbounded import SCBRL, worlds
from unbounded.core.occupancy.mdp import Markov, occupancy
from unbounded.mdps.steps import explorers, few_explorers


def counts_of(mdp, episodes, seed, actions=None):
    """Visits N and transitions M of ``episodes`` of even actions, or of ``actions``."""
    rng = np.random.default_rng(seed)
    layers = mdp.layers
    shapes = [(1, 1, layers.sizes[0])]
    shapes += [
        (n, layers.n_actions, m) for n, m in zip(layers.sizes, layers.sizes[1:], strict=False)
    ]
    M, last = [np.zeros(shape) for shape in shapes], np.zeros((layers.sizes[-1], layers.n_actions))
    for _ in range(episodes):
        state = rng.choice(layers.sizes[0], p=mdp.initial)
        M[0][0, 0, state] += 1
        for h, P in enumerate(mdp.transitions):
            action = rng.integers(layers.n_actions) if actions is None else actions[h]
            after = rng.choice(P.shape[2], p=P[state, action])
            M[h + 1][state, action, after] += 1
            state = after
        last[state, rng.integers(layers.n_actions)] += 1
    N = [part.sum(axis=2) for part in M] + [last]
    return M, N


def chosen(mdp, M, N, sought=()):
    """Library and serving policies that `choose` makes of the counts."""
    layers = mdp.layers
    library = explorers.new_library(layers)
    S, X = layers.n_states, layers.n_pairs
    best, serves = np.full(S - 1, np.nan), np.full(S - 1, np.nan)
    size = few_explorers.choose(
        layers.table, layers.even, np.concatenate([part.ravel() for part in N]),
        layers.pack_transitions(M[0][0, 0], M[1:]), np.array(sought, dtype=float), library, best,
        serves, np.empty(S), np.empty(X),
    )  # fmt: skip
    return library._replace(size=size), best, serves


def brute_force(mdp, M, N, number):
    """The largest probability of a state over all deterministic policies, by the counts with one
    success less."""
    layers = mdp.layers
    P = [np.maximum(m - 1, 0) / (n[..., None] + 1) for m, n in zip(M, N, strict=False)]
    layer, s = explorers.place(layers.table, number)
    sizes = layers.sizes[: layer - 1]
    best = 0.0
    for flat in itertools.product(range(layers.n_actions), repeat=sum(sizes)):
        mass, at = P[0][0, 0], 0
        for h, n in enumerate(sizes):
            actions = np.array(flat[at : at + n])
            mass, at = mass @ P[h + 1][np.arange(n), actions], at + n
        best = max(best, mass[s])
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("episodes", [0, 1, 7, 60])
def test_chosen_policies_reach_each_state_half_as_often_as_any(seed, episodes):
    """By the counts, against a search over all policies; and none of them is superfluous."""
    rng = np.random.default_rng(seed)
    mdp = [
        worlds.dirichlet([2, 2, 2], 2, rng, concentration=0.2), worlds.combination_lock(4, 2, rng),
    ][seed % 2]  # fmt: skip
    M, N = counts_of(mdp, episodes, seed)
    library, best, serves = chosen(mdp, M, N)
    layers, S = mdp.layers, mdp.layers.n_states
    met = LayeredCounts(layers, M, N)
    shares = np.zeros(library.size)
    for number in range(S - 1):
        assert best[number] == pytest.approx(brute_force(mdp, M, N, number), abs=1e-12)
        assert (serves[number] >= 0) == (best[number] > 0)
        k = max(0, int(serves[number]))
        shares[k] += 1 / (S - 1)
        reaches = [met.reach(library, j, number) for j in range(library.size)]
        if best[number] > 0:
            assert reaches[k] >= best[number] / 2 - 1e-12
        if number in library.target[1 : library.size]:  # no earlier one would have done
            own = int(np.flatnonzero(library.target[1 : library.size] == number)[0]) + 1
            assert max(reaches[:own]) < best[number] / 2 + 1e-12
    np.testing.assert_allclose(library.weight[: library.size], shares, atol=1e-12)
    pi = np.empty(layers.n_pairs)
    explorers.fill_component(layers.table, layers.even, library, 0, pi)
    assert np.array_equal(pi, layers.even)


class LayeredCounts:
    """Reach by the counts, in plain numpy; where there are none, nothing is reached."""

    def __init__(self, layers, M, N):
        self.layers = layers
        self.P = [m / np.maximum(n, 1)[..., None] for m, n in zip(M, N, strict=False)]

    def reach(self, library, k, number):
        layer, s = explorers.place(self.layers.table, number)
        its, _ = explorers.place(self.layers.table, int(library.target[k]))
        if its > layer:  # its actions there are not even
            return 0.0
        pi = np.empty(self.layers.n_pairs)
        explorers.fill_component(self.layers.table, self.layers.even, library, k, pi)
        mass = self.P[0][0, 0]
        for P, table in zip(self.P[1:layer], self.layers.unpack_pairs(pi), strict=False):
            mass = np.einsum("s,sa,say->y", mass, table, P)
        return float(mass[s])


def test_states_that_are_not_sought_have_no_share():
    mdp = worlds.combination_lock(4, 3, np.random.default_rng(2))
    right = [int(np.argmax(P[0, :, 0])) for P in mdp.transitions]
    M, N = counts_of(mdp, 20, 3, right)  # even actions have no chance by these counts
    library, _, serves = chosen(mdp, M, N)
    assert library.size > 1
    deep = 5  # state 0 of the last layer
    assert library.weight[int(serves[deep])] == pytest.approx(1 / 7)
    sought = np.ones(7)
    sought[deep] = 0.0
    library, _, serves = chosen(mdp, M, N, sought)
    assert library.weight[int(serves[deep])] == 0.0
    assert library.weight[: library.size].sum() == pytest.approx(1.0)


def few(mdp, T, seed=0, **settings):
    """SCB-RL with few explorers after ``T`` episodes without losses."""
    sizes, n_actions = mdp.layers.sizes, mdp.layers.n_actions
    learner = SCBRL(sizes, n_actions, T, seed=seed, **grouped(settings))
    rng = np.random.default_rng(seed)
    for _ in range(T):
        plan = learner.ask()
        states, actions = walk(mdp, plan, rng.random(mdp.layers.horizon))
        learner.tell(plan, states, actions, np.zeros(mdp.layers.horizon))
    return learner


@pytest.mark.parametrize("seed", range(3))
def test_few_explorers_reach_every_state(seed, monkeypatch):
    """In the world itself, by what was seen: half as often as any policy, within the budget."""
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    mdp = worlds.combination_lock(4, 3, np.random.default_rng(seed))
    learner = few(mdp, 1100, seed)
    assert learner.episodes_explored <= 0.03 * 1100
    found, best = learner.explorers(), reach(mdp)
    assert np.all(reached(mdp, found) >= 0.5 * best - 1e-12)
    library, S = state_of(learner).search.library, mdp.layers.n_states
    assert library.size < S - 1
    assert library.weight[: library.size].sum() == pytest.approx(1.0, abs=1e-12)
    # The control: even actions do not, and they are policy 0.
    assert reached_evenly(mdp).min() < 0.5 * best.min()


def test_a_budget_that_does_not_suffice(monkeypatch):
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    mdp = worlds.dirichlet([5, 6, 7], 2, np.random.default_rng(3))
    learner = few(mdp, 50, exploration_cap=0.06, early_stop=4)
    assert learner.episodes_explored == 3
    assert learner.explored.capped
    library = state_of(learner).search.library
    assert library.weight[: library.size].sum() == pytest.approx(1.0, abs=1e-12)
    copy = SCBRL.load(learner.save())
    assert copy.phase == "playing"


def pair_slice(mdp, number):
    h, s = explorers.place(mdp.layers.table, number)
    first = mdp.layers.index(h, s)
    return slice(first, first + mdp.layers.n_actions)


def reached_evenly(mdp):
    """Probability of each state under even actions."""
    q = occupancy(mdp, Markov.uniform(mdp.layers))
    return np.array([q[pair_slice(mdp, k)].sum() for k in range(mdp.layers.n_states - 1)])
