"""Shared by the tests of MDP learners: play an MDP through ask and tell."""

import numpy as np

from unbounded.core.occupancy.layout import PAIR
from unbounded.core.occupancy.mdp import simulate_episode


def random_losses(layers, T, seed, scale=1.0, shift=0.0):
    """Losses of every pair in every episode, shape (T, n_pairs)."""
    rng = np.random.default_rng(seed)
    means = rng.random(layers.n_pairs)
    return scale * (means + rng.normal(size=(T, layers.n_pairs))) + shift


def play(learner, mdp, losses, seed=0, before=None):
    """Play the rows of ``losses``; returns the policies, and what was told."""
    rng = np.random.default_rng(seed)
    lay, A = learner.layers.table, learner.layers.n_actions
    H = learner.layers.horizon
    policies, told = [], []
    for row in losses:
        plan = learner.ask()
        words = rng.bit_generator.random_raw(2 * H)
        words[1::2] = plan._words[1:]
        states, actions = simulate_episode(mdp, plan._pi, words)
        assert [plan.act(h, int(states[h])) for h in range(H)] == actions.tolist()
        seen = row[lay[PAIR, 1:-1] + states * A + actions]
        if before is not None:
            before(learner, plan, states, actions, seen)
        policies.append(plan._pi)
        told.append((plan._component, states, actions, seen))
        learner.tell(plan, states, actions, seen)
    return np.array(policies), told


def reach(mdp):
    """max over policies of the probability of each state, flat over states 1..S."""
    from unbounded.core.occupancy.policies import best_policy

    out = []
    for h, n in enumerate(mdp.layers.sizes, start=1):
        for s in range(n):
            losses = np.zeros(mdp.layers.n_pairs)
            first = mdp.layers.index(h, s)
            losses[first : first + mdp.layers.n_actions] = -1.0
            out.append(-best_policy(mdp, losses)[0])
    return np.array(out)


def reached(mdp, mixtures):
    """Probability with which each state's mixture reaches it."""
    from unbounded.core.occupancy.policies import occupancy

    out = []
    for (h, s), mixture in mixtures.items():
        first = mdp.layers.index(h + 1, s)
        out.append(occupancy(mdp, mixture)[first : first + mdp.layers.n_actions].sum())
    return np.array(out)
