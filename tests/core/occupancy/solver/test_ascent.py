"""What both Newton methods share: the step's acceptance, starved states, the direction."""

import numpy as np
import pytest

from occupancy_work import Case
from unbounded.core.occupancy.solver.ascent import (
    direction,
    good_step,
    imbalance,
    mass_to_move,
    slope_along,
    step_to,
)
from unbounded.core.occupancy.solver.dual import evaluate
from unbounded.core.occupancy.solver.newton import assemble


def test_a_step_must_increase_the_value_or_not_be_told_from_rounding():
    value, slope = 10.0, 2.0
    assert good_step(value, value + 1e-4 * 0.5 * slope, 0.5, slope, -99.0)
    assert not good_step(value, value + 0.9e-4 * 0.5 * slope, 0.5, slope, -99.0)
    assert good_step(value, value - 1e-12, 0.5, slope, -1.6)  # noise, and not past the top by far
    assert not good_step(value, value - 1e-12, 0.5, slope, -1.7)
    assert not good_step(value, value - 2e-12, 0.5, slope, 0.0)


def test_starved_states_move_in_the_log_domain():
    assert mass_to_move(0.4, 0.6) == 0.4
    assert mass_to_move(0.1, 0.8) == pytest.approx(0.7 / np.log(8.0))
    assert 0.0 < mass_to_move(0.0, 0.5) < 1e-2


def test_imbalance_leaves_out_the_first_state():
    assert imbalance(np.array([9.0, -0.5, 0.25, 0.0])) == 0.75


@pytest.mark.parametrize("seed", range(5))
def test_directions_solve_the_newton_system(seed):
    case = Case(seed)
    W = case.W
    evaluate(case.lay, case.lo, case.hi, case.v, case.P0, case.theta, W)
    assemble(case.lay, case.lo, case.hi, 1e-3, W)
    M = case.newton_matrix()[1:, 1:]
    slope = direction(case.lay, W)
    assert np.allclose(M @ W.dv[1:], W.grad[1:], rtol=1e-8, atol=1e-10)
    assert slope == slope_along(W) == pytest.approx(W.grad[1:] @ W.dv[1:], rel=1e-12)
    assert slope > 0
    W.v_old[:] = case.v
    step_to(case.v, 0.25, W)
    assert case.v[0] == 0.0
    assert np.allclose(case.v[1:], (W.v_old + 0.25 * W.dv)[1:], rtol=0, atol=1e-16)
