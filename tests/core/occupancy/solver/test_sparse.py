"""Lists of possible transitions: the same numbers as over all of them, and solves with proof."""

import numpy as np
import pytest

from occupancy_facades import OccupancyFTRL
from occupancy_lists import Both, boxes_after, sparse_world
from occupancy_reference import dual_value, greedy_value, objective, violations
from unbounded import SCBRL, simulate_mdp
from unbounded.adversaries.mdps import Stochastic
from unbounded.core.occupancy.confidence import count
from unbounded.core.occupancy.layout import PAIR
from unbounded.core.occupancy.reach import reachable
from unbounded.core.occupancy.solver import COLD
from unbounded.core.occupancy.solver import sparse as successors
from unbounded.core.occupancy.solver.certificate import bounds, certify
from unbounded.core.occupancy.solver.ftrl import even_play, new_memory, solve
from unbounded.core.occupancy.solver.interior_point import interior_point
from unbounded.core.occupancy.solver.work import work_size
from unbounded.jit.interpreter import interpreted


@pytest.mark.parametrize("seed", range(3))
def test_lists_hold_what_is_possible(seed):
    case = Both(seed)
    assert successors.sparse(case.hi)
    assert not successors.sparse(np.ones(80))
    assert successors.sparse(np.repeat([1.0, 0.0], [10, 70]))
    assert not successors.sparse(np.repeat([1.0, 0.0], [11, 69]))
    assert case.few.to.size == np.count_nonzero(case.hi) == case.few.begin[-1]
    numbers = np.arange(1.0, 1.0 + case.hi.size)
    back = np.zeros(case.hi.size)
    successors.scatter(case.lay, case.gather(numbers), case.few, back)
    assert np.array_equal(back, np.where(case.hi > 0, numbers, 0.0))
    for p in range(case.layers.n_pairs):
        to = case.few.to[case.few.begin[p] : case.few.begin[p + 1]]
        assert np.all(np.diff(to) > 0)


