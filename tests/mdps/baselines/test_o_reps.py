"""O-REPS against Clarabel; what it is told."""

import math

import numpy as np
import pytest

from mdp_play import params_of, play, random_losses, state_of
from occupancy_facades import known
from occupancy_reference import Program, clarabel_solve
from unbounded import OREPS, worlds
from unbounded.core.occupancy.mdp import occupancy

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
LAYERS = MDP.layers
RANGES = [(-4.0, 5.0), (0.0, 2.0)]


def test_against_clarabel():
    """After some episodes: the FTRL problem with known transitions and l_hat = l/q."""
    learner = OREPS(
        [2, 3], 2, 60, transitions=MDP.P, loss_range=RANGES, rate=0.5, tolerance=1e-12, seed=13
    )
    L, outside = np.zeros(LAYERS.n_pairs), {"below": 0, "above": 0}

    def before(learner, plan, states, actions, seen):
        q = occupancy(MDP, learner.policy())
        for h, (low, high) in enumerate(RANGES):
            p = LAYERS.index(h + 1, int(states[h]), int(actions[h]))
            L[p] += (min(max(seen[h], low), high) - low) / q[p]
            outside["below"] += seen[h] < low
            outside["above"] += seen[h] > high

    losses = random_losses(LAYERS, 40, seed=14, scale=2.0)
    play(learner, MDP, losses, seed=15, before=before)
    eta = 0.5 * np.sqrt(2 * np.log(10 / 2) / (60 * 10))
    w = np.array([9.0, 2.0]) / eta
    status, _, x = clarabel_solve(Program(LAYERS, *known(MDP)), L, w)
    assert status == "Solved"
    assert np.allclose(x[:10], occupancy(MDP, learner.policy())[1:], atol=1e-6)
    assert not np.allclose(learner.policy().pi[1:], 0.5, atol=0.05)  # it did learn something
    assert min(outside.values()) > 0
    assert learner.clipped == sum(outside.values())


def test_the_rate():
    eta = math.sqrt(2 * math.log(10 / 2) / (60 * 10))
    assert params_of(OREPS([2, 3], 2, 60, transitions=MDP.P)).eta == pytest.approx(eta, rel=1e-14)
    twice = OREPS([2, 3], 2, 60, transitions=MDP.P, rate=2.0)
    assert params_of(twice).eta == pytest.approx(2 * eta, rel=1e-14)
    one = OREPS([1], 1, 10, transitions=[1.0])  # ln(S A/H) = 0
    assert params_of(one).eta > 0


def test_e16_a_layer_with_a_small_range_has_a_floor():
    learner = OREPS([2, 3], 2, 60, transitions=MDP.P, loss_range=[(0.0, 1.0), (0.0, 1e-9)])
    p, state = params_of(learner), state_of(learner)
    w = np.ldexp(state.estimates.w, p.unit) * p.eta
    assert w[0] == pytest.approx(1.0, rel=1e-14)
    assert w[1] == pytest.approx(1e-3 * (1.0 + 1e-9) / 2, rel=1e-14)


@pytest.mark.parametrize("k", [-1000, 40, 1019])
def test_given_a_scaled_range_it_plays_the_same(k):
    losses = random_losses(LAYERS, 60, seed=9)
    learners = [
        OREPS([2, 3], 2, 60, transitions=MDP.P, loss_range=(-4 * unit, 4 * unit), seed=10)
        for unit in (1.0, 2.0**k)
    ]
    runs = [
        play(learner, MDP, np.ldexp(losses, j), seed=11)[0]
        for learner, j in zip(learners, (0, k), strict=True)
    ]
    assert np.array_equal(*runs)
    assert learners[0].certificate == learners[1].certificate
    assert learners[0].certificate.unsolved == 0
    assert learners[0].certificate.worst_gap <= 1.1e-8


def test_nothing_is_solved_where_nothing_was_added():
    learner = OREPS([2, 3], 2, 60, transitions=MDP.P, seed=0)
    for loss, solves in ((0.0, 1), (-3.0, 1), (0.5, 2)):
        learner.tell(learner.ask(), [0, 0], [0, 0], [loss, loss])
        assert learner.certificate.solves == solves


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(14), r"transitions of layer 0"),
        (np.full(14, np.nan), "not finite"),
        (np.where(np.arange(14) == 3, -MDP.P, MDP.P), "negative"),
        (MDP.P[:-1], "shape"),
    ],
)
def test_wants_transitions_that_are_distributions(wrong, message):
    with pytest.raises(ValueError, match=message):
        OREPS([2, 3], 2, 60, transitions=wrong)


def test_bad_settings():
    with pytest.raises(ValueError, match="low < high"):
        OREPS([2, 3], 2, 60, transitions=MDP.P, loss_range=(1, 0))
    with pytest.raises(ValueError, match="rate"):
        OREPS([2, 3], 2, 60, transitions=MDP.P, rate=0.0)
    with pytest.raises(TypeError, match="transitions"):
        OREPS([2, 3], 2, 60)
