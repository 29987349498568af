"""Ready-made MDPs are what they say."""

import numpy as np
import pytest

from unbounded import worlds
from unbounded.core.occupancy.mdp import Markov, best_policy, occupancy


def rng(seed=0):
    return np.random.default_rng(seed)


def test_dirichlet():
    mdp = worlds.dirichlet([2, 3, 4], 5, rng())
    assert mdp.initial.shape == (2,)
    assert [P.shape for P in mdp.transitions] == [(2, 5, 3), (3, 5, 4)]
    assert np.array_equal(worlds.dirichlet([2, 3, 4], 5, rng()).P, mdp.P)
    assert not np.array_equal(worlds.dirichlet([2, 3, 4], 5, rng(1)).P, mdp.P)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 9.0])
def test_dirichlet_has_the_variance_of_its_concentration(concentration):
    """A coordinate of a symmetric Dirichlet over n has variance (n - 1) / (n^2 (n c + 1))."""
    n = 4
    mdp = worlds.dirichlet([20, n], 50, rng(), concentration)
    P = mdp.transitions[0].reshape(-1, n)
    np.testing.assert_allclose(P.mean(axis=0), 1 / n, atol=0.05)
    variance = (n - 1) / (n**2 * (n * concentration + 1))
    assert P.var(axis=0).mean() == pytest.approx(variance, rel=0.1)
    starts = [worlds.dirichlet([n], 1, rng(s), concentration).initial for s in range(1000)]
    assert np.var(starts, axis=0).mean() == pytest.approx(variance, rel=0.1)


def test_concentration_is_1_by_default():
    one, other = (worlds.dirichlet([2, 3], 2, rng(), *c) for c in ((), (1.0,)))
    assert np.array_equal(one.P, other.P)


@pytest.mark.parametrize(("horizon", "n_actions", "slip"), [(1, 3, 0.0), (2, 2, 0.3), (5, 3, 0.1)])
def test_combination_lock(horizon, n_actions, slip):
    lock = worlds.combination_lock(horizon, n_actions, rng(), slip)
    assert lock.layers.sizes == (1, *[2] * (horizon - 1))
    assert lock.initial.tolist() == [1.0]
    open_ = np.ones(1)
    for P in lock.transitions:
        right = np.flatnonzero(P[0, :, 0])
        assert right.size == 1
        assert P[0, right[0]].tolist() == [1.0 - slip, slip]
        assert (P[1:, :, 0] == 0.0).all()  # nothing leads back
        open_ = open_ * P[0, :, 0].mean()
    assert open_[0] == pytest.approx(((1 - slip) / n_actions) ** (horizon - 1))


def test_combinations_are_drawn():
    def combination(seed):
        lock = worlds.combination_lock(4, 3, rng(seed))
        return tuple(int(P[0, :, 0].argmax()) for P in lock.transitions)

    drawn = [combination(seed) for seed in range(60)]
    assert len(set(drawn)) > 15
    assert {action for one in drawn for action in one} == {0, 1, 2}


@pytest.mark.parametrize("reach", [0.0, 1e-4, 0.3, 1.0])
def test_hard_to_reach(reach):
    mdp = worlds.hard_to_reach([2, 3, 4], 2, rng(), reach)
    last = mdp.transitions[-1][:, :, -1]
    assert np.count_nonzero(last) == (reach > 0.0)
    assert last.max() == pytest.approx(reach, rel=1e-12)
    before = worlds.dirichlet([2, 3, 4], 2, rng())
    assert np.array_equal(mdp.transitions[0], before.transitions[0])
    # the others share what is left in the proportions of before
    usual = before.transitions[-1][:, :, :-1]
    share = usual / usual.sum(axis=-1, keepdims=True) * (1.0 - last[:, :, None])
    np.testing.assert_allclose(mdp.transitions[-1][:, :, :-1], share, atol=1e-12)


def test_hard_to_reach_with_one_layer():
    mdp = worlds.hard_to_reach([3], 2, rng(), 0.25)
    assert mdp.initial[-1] == pytest.approx(0.25)


def test_hard_to_reach_by_default():
    mdp = worlds.hard_to_reach([2, 2], 2, rng())
    assert mdp.transitions[-1][:, :, -1].max() == pytest.approx(1e-4)


def test_the_pair_that_reaches_it_is_drawn():
    pairs = [
        int(worlds.hard_to_reach([2, 2], 3, rng(seed)).transitions[0][:, :, -1].argmax())
        for seed in range(60)
    ]
    assert set(pairs) == set(range(6))


def test_time_expansion():
    P = rng().dirichlet(np.ones(3), size=(3, 2))
    mdp = worlds.time_expansion(P, [0.5, 0.5, 0.0], horizon=4)
    assert mdp.layers.sizes == (3, 3, 3, 3)
    assert mdp.initial.tolist() == [0.5, 0.5, 0.0]
    assert len(mdp.transitions) == 3
    for layer in mdp.transitions:
        np.testing.assert_allclose(layer, P, atol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: worlds.dirichlet([2], 2, rng(), 0.0), "concentration must be above 0, got 0.0"),
        (lambda: worlds.combination_lock(0, 2, rng()), "horizon must be at least 1, got 0"),
        (lambda: worlds.combination_lock(10**9, 2, rng()), "horizon must be at most 1,000,000"),
        (lambda: worlds.time_expansion(np.ones((1, 1, 1)), [1], 10**8), "horizon must be at most"),
        (lambda: worlds.combination_lock(2, 2, rng(), 1.0), r"slip must be in \[0, 1\), got 1.0"),
        (lambda: worlds.hard_to_reach([2], 2, rng(), 1.5), r"reach must be in \[0, 1\], got 1.5"),
        (lambda: worlds.hard_to_reach([2, 1], 2, rng()), "at least 2 states"),
        (lambda: worlds.time_expansion(np.ones((2, 1, 3)), [1, 0], 2), r"shape \(S, A, S\)"),
        (lambda: worlds.time_expansion(np.ones((1, 1, 1)), [1], 0), "horizon must be at least 1"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


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
