"""The cold solver by itself, and its start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_facades import OccupancyFTRL
from occupancy_reference import boxes_as_arrays, dual_value, objective, random_instance, violations
from occupancy_work import Case, started
from unbounded.core.occupancy.confidence import interior
from unbounded.core.occupancy.layout import PAIR, SIZE, Layers, roll_forward
from unbounded.core.occupancy.solver.certificate import bounds
from unbounded.core.occupancy.solver.elimination import AT_HI, AT_LO, BOXED, OPEN, PINNED, SEVERAL
from unbounded.core.occupancy.solver.interior_point import interior_point
from unbounded.core.occupancy.solver.work import carve, work_size

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
    assert max(violations(case.layers, case.lo, case.hi, W.best_q, W.best_P)) <= 1e-14


def test_mean_iterations_of_cold_solves():
    """A wrong center, corrector or step still converges, but not as soon."""
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
        W = case.W
        bounds(case.lay, lo, hi, W.best_v, W.best_theta, W.best_P, W.bound, W.slack)
        assert W.best_q @ W.slack <= 1e-16
        assert iterations <= 15
        assert np.allclose(case.W.best_P, case.mdp.P, rtol=0, atol=1e-14)


def test_a_point_that_is_better_already_is_kept():
    case = Case(4)
    case.W.best_q[:] = 7.0
    best, iterations = interior_point(case.lay, case.lo, case.hi, 1e-8, 1e-30, case.W)
    assert best == 1e-30
    assert iterations < 40
    assert np.all(case.W.best_q == 7.0)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_middle_of_every_box_is_a_distribution_inside_it(seed):
    case = Case(seed, max_states=8)
    P = np.full(case.P0.size, np.nan)
    interior(case.lay, case.lo, case.hi, P)
    box, _ = violations(case.layers, case.lo, case.hi, np.ones(case.layers.n_pairs), P)
    assert box <= 1e-14
    lows, highs, Ps = (boxes_as_arrays(case.layers, x) for x in (case.lo, case.hi, P))
    for lo, hi, p in zip(lows, highs, Ps, strict=True):  # the same share of every side of a box
        t = (1 - lo.sum(2)) / np.maximum((hi - lo).sum(2), 1e-300)
        assert np.allclose(p, lo + np.clip(t, 0, 1)[:, :, None] * (hi - lo), rtol=0, atol=1e-14)


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_the_start_is_strictly_feasible_with_equal_products(seed):
    case = Case(seed)
    it, count = started(case.lay, case.lo, case.hi, case.W)
    free = it.entry != PINNED
    both = it.entry == BOXED
    assert count == case.layers.n_pairs - 1 + free.sum() + both.sum()
    products = np.concatenate([(it.x * it.z)[1:], (it.a * it.alpha)[free], (it.b * it.beta)[both]])
    assert np.all(products > 0)
    assert np.allclose(products, products[0], rtol=1e-12)
    uniform = np.full(case.layers.n_pairs, 1.0 / case.layers.n_actions)
    uniform[0] = 1.0
    mass, x = np.empty(case.layers.n_states), np.empty(case.layers.n_pairs)
    P = np.empty(case.P0.size)
    interior(case.lay, case.lo, case.hi, P)
    roll_forward(case.lay, P, uniform, mass, x)
    assert np.allclose(it.x, np.maximum(x, 1e-290), rtol=1e-14)
    amount = x[1:].sum() + it.a[free].sum() + it.b[both].sum()
    spread = max(*case.w, *(np.ptp(t) for t in case.layers.unpack_pairs(case.L)))
    assert products[0] * count == pytest.approx(spread * amount, rel=1e-12)
    # y = x P with slacks a = y - lo x and b = hi x - y
    pair = np.concatenate(
        [np.tile(np.arange(a, b), n) for a, b, n in zip(
            case.lay[PAIR], case.lay[PAIR, 1:], case.lay[SIZE, 1:-1], strict=False)]
    )  # fmt: skip
    y = P * it.x[pair]
    pinned = it.entry == PINNED
    assert np.array_equal(it.a[pinned], P[pinned])
    assert np.allclose(it.a[free], (y - case.lo * it.x[pair])[free], rtol=0, atol=1e-15)
    assert np.allclose(it.b[both], (case.hi * it.x[pair] - y)[both], rtol=0, atol=1e-15)


def test_entries_and_pairs_are_distinguished():
    layers = Layers([3], 1)
    W = carve(layers.table, np.full(work_size(layers.table), np.nan))
    W.w[:], W.L[:] = 1.0, 0.0
    for lo, hi, entries, point in (
        ([0.0, 0.1, 0.2], [1.0, 0.5, 0.2], [OPEN, BOXED, PINNED], SEVERAL),
        ([0.2, 0.3, 0.5], [1.0, 0.9, 0.9], [PINNED] * 3, AT_LO),
        ([0.0, 0.0, 0.0], [0.2, 0.3, 0.5], [PINNED] * 3, AT_HI),
    ):
        it, count = started(layers.table, np.array(lo), np.array(hi), W)
        assert it.entry.tolist() == entries
        assert it.point[0] == point
        assert count == 3 + (3 if point == SEVERAL else 0)
