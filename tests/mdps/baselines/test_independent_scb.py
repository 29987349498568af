"""An SCB in every state."""

import numpy as np
import pytest

from mdp_play import play, random_losses
from unbounded import SCB, IndependentSCB, worlds
from unbounded.core.occupancy.mdp import LayeredMDP


@pytest.mark.parametrize("clip", ["scale", "range"])
def test_with_one_state_it_is_scb(clip):
    mdp = LayeredMDP([1.0], [], n_actions=3)
    learner = IndependentSCB([1], 3, clip=clip, seed=19)
    bandit = SCB(3, profile="paper", clip=clip, seed=0)
    losses = random_losses(mdp.layers, 100, seed=20)

    def before(learner, plan, states, actions, seen):
        assert plan.policy[0][0] == pytest.approx(bandit.probabilities(), abs=1e-12)
        choice = bandit.ask()
        while choice.arm != actions[0]:  # the bandit must take the same arm
            bandit.forget(choice)
            choice = bandit.ask()
        bandit.tell(choice, float(seen[0]))

    play(learner, mdp, losses, seed=21, before=before)
    assert learner.thresholds[0] == bandit.scale


def test_every_state_learns_from_its_losses_to_go():
    """Each visited state is told the sum from there to the end, and no other state learns."""
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
    learner = IndependentSCB([2, 3], 2, seed=1)
    bandits = [[SCB(2, profile="paper", seed=0) for _ in range(n)] for n in (2, 3)]

    def before(learner, plan, states, actions, seen):
        for h, tables in enumerate(plan.policy):
            for s, bandit in enumerate(bandits[h]):
                assert tables[s] == pytest.approx(bandit.probabilities(), abs=1e-11)
        for h, loss in ((0, seen[0] + seen[1]), (1, seen[1])):
            bandit = bandits[h][states[h]]
            choice = bandit.ask()
            while choice.arm != actions[h]:
                bandit.forget(choice)
                choice = bandit.ask()
            bandit.tell(choice, float(loss))

    play(learner, mdp, random_losses(mdp.layers, 150, seed=2), seed=3, before=before)
    scales = [bandit.scale for layer in bandits for bandit in layer]
    assert learner.thresholds.tolist() == scales


def test_sums_that_would_overflow_are_the_largest_float():
    learner = IndependentSCB([1, 1], 2, clip="range", seed=0)
    largest = np.finfo(float).max
    for sign in (1.0, -1.0, 1.0):
        learner.tell(learner.ask(), [0, 0], [0, 0], [sign * largest, sign * largest])
        assert np.all(np.isfinite(learner.policy().pi))


def test_bad_settings():
    with pytest.raises(ValueError, match="clip must be one of 'scale', 'range', got 'none'"):
        IndependentSCB([1], 2, clip="none")
