"""The cold solver by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_reference import dual_value, objective, random_instance, violations
from occupancy_work import Case
from unbounded.core.occupancy.solver.ftrl import OccupancyFTRL
from unbounded.core.occupancy.solver.interior_point import interior_point
from unbounded.core.occupancy.solver.work import SLACK

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_it_comes_to_a_certified_goal_in_few_iterations(seed):
    case = Case(seed, max_states=8)
    W, goal = case.W, 1e-10
    best, iterations = interior_point(case.lay, case.lo, case.hi, goal, np.inf, W)
    assert best <= goal
    assert iterations <= 25
    F = objective(case.layers, case.L, case.w, W.best_q)
    g = dual_value(case.layers, case.L, case.w, case.lo, case.hi, W.best_v)
    assert -1e-13 <= F - g <= best + 1e-13
    assert best == pytest.approx(W.parts.sum(), rel=1e-15)
    assert max(violations(case.layers, case.lo, case.hi, W.best_q, W.best_P)) <= 1e-14


def test_mean_iterations_of_cold_solves():
    """A wrong centre, corrector or step still converges, but not as soon."""
    rng = np.random.default_rng(21)
    iterations = []
    for _ in range(60):
        mdp, lo, hi, L, w = random_instance(rng, max_horizon=5, max_states=8, max_actions=4)
        certificate = OccupancyFTRL(mdp.layers, lo, hi).solve(L, w).certificate
        assert certificate.solved
        assert certificate.newton_steps == 0  # no polishing
        if certificate.method == "cold":
            iterations.append(certificate.interior_iterations)
    assert len(iterations) > 40
    assert np.mean(iterations) <= 11  # it is 10.5, and 15 at most
    assert max(iterations) <= 18


@pytest.mark.parametrize("seed", range(8))
def test_boxes_that_leave_no_choice_have_no_slack(seed):
    """sum(lo) = 1 or sum(hi) = 1 pins a pair, whatever the other side is."""
    case = Case(seed)
    side = case.rng.random(case.mdp.P.size) < 0.5
    for lo, hi in (
        (case.mdp.P, np.where(side, 1.0, case.mdp.P)),
        (np.where(side, 0.0, case.mdp.P), case.mdp.P),
    ):
        best, iterations = interior_point(case.lay, lo, hi, 1e-10, np.inf, case.W)
        assert best <= 1e-10
        assert case.W.parts[SLACK] <= 1e-16
        assert iterations <= 15
        assert np.allclose(case.W.best_P, case.mdp.P, rtol=0, atol=1e-14)


def test_a_point_that_is_better_already_is_kept():
    case = Case(4)
    case.W.best_q[:] = 7.0
    best, iterations = interior_point(case.lay, case.lo, case.hi, 1e-8, 1e-30, case.W)
    assert best == 1e-30
    assert iterations < 40
    assert np.all(case.W.best_q == 7.0)
