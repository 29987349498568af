"""Explore, then commit."""

import numpy as np
import pytest

from mdp_play import params_of, play, random_losses, state_of
from unbounded import ExploreThenCommit, worlds
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, best_policy, occupancy

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
LAYERS = MDP.layers


def test_finds_the_best_policy_of_a_stochastic_mdp():
    losses = np.tile(np.random.default_rng(16).random(LAYERS.n_pairs), (2000, 1))
    learner = ExploreThenCommit([2, 3], 2, 2000, seed=17)
    play(learner, MDP, losses, seed=18)
    value, _ = best_policy(MDP, losses[0])
    assert occupancy(MDP, learner.policy())[1:] @ losses[0, 1:] <= value + 0.02


def test_commits_to_the_best_policy_for_means_and_frequencies():
    learner = ExploreThenCommit([2, 3], 2, 100, explore=60, seed=1)
    policies, told = play(learner, MDP, random_losses(LAYERS, 100, seed=2), seed=3)
    assert np.all(policies[:60] == Markov.uniform(LAYERS).pi)
    assert np.all(policies[60:] == policies[60])
    sums, N, M = np.zeros(LAYERS.n_pairs), np.zeros(LAYERS.n_pairs), np.zeros((2, 2, 3))
    first = np.zeros(2)
    for _, states, actions, seen in told[:60]:
        first[states[0]] += 1
        M[states[0], actions[0], states[1]] += 1
        for h in range(2):
            p = LAYERS.index(h + 1, states[h], actions[h])
            sums[p] += seen[h]
            N[p] += 1
    assert N[1:].min() > 0
    model = LayeredMDP(first / 60, [M / M.sum(axis=2, keepdims=True)])
    N[0] = 1
    _, best = best_policy(model, sums / N)
    assert np.array_equal(policies[60], best.pi)
    assert state_of(learner).mean[1:] == pytest.approx((sums / N)[1:], abs=1e-12)


def test_what_was_never_tried_costs_as_much_as_the_worst_of_its_layer():
    learner = ExploreThenCommit([1], 3, 10, explore=2, seed=0)
    for action, loss in ((0, 5.0), (1, 7.0)):
        learner.tell(learner.ask(), [0], [action], [loss])
    assert learner.policy().tables[0].tolist() == [[1.0, 0.0, 0.0]]
    assert state_of(learner).losses[1:].tolist() == [5.0, 7.0, 7.0]


@pytest.mark.parametrize(("T", "explore"), [(10_000, 1000), (8, 4), (1, 1)])
def test_how_long_it_explores(T, explore):
    """(S A)^(1/3) T^(2/3), at most half of the episodes, at least one."""
    assert round((5 * 2) ** (1 / 3) * 10_000 ** (2 / 3)) == 1000
    assert params_of(ExploreThenCommit([2, 3], 2, T)).explore == explore
    assert params_of(ExploreThenCommit([2, 3], 2, T, explore=3)).explore == 3


def test_bad_settings():
    with pytest.raises(ValueError, match="explore"):
        ExploreThenCommit([1], 2, 10, explore=0)
    with pytest.raises(ValueError, match="episodes"):
        ExploreThenCommit([1], 2, 0)