@pytest.mark.parametrize("seed", range(5))
def test_values_gradients_and_certificates_are_those_over_all_transitions(seed):
    case = Both(seed)
    W, few, (lo, hi, _) = case.W, case.few, case.listed
    assert np.count_nonzero(lo) > 50
    whole, ours = case.evaluate()
    assert ours == pytest.approx(whole, abs=1e-11)
    for a, b in ((few.x, W.x), (few.q, W.q), (few.r, W.r), (few.grad, W.grad)):
        assert np.allclose(a, b, rtol=0, atol=1e-12)
    assert np.allclose(few.P, case.gather(W.P), rtol=0, atol=1e-12)
    assert np.all((lo <= few.P) & (hi >= few.P))
    gaps = []
    for work, low, high in ((W, case.lo, case.hi), (few, lo, hi)):
        if work is few:
            successors.bounds(case.lay, low, high, case.v, case.theta, work.P, work)
        else:
            bounds(case.lay, low, high, case.v, case.theta, work.P, work.bound, work.slack)
        gaps.append(certify(
            case.lay, work.L, work.w, case.v, work.P, work.bound, work.slack, False, work.pi_out,
            work.q_out, work.mass, work.ln_x, work.begin, work.to,
        ))  # fmt: skip
    assert np.allclose(few.bound, W.bound, rtol=0, atol=1e-12)
    assert np.allclose(few.slack, W.slack, rtol=0, atol=1e-12)
    assert gaps[1] == pytest.approx(gaps[0], rel=1e-9)
    assert np.allclose(few.q_out, W.q_out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rows_sum_to_one_also_where_rho_is_small(seed):
    """(v - theta)/rho carries rounding of order 1e-10 here, which the free entries take up."""
    case = Both(seed)
    case.W.rho[:] = case.few.rho[:] = 1e-6
    case.evaluate()
    sums = np.add.reduceat(case.few.P, case.few.begin[: case.lay[PAIR, -2]])
    assert np.all(np.abs(sums - 1.0) <= 1e-14)


def test_rows_whose_sums_are_spoilt_are_corrected():
    case = Both(0)
    case.evaluate()
    lo, hi, _ = case.listed
    few = case.few
    good = few.P.copy()
    few.P[:] = np.clip(good + 1e-3, lo, hi)
    successors.repair(case.lay, lo, hi, few)
    sums = np.add.reduceat(few.P, few.begin[: case.lay[PAIR, -2]])
    assert np.all(np.abs(sums - 1.0) <= 1e-14)
    assert np.all((lo <= few.P) & (hi >= few.P))
    assert np.abs(few.P - good).max() <= 3e-3
    few.P[:] = good
    successors.repair(case.lay, lo, hi, few)
    assert np.array_equal(few.P, good)  # what is right stays


def proved(layers, lo, hi, L, w, solution):
    """Feasible, and the gap confirmed from the definitions, in units of the largest weight."""
    box, flow = violations(layers, lo, hi, solution.q, solution.transitions)
    assert max(box, flow) <= 1e-14
    alive = np.repeat(reachable(layers, lo, hi)[1:], layers.n_actions)
    top = w.max()
    F = objective(layers, L / top, w / top, solution.q)
    unreached = np.concatenate([[False], ~alive])
    barred = np.where(unreached, 1e6, L / top)  # a loss that no dual value can make good
    g = dual_value(layers, barred, w / top, lo, hi, solution.v / top)
    assert -1e-12 <= F - g <= solution.certificate.relative_gap + 1e-12
    assert solution.certificate.solved


@pytest.mark.parametrize("seed", range(4))
def test_solves_are_proved_warm_and_cold(seed):
    mdp = sparse_world(seed)
    layers, rng = mdp.layers, np.random.default_rng(seed)
    L, w = np.zeros(layers.n_pairs), np.full(4, 20.0)
    solver = OccupancyFTRL(layers, *boxes_after(mdp, 0, seed))
    methods = []
    for visits in (0, 10, 30, 100, 300):
        solver.set_boxes(*boxes_after(mdp, visits, seed))
        for _ in range(4):
            L = L + 5.0 * rng.exponential(size=L.size)
            solution = solver.solve(L, w)
            proved(layers, solver.lo, solver.hi, L, w, solution)
            methods.append(solution.certificate.method)
            assert solution.certificate.interior_iterations == 0
    assert methods == ["cold"] + ["warm"] * 19


@pytest.mark.parametrize("seed", range(3))
def test_the_solution_is_the_interior_points(seed):
    case = Both(seed)
    gap, _ = interior_point(case.lay, case.lo, case.hi, 1e-9, np.inf, case.W)
    theirs = case.W.best_q.copy()
    q, pi = even_play(case.layers, case.lo, case.hi)
    outcome = solve(
        case.lay, case.lo, case.hi, 1, case.few.L, case.few.w[1:], 1e-9, new_memory(case.layers),
        np.full(work_size(case.lay), np.nan), q, pi,
    )  # fmt: skip
    assert outcome.method == COLD
    assert outcome.iterations == 0
    distance = sum(
        np.abs(a - b).sum()
        for a, b in zip(case.layers.unpack_pairs(q), case.layers.unpack_pairs(theirs), strict=True)
    )
    assert distance <= 4 * (np.sqrt(2 * gap / 0.5) + np.sqrt(2 * outcome.gap / 0.5))
    even, _ = even_play(case.layers, case.lo, case.hi)
    assert np.abs(even - theirs).sum() > 0.1


def test_boxes_may_become_dense_and_sparse_again():
    mdp = sparse_world(0)
    layers, rng = mdp.layers, np.random.default_rng(0)
    few = boxes_after(mdp, 40, 0)
    some = np.where(rng.random(layers.n_transitions) < 0.5, 1.0, few[1])
    solver = OccupancyFTRL(layers, *few)
    w = np.full(4, 20.0)
    for hi in (few[1], some, few[1], np.ones_like(some), few[1]):
        solver.set_boxes(few[0], hi)
        L = 20.0 * rng.exponential(size=layers.n_pairs)
        solution = solver.solve(L, w)
        proved(layers, few[0], hi, L, w, solution)
        assert not np.any(solution.transitions[hi == 0.0])


def test_compiled_interpreted_and_any_power_of_two_give_the_same_bits():
    mdp = sparse_world(1, sizes=(1, 17, 17), successors=2)
    layers, rng = mdp.layers, np.random.default_rng(1)
    lo, hi = boxes_after(mdp, 20, 1)
    assert successors.sparse(hi)
    L, w = rng.exponential(size=layers.n_pairs), np.full(3, 0.7)
    found = []
    for function, scale in ((solve, 1.0), (interpreted(solve), 1.0), (solve, 2.0**-301)):
        q, pi = even_play(layers, lo, hi)
        memory, work = new_memory(layers), np.full(work_size(layers.table), np.nan)
        outcome = function(layers.table, lo, hi, 1, L * scale, w * scale, 1e-8, memory, work, q, pi)
        assert outcome.iterations == 0
        found.append((q, pi))
    for q, pi in found[1:]:
        assert np.array_equal(q, found[0][0])
        assert np.array_equal(pi, found[0][1])


def test_actions_that_are_forbidden_and_states_out_of_reach_have_no_mass():
    mdp = sparse_world(2, sizes=(1, 24, 30, 25), n_actions=2, successors=2)
    lo, hi = boxes_after(mdp, 30, 2)
    layers = mdp.layers
    reached = reachable(layers, lo, hi)
    assert not np.all(reached)
    L = np.random.default_rng(2).exponential(size=layers.n_pairs)
    L[[2, 9, 60]] = np.inf
    solution = OccupancyFTRL(layers, lo, hi).solve(L, np.full(4, 1.0))
    assert solution.certificate.solved
    assert np.all(solution.q[[2, 9, 60]] == 0.0)
    mass = np.concatenate([[1.0], *[q.sum(1) for q in layers.unpack_pairs(solution.q)]])
    assert not np.any(mass[~reached])
    assert violations(layers, lo, hi, solution.q, solution.transitions)[1] <= 1e-14


@pytest.mark.parametrize("right", [True, False])
def test_learners_that_are_given_the_support_solve_all(right):
    """And where the support that was told is wrong: what is seen is possible from then on."""
    mdp = sparse_world(3, sizes=(1, 24, 30, 25), n_actions=2)
    possible = mdp.P > 0
    if not right:
        _, arrays = mdp.layers.unpack_transitions(possible.astype(float))
        for table in arrays[1]:  # of each pair one successor is left out
            table[np.arange(2), table.argmax(1)] = 0.0
        possible = mdp.layers.pack_transitions([1.0], arrays) > 0
        assert possible.sum() < (mdp.P > 0).sum()
    learner = SCBRL.for_mdp(mdp, 600, known={"support": possible})
    assert successors.sparse(learner._state().play.boxes.hi)
    result = simulate_mdp(learner, mdp, Stochastic(), 600, seed=1, checkpoints=[600], workers=1)
    assert result.solves[0] > 10
    assert result.unsolved[0] == 0
    assert result.worst_gap[0] <= 1e-8


def test_what_was_seen_is_in_the_lists_or_it_is_said():
    mdp = sparse_world(4)
    layers, lists = mdp.layers, successors.told_lists(mdp.layers, (mdp.P > 0).astype(float))
    N, M = np.zeros(layers.n_pairs), np.zeros(layers.n_transitions)
    before = np.zeros(layers.n_pairs)
    assert successors.only_listed(layers.table, lists, N, M)
    rng = np.random.default_rng(4)
    for _ in range(50):
        states = [rng.choice(layers.sizes[0], p=mdp.initial)]
        actions = rng.integers(3, size=4)
        for h, P in enumerate(mdp.transitions):
            states.append(rng.choice(P.shape[2], p=P[states[h], actions[h]]))
        count(layers.table, np.array(states), actions, N, M, before)
    assert successors.only_listed(layers.table, lists, N, M)
    none = successors.told_lists(layers, np.ones(layers.n_transitions))
    assert none.begin.size == none.to.size == 0
    assert not successors.only_listed(layers.table, none, N, M)
    there = int(np.argmin(mdp.transitions[1][states[1], actions[1]]))  # 0: impossible
    count(layers.table, np.array([states[0], states[1], there, 0]), actions, N, M, before)
    assert not successors.only_listed(layers.table, lists, N, M)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_value_of_a_list_is_the_greedy_one(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    P = rng.dirichlet(np.ones(n))
    width = rng.uniform(0.0, 0.5, n)
    lo, hi = np.maximum(P - width, 0.0), np.minimum(P + width, 1.0)
    to = 5 + np.sort(rng.choice(9, n, replace=False))
    f = rng.choice([0.0, 0.25, 0.25, 0.7, 1.0], size=9)  # with ties
    ours = successors.best_listed(2, 2 + n, np.r_[0, 0, to], 5, lo, hi, 0, 1.0 - lo.sum(), f)
    assert ours == pytest.approx(greedy_value(lo, hi, f[to - 5]), abs=1e-14)
