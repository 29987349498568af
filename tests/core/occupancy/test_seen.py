"""Transitions that were seen: against the dense model, and what is refused."""

import numpy as np
import pytest

from unbounded.core.occupancy.layout import Layers, roll_forward
from unbounded.core.occupancy.seen import (
    expected,
    fits,
    grown,
    mean,
    nothing_seen,
    observe,
    reach,
)

LAYERS = Layers([2, 4, 3], n_actions=2)


def walked(episodes, seed=0, layers=LAYERS):
    """What is seen in so many random episodes, and the dense counts of the transitions."""
    rng = np.random.default_rng(seed)
    seen, H = nothing_seen(layers), layers.horizon
    M = np.zeros(layers.n_transitions)
    initial, arrays = layers.unpack_transitions(M)
    arrays = [np.zeros(a.shape) for a in arrays]
    for _ in range(episodes):
        states = np.array([rng.integers(n) for n in layers.sizes])
        actions = rng.integers(layers.n_actions, size=H)
        while not fits(H, seen):
            seen = grown(seen)
        seen = seen._replace(size=observe(layers.table, seen, states, actions))
        initial[states[0]] += 1
        for h, array in enumerate(arrays):
            array[states[h], actions[h], states[h + 1]] += 1
    return seen, initial, arrays


def dense(initial, arrays, layers=LAYERS):
    """The model of the counts, flat over all triples."""
    smooth = [(a + 1 / a.shape[-1]) / (a.sum(axis=-1, keepdims=True) + 1) for a in arrays]
    return layers.pack_transitions((initial + 1 / initial.size) / (initial.sum() + 1), smooth)


@pytest.mark.parametrize("episodes", [0, 1, 7, 200])
def test_occupancies_and_means_are_those_of_the_dense_model(episodes):
    seen, initial, arrays = walked(episodes)
    P, rng = dense(initial, arrays), np.random.default_rng(1)
    tables = [rng.dirichlet(np.ones(2), size=n) for n in LAYERS.sizes]
    pi = LAYERS.pack_pairs(tables, first=1.0)
    mass, right, q = np.empty(10), np.empty(10), np.empty(LAYERS.n_pairs)
    reach(LAYERS.table, seen, pi, mass)
    roll_forward(LAYERS.table, P, pi, right, q)
    assert mass == pytest.approx(right, rel=1e-12)
    V, B = rng.normal(size=(2, LAYERS.n_states))
    _, smooth = LAYERS.unpack_transitions(P)
    ends = np.cumsum([1, *LAYERS.sizes])
    for h, array in enumerate(smooth):
        first, end = int(ends[h + 1]), int(ends[h + 2])
        means = mean(V, first, end), mean(B, first, end)
        for s in range(LAYERS.sizes[h]):
            for a in range(2):
                found = expected(seen, LAYERS.index(h + 1, s, a), V, B, *means)
                assert found[0] == pytest.approx(array[s, a] @ V[first:end], rel=1e-12)
                assert found[1] == pytest.approx(array[s, a] @ B[first:end], rel=1e-12)


def test_it_keeps_each_transition_once():
    seen, initial, arrays = walked(200)
    assert seen.size == sum(np.count_nonzero(a) for a in (initial, *arrays))
    assert seen.M.sum() == 600
    assert seen.N[0] == 200
    seen.check()
    seen.check_for(LAYERS)


def checked(seen):
    seen.check()
    seen.check_for(LAYERS)


DAMAGES = {
    "too many": lambda s: s._replace(size=s.M.size + 1),
    "a circle": lambda s: s.after.__setitem__(0, 0),
    "two in one place": lambda s: s.begin.__setitem__(3, 0),
    "a lost one": lambda s: s.begin.__setitem__(0, -1),
    "a link to nowhere": lambda s: s.after.__setitem__(int(np.argmin(s.after)), s.size + 5),
    "a count": lambda s: s.M.__setitem__(0, s.M[0] + 1.0),
    "a negative count": lambda s: s.M.__setitem__(0, -1.0),
    "another layer": lambda s: s.to.__setitem__(0, LAYERS.n_states - 1),
    "no state": lambda s: s.to.__setitem__(0, 10**9),
    "before the first": lambda s: s.to.__setitem__(0, -1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_lists_are_rejected(damage):
    seen = walked(30)[0]
    checked(seen)
    seen = DAMAGES[damage](seen) or seen
    with pytest.raises(ValueError, match=r"transitions|transition|visits|counts|seen"):
        checked(seen)


def test_the_last_layer_leads_nowhere():
    seen = walked(30)[0]
    seen.begin[0], last = -1, LAYERS.n_pairs - 1
    seen.begin[last] = 0
    seen.N[0], seen.N[last] = 0.0, 30.0
    seen.check()
    with pytest.raises(ValueError, match="no state of the next layer"):
        seen.check_for(LAYERS)
