"""Layered MDPs: their transitions are checked, and episodes follow them."""

import numpy as np
import pytest

from occupancy_facades import simulate_episode
from unbounded import worlds
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, occupancy


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
def test_wrong_transitions_are_rejected_with_a_reason(initial, transitions, n_actions, message):
    with pytest.raises(ValueError, match=message):
        LayeredMDP(initial, transitions, n_actions)


def test_expected_loss_agrees_with_simulated_episodes():
    rng = np.random.default_rng(5)
    mdp = worlds.dirichlet([2, 4, 3], 3, rng)
    tables = [rng.dirichlet(np.ones(3), n) for n in mdp.layers.sizes]
    policy = Markov.from_tables(mdp.layers, tables)
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


def test_rounding_of_rows_is_corrected_and_no_more():
    mdp = LayeredMDP([0.5, 0.5 + 1e-10], [], n_actions=1)
    assert mdp.initial.sum() == pytest.approx(1.0, abs=1e-16)
    with pytest.raises(ValueError, match="sums to 1"):
        LayeredMDP([0.5, 0.5 + 1e-8], [], n_actions=1)
