"""The warm solver, and what both Newton methods share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_facades import ConfidenceSet, OccupancyFTRL
from occupancy_reference import dual_value, fill_counts, objective, violations
from occupancy_work import Case
from unbounded import worlds
from unbounded.core.occupancy.solver.dual import evaluate
from unbounded.core.occupancy.solver.linear_algebra import mass_to_move, slope_along
from unbounded.core.occupancy.solver.newton import (
    PACE,
    assemble,
    direction,
    good_step,
    imbalance,
    newton,
    step_to,
)

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_newton_matrix_is_minus_the_hessian_without_two_rank_one_terms(seed):
    case = Case(seed)
    case.v *= 0.1  # so that hardly any state starves

    def gradient(v):
        evaluate(case.lay, case.lo, case.hi, v, case.P0, case.theta.copy(), case.W)
        return case.W.grad.copy()

    expected = case.minus_hessian(gradient)
    gradient(case.v)
    assemble(case.lay, case.lo, case.hi, 0.0, case.W)
    ours = case.newton_matrix()
    assert np.array_equal(case.W.inverse[1:], np.diag(ours)[1:])
    starved = case.W.r > 1.5 * case.W.q
    at = np.ix_(~starved[1:], ~starved[1:])
    difference = (ours + case.rank_one_terms() - expected)[1:, 1:][at]
    scale = max(np.max(np.abs(expected)), np.max(np.abs(ours)))  # expected may be zero
    assert np.max(np.abs(difference), initial=0.0) <= 1e-5 * scale


def test_damping_is_added_to_the_diagonal():
    case = Case(3)
    evaluate(case.lay, case.lo, case.hi, case.v, case.P0, case.theta, case.W)
    matrices = []
    for damping in (0.0, 0.25):
        assemble(case.lay, case.lo, case.hi, damping, case.W)
        matrices.append(case.newton_matrix())
    weights = np.repeat(case.w, case.layers.sizes)
    assert np.allclose((matrices[1] - matrices[0])[1:, 1:], np.diag(0.25 / weights), atol=1e-14)


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_newton_comes_to_a_certified_goal_by_itself(seed):
    case = Case(seed)
    W, goal = case.W, 1e-9
    v, theta, P0 = np.zeros(case.v.size), np.zeros(case.theta.size), case.P0.copy()
    pace = np.array(PACE)
    best, steps, certificates = newton(
        case.lay, case.lo, case.hi, goal, np.inf, v, theta, P0, pace, W
    )
    assert 1 <= certificates <= 40
    assert steps <= 60
    if best == np.inf:  # it may give up: then the interior point method goes on
        return
    F = objective(case.layers, case.L, case.w, W.best_q)
    g = dual_value(case.layers, case.L, case.w, case.lo, case.hi, W.best_v)
    assert -1e-13 <= F - g <= best + 1e-13
    assert max(violations(case.layers, case.lo, case.hi, W.best_q, W.best_P)) <= 1e-14


@pytest.mark.parametrize("seed", range(5))
def test_small_goals_are_reached_by_smaller_gradients(seed):
    """Known transitions have no slack: nothing is left but to balance the flow further."""
    case = Case(seed)
    P = case.mdp.P
    args = np.zeros(case.v.size), np.zeros(case.theta.size), P.copy(), np.array(PACE)
    best, _, certificates = newton(case.lay, P, P, 1e-15, np.inf, *args, case.W)
    assert best <= 1e-15
    assert certificates <= 8


def test_nothing_is_done_where_the_best_is_not_improved():
    case = Case(5)
    case.W.best_q[:] = 7.0
    args = np.zeros(case.v.size), np.zeros(case.theta.size), case.P0.copy(), np.array(PACE)
    best, _, _ = newton(case.lay, case.lo, case.hi, 0.0, 0.0, *args, case.W)
    assert best == 0.0
    assert np.all(case.W.best_q == 7.0)


@pytest.mark.parametrize(
    ("visits", "jump", "most"),
    [((300, 6e3), 0.3, 4.7), ((3e4, 6e5), 0.3, 12.5), ((3e4, 6e5), 3.0, 10.3)],  # 15% above
)
def test_warm_solves_take_few_steps_and_no_fallbacks(visits, jump, most):
    """A wrong matrix, line search or pace still ends at a certificate, but not as soon."""
    steps = []
    for seed in range(4):
        rng = np.random.default_rng([seed, 99])
        mdp = worlds.dirichlet([5] * 4, 3, rng)
        sets = ConfidenceSet(mdp.layers, 10**6, 0.05)
        fill_counts(sets, mdp, rng, lambda p, rng=rng: np.exp(rng.uniform(*np.log(visits))))
        solver = OccupancyFTRL(mdp.layers, sets.lo, sets.hi)
        L = np.zeros(mdp.layers.n_pairs)
        for t in range(60):
            for h in range(1, 5):
                L[mdp.layers.index(h, rng.integers(5), rng.integers(3))] += rng.exponential(jump)
            certificate = solver.solve(L, np.ones(4)).certificate
            assert certificate.solved
            assert certificate.method == ("warm" if t else "cold")
            steps += [certificate.newton_steps] if t else []
    assert np.mean(steps) <= most


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
