"""Statistics of SCB-RL that take minutes; their figures are in docs/guide/scb-rl.md."""

import numpy as np
import pytest

from mdp_play import explore, grouped, reach, reached, state_of
from unbounded import RFELP, SCBRL, simulate_mdp, worlds
from unbounded.adversaries.mdps import GoodSpike, GrowthSwitch, Punish, Stochastic

pytestmark = pytest.mark.long


def inside(profile, runs, T=1000, delta=0.05):
    """In how many runs the true transitions stayed in all the (nested) sets."""
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(21))
    players = []

    class Kept(SCBRL):
        def __init__(self, *args, **settings):
            super().__init__(*args, **settings)
            players.append(self)

    learner = Kept([2, 3], 2, T, delta, profile=profile)
    simulate_mdp(learner, mdp, Stochastic(), replicates=runs, seed=700, checkpoints=[T], workers=1)
    assert len(players) > runs  # others were made to compile them
    states = [state_of(player).play for player in players[-runs:]]
    return sum(
        bool(np.all(s.lo - 1e-12 <= mdp.P) and np.all(s.hi + 1e-12 >= mdp.P)) for s in states
    )


def test_transitions_stay_in_the_sets_of_the_theory_profile():
    assert inside("paper", 500) >= (1 - 4 * 0.05) * 500


def test_share_of_the_practical_profile():
    share = inside("practical", 500) / 500
    print(f"\npractical profile: P in all sets in {share:.1%} of 500 runs")
    assert share >= 0.9


@pytest.mark.parametrize(("horizon", "n_actions", "N"), [(3, 2, 100), (5, 3, 300)])
def test_rf_elp_guarantee_on_locks(horizon, n_actions, N):
    for seed in range(10):
        mdp = worlds.combination_lock(horizon, n_actions, np.random.default_rng(30 + seed))
        learner = explore(RFELP(mdp.layers.sizes, n_actions, N, seed=seed), mdp, seed)
        assert (reached(mdp, learner.explorers()) / reach(mdp)).min() >= 0.5


def test_strongly_scale_free_in_long_runs():
    mdp = worlds.dirichlet([3, 3, 3], 2, np.random.default_rng(40))
    for settings in ({}, {"clip": "scale"}, {"profile": "paper"}, {"estimator": "ftrl_only"}):
        learner = SCBRL([3, 3, 3], 2, 2000, **grouped(settings))
        for make in (Stochastic, GrowthSwitch, GoodSpike, Punish):
            one = simulate_mdp(learner, mdp, make(), seed=41)
            for k in (-300, -101, -7, 13, 300):
                other = simulate_mdp(learner, mdp, make(scale=2.0**k), seed=41)
                for name in ("regret", "pseudo_regret"):
                    a, b = getattr(one, name), getattr(other, name)
                    assert np.array_equal(np.ldexp(a, k), b)
                assert one.unsolved[0] == 0
