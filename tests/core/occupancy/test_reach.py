"""Programs without the pairs that can have no mass: states that nothing reaches, and masks."""

import numpy as np
import pytest

from occupancy_facades import OccupancyFTRL, OccupancyKL, checked_losses
from occupancy_reference import Program, clarabel_solve, dual_value, objective, violations
from occupancy_worlds import lifted, lower_bound, random_boxes, reached, sparse_world
from unbounded import worlds
from unbounded.core.occupancy.layout import Layers
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.reach import reachable


def living(layers, lo, hi, allowed=None):
    """Over pairs: can it have any mass?"""
    alive = reached(layers, lo, hi, allowed)[1:]
    if allowed is None:
        allowed = [np.ones((n, layers.n_actions), bool) for n in layers.sizes]
    tables = [a & s[:, None] for a, s in zip(allowed, alive, strict=True)]
    return np.concatenate([[True], *[table.ravel() for table in tables]])


def fresh_losses(rng, n, w):
    """Of this episode: half of the pairs, up to ten times the largest weight."""
    losses = rng.exponential(size=n) * (rng.random(n) < 0.5) * w.max() * 10 ** rng.uniform(-2, 1)
    losses[0] = 0.0
    return losses


def check_raw_solvers(seed, solves=6):
    """A sequence of both programs over one world; how many states had no mass."""
    rng = np.random.default_rng([77, seed])
    mdp = sparse_world(rng)
    layers, (lo, hi) = mdp.layers, random_boxes(rng, mdp)
    assert np.array_equal(np.concatenate(reached(layers, lo, hi)), reachable(layers, lo, hi))
    alive = living(layers, lo, hi)
    w = 10 ** rng.uniform(-1, 1, size=layers.horizon) * 10 ** rng.uniform(-6, 6)
    ftrl, kl = OccupancyFTRL(layers, lo, hi), OccupancyKL(layers, lo, hi)
    L = np.zeros(layers.n_pairs)
    for _ in range(solves):
        losses = fresh_losses(rng, layers.n_pairs, w)
        L += losses
        for solution in (ftrl.solve(L, w), kl.step(losses, w)):
            assert solution.certificate.solved, (seed, solution.certificate)
            assert solution.certificate.status == "solved"
            assert not np.any(solution.q[~alive])
            assert max(violations(layers, lo, hi, solution.q, solution.transitions)) <= 1e-13
            for table in layers.unpack_pairs(solution.pi):
                assert np.allclose(table.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        solution = ftrl.solve(L, w)
        gap = objective(layers, L, w, solution.q) - lower_bound(layers, lo, hi, L, w, solution.v)
        noise = 1e-12 * (w.max() + np.abs(L).max())
        assert -noise <= gap <= solution.certificate.gap + noise, (seed, gap, solution.certificate)
        assert gap <= 2e-8 * w.min() + noise
    return int(np.sum(~reachable(layers, lo, hi)))


def test_states_that_nothing_reaches():
    assert sum(check_raw_solvers(seed) for seed in range(12)) >= 12


@pytest.mark.long
def test_states_that_nothing_reaches_in_three_hundred_mdps():
    assert sum(check_raw_solvers(seed) for seed in range(300)) >= 300


def test_a_wrong_dual_point_proves_less():
    """The bound can fail: with other multipliers the gap is beyond what was certified."""
    caught = 0
    for seed in range(12):
        rng = np.random.default_rng([77, seed])
        mdp = sparse_world(rng)
        layers, (lo, hi) = mdp.layers, random_boxes(rng, mdp)
        w = rng.uniform(0.5, 2.0, size=layers.horizon)
        L = fresh_losses(rng, layers.n_pairs, w)
        solution = OccupancyFTRL(layers, lo, hi).solve(L, w)
        F = objective(layers, L, w, solution.q)
        assert F - lower_bound(layers, lo, hi, L, w, solution.v) <= 1e-7
        wrong = solution.v + rng.normal(size=layers.n_states)
        wrong[0] = 0.0
        caught += F - lower_bound(layers, lo, hi, L, w, wrong) > 1e-3
        # and without lifting, the states that nothing reaches spoil the bound
        caught += F - dual_value(layers, L, w, lo, hi, solution.v) > 1e-3
    assert caught >= 16


@pytest.mark.parametrize("seed", range(4))
def test_masked_actions(seed):
    """A loss of +inf: as if the action did not exist, for both programs."""
    rng = np.random.default_rng([5, seed])
    mdp = sparse_world(rng, max_horizon=4, max_states=4, max_actions=2)
    layers = Layers(mdp.layers.sizes, 3)
    initial, kernels = mdp.layers.unpack_transitions(mdp.P)
    actions = rng.integers(mdp.layers.n_actions, size=3)
    P = layers.pack_transitions(initial, [kernel[:, actions] for kernel in kernels])
    lo, hi = random_boxes(rng, LayeredMDP(*unpacked(layers, P)))
    allowed = [rng.random((n, 3)) < 0.6 for n in layers.sizes]
    for table in allowed:
        table[np.arange(len(table)), rng.integers(3, size=len(table))] = True
    alive = living(layers, lo, hi, allowed)
    mask = np.concatenate([[0.0], *[np.where(a, 0.0, np.inf).ravel() for a in allowed]])
    w = rng.uniform(0.5, 2.0, size=layers.horizon)
    ftrl, kl = OccupancyFTRL(layers, lo, hi), OccupancyKL(layers, lo, hi)
    L = np.zeros(layers.n_pairs)
    for _ in range(4):
        losses = fresh_losses(rng, layers.n_pairs, w)
        L += losses
        for solution in (ftrl.solve(L + mask, w), kl.step(losses + mask, w)):
            assert solution.certificate.solved
            assert not np.any(solution.q[~alive])
            assert not np.any(solution.pi[np.isinf(mask)])
            assert max(violations(layers, lo, hi, solution.q, solution.transitions)) <= 1e-13
        solution = ftrl.solve(L + mask, w)
        v = lifted(layers, lo, hi, L, w, solution.v, allowed)
        gap = objective(layers, L, w, solution.q) - dual_value(layers, L + mask, w, lo, hi, v)
        assert -1e-11 <= gap <= solution.certificate.gap + 1e-11


def unpacked(layers, P):
    initial, kernels = layers.unpack_transitions(P)
    return initial, kernels, layers.n_actions


def test_against_clarabel_with_states_that_nothing_reaches():
    rng = np.random.default_rng(3)
    mdp = sparse_world(rng, max_horizon=3, max_states=3, max_actions=2)
    layers, (lo, hi) = mdp.layers, random_boxes(rng, mdp)
    w = rng.uniform(0.5, 2.0, size=layers.horizon)
    L = fresh_losses(rng, layers.n_pairs, w)
    solution = OccupancyFTRL(layers, lo, hi).solve(L, w)
    status, F, x = clarabel_solve(Program(layers, lo, hi), L, w, tolerance=1e-9)
    assert "Solved" in status
    assert objective(layers, L, w, solution.q) == pytest.approx(F, abs=1e-5)
    assert np.allclose(x[: layers.n_pairs - 1], solution.q[1:], atol=1e-3)


def test_what_the_lower_bounds_leave_nothing_for_is_not_reached():
    """hi > 0, but the other entries' lo already sum to one."""
    layers = Layers([2, 2], n_actions=1)
    lo = layers.pack_transitions([1.0, 0.0], [[[[0.25, 0.5]], [[0.0, 0.0]]]])
    hi = layers.pack_transitions([1.0, 0.5], [[[[0.5, 1.0]], [[1.0, 1.0]]]])
    assert reachable(layers, lo, hi).tolist() == [True, True, False, True, True]
    lo[0] = 0.75
    assert reachable(layers, lo, hi).all()


def test_a_state_may_come_back():
    """Boxes of the projection need not be nested; a state that was shut out keeps its base."""
    mdp = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
    shut = np.ones(mdp.layers.n_transitions)
    shut[mdp.layers.table[4, 1] + 4 : mdp.layers.table[4, 1] + 8] = 0.0  # state 1 of layer 2
    learner = OccupancyKL(mdp.layers, np.zeros_like(shut), shut)
    before = learner.ln_q.copy()
    gone = [mdp.layers.index(2, 1, a) for a in range(2)]
    losses = np.ones(mdp.layers.n_pairs)
    for _ in range(3):
        solution = learner.step(losses * np.arange(losses.size), [1.0, 1.0])
        assert solution.certificate.solved
        assert not np.any(solution.q[gone])
    assert np.array_equal(learner.ln_q[gone], before[gone])
    learner.set_boxes(np.full_like(shut, 0.1), np.ones_like(shut))
    solution = learner.step(losses, [1.0, 1.0])
    assert solution.certificate.solved
    assert np.all(solution.q[gone] > 0.01)


def test_losses_that_are_no_losses():
    layers = Layers([2], n_actions=2)
    with pytest.raises(ValueError, match="finite, or \\+inf"):
        checked_losses(layers, [0.0, np.nan, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="finite, or \\+inf"):
        checked_losses(layers, [0.0, -np.inf, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="state 1 of layer 1"):
        checked_losses(layers, [0.0, 0.0, np.inf, np.inf, np.inf])
