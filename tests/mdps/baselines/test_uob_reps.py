"""UOB-REPS: one step against Clarabel, its constants, its boxes."""

import math

import numpy as np
import pytest

from mdp_play import params_of, play, random_losses, state_of
from occupancy_facades import upper_occupancy
from occupancy_reference import Program, clarabel_solve
from unbounded import UOBREPS, worlds
from unbounded.core.occupancy.mdp import Markov

MDP = worlds.dirichlet([2, 3], 2, np.random.default_rng(0))
LAYERS = MDP.layers
T = 120


@pytest.mark.parametrize("k", [-1000, 40, 1019])
def test_given_a_scaled_range_it_plays_the_same(k):
    losses = random_losses(LAYERS, T, seed=9)
    a = UOBREPS([2, 3], 2, T, loss_range=(-4, 4), seed=10)
    b = UOBREPS([2, 3], 2, T, loss_range=(-4 * 2.0**k, 4 * 2.0**k), seed=10)
    one, _ = play(a, MDP, losses, seed=11)
    two, _ = play(b, MDP, np.ldexp(losses, k), seed=11)
    assert np.array_equal(one, two)
    assert a.clipped == b.clipped
    assert a.certificate.solves == T
    assert a.certificate.unsolved == 0
    assert a.certificate.worst_gap <= 1.1e-8
    assert a.certificate == b.certificate


def test_the_first_step_against_clarabel():
    """One episode from the formulas: estimates with u = 1, whole simplices, then the projection."""
    learner = UOBREPS(
        [2, 3], 2, 50, loss_range=[(0, 2), (-1, 3)], implicit=0.3, tolerance=1e-11, seed=12
    )
    p, q0, P0 = params_of(learner), *map(np.exp, (state_of(learner).ln_q, state_of(learner).ln_P))
    plan = learner.ask()
    learner.tell(plan, [1, 2], [0, 1], [1.5, 1.0])
    L = np.zeros(LAYERS.n_pairs)
    L[LAYERS.index(1, 1, 0)] = 1.5 / (0.5 + p.gamma)
    L[LAYERS.index(2, 2, 1)] = 2.0 / (0.5 + p.gamma)
    w = np.array([2.0, 4.0]) / p.eta
    program = Program(LAYERS, state_of(learner).boxes.lo, state_of(learner).boxes.hi)
    status, _, x = clarabel_solve(program, L, w, entropy_on_triples=(q0, P0))
    assert status == "Solved"
    assert np.allclose(x[: program.n_x], np.exp(state_of(learner).ln_q)[1:], atol=1e-6)


def test_a_later_step_against_clarabel():
    """With boxes that bind: estimates by upper occupancy bounds, then the projection."""
    learner = UOBREPS([2, 3], 2, 300, width=0.05, loss_range=(-4, 4), tolerance=1e-11, seed=1)
    losses = random_losses(LAYERS, 201, seed=2)
    play(learner, MDP, losses[:200], seed=3)
    state, p = state_of(learner), params_of(learner)
    q0, P0 = np.exp(state.ln_q), np.exp(state.ln_P)
    lo, hi = state.boxes.lo.copy(), state.boxes.hi.copy()
    policy = learner.policy()
    u = upper_occupancy(policy, lo, hi)
    visited = [LAYERS.index(1, 1, 0), LAYERS.index(2, 2, 1)]
    seen = [1.5, -2.0]
    learner.tell(learner.ask(), [1, 2], [0, 1], seen)
    assert np.array_equal(state_of(learner).boxes.lo, lo)  # no new epoch
    L = np.zeros(LAYERS.n_pairs)
    for pair, loss in zip(visited, seen, strict=True):
        L[pair] = (loss + 4.0) / (u[pair] + p.gamma)
        assert u[pair] < 0.9
    status, _, x = clarabel_solve(
        Program(LAYERS, lo, hi), L, np.full(2, 8.0 / p.eta), entropy_on_triples=(q0, P0)
    )
    assert status == "Solved"
    assert np.allclose(x[:10], np.exp(state_of(learner).ln_q)[1:], atol=1e-6)
    assert not np.allclose(learner.policy().pi, policy.pi, atol=1e-4)


def test_constants():
    """gamma = eta = sqrt(H ln(H S A/delta)/(T S A)) and the radius (2, 14/3), each by a factor."""
    eta = math.sqrt(2 * math.log(2 * 10 / 0.1) / (T * 10))
    p = params_of(UOBREPS([2, 3], 2, T, 0.1))
    assert p.eta == pytest.approx(eta, rel=1e-14)
    assert p.gamma == pytest.approx(eta, rel=1e-14)
    assert tuple(p.width) == pytest.approx((2.0, 14 / 3), rel=1e-14)
    assert p.log_term == pytest.approx(math.log(T * 10 / 0.1), rel=1e-14)
    p = params_of(UOBREPS([2, 3], 2, T, 0.1, rate=2.0, implicit=0.3, width=0.4))
    assert p.eta == pytest.approx(2.0 * eta, rel=1e-14)
    assert p.gamma == pytest.approx(0.3 * eta, rel=1e-14)
    assert tuple(p.width) == pytest.approx((0.8, 0.4 * 14 / 3), rel=1e-14)


def test_boxes_are_those_of_the_counts():
    """Radius from the formula, counts from what was told; not nested."""
    learner = UOBREPS([2, 3], 2, 500, width=0.1, seed=4)
    p, shrank = params_of(learner), []
    before = [state_of(learner).boxes.lo.copy(), state_of(learner).boxes.hi.copy()]
    M, told = np.zeros((2, 2, 3)), 0

    def check(learner, plan, states, actions, seen):
        nonlocal told
        state = state_of(learner)
        if not np.array_equal(state.boxes.lo, before[0]):
            shrank.append(
                np.all(state.boxes.lo >= before[0]) and np.all(state.boxes.hi <= before[1])
            )
            before[:] = state.boxes.lo.copy(), state.boxes.hi.copy()
            _, (lo,) = LAYERS.unpack_transitions(state.boxes.lo)
            _, (hi,) = LAYERS.unpack_transitions(state.boxes.hi)
            for s, a in np.ndindex(2, 2):
                n = M[s, a].sum()
                if n == 0:
                    assert (lo[s, a].max(), hi[s, a].min()) == (0.0, 1.0)
                    continue
                P, d = M[s, a] / n, max(1, n - 1)
                eps = p.width.c1 * np.sqrt(P * p.log_term / d) + p.width.c2 * p.log_term / d
                assert lo[s, a] == pytest.approx(np.maximum(0, P - eps), abs=1e-14)
                assert hi[s, a] == pytest.approx(np.minimum(1, P + eps), abs=1e-14)
            told += 1
        M[states[0], actions[0], states[1]] += 1

    play(learner, MDP, random_losses(LAYERS, 500, seed=5), seed=6, before=check)
    assert told > 10
    assert not all(shrank)
    assert np.mean(before[1] - before[0]) < 0.6


def test_losses_outside_are_clipped_and_counted():
    ranges = [(0.0, 1.0), (-1.0, 1.0)]
    runs = []
    for losses in ([7.0, -9.0], [1.0, -1.0]):
        learner = UOBREPS([2, 3], 2, T, loss_range=ranges, seed=0)
        learner.tell(learner.ask(), [0, 0], [0, 0], losses)
        runs.append(learner)
    assert [learner.clipped for learner in runs] == [2, 0]
    assert np.array_equal(runs[0].policy().pi, runs[1].policy().pi)
    assert not np.array_equal(runs[0].policy().pi, Markov.uniform(LAYERS).pi)


def test_bad_settings():
    for settings, message in (
        ({"loss_range": (1, 1)}, "low < high"),
        ({"loss_range": [(0, 1), (0, 1)]}, "1 such pairs"),
        ({"delta": 0.0}, "delta"), ({"rate": 0.0}, "rate"), ({"implicit": -1.0}, "implicit"),
        ({"width": 0.0}, "width"), ({"tolerance": 0.0}, "tolerance"), ({"episodes": 0}, "episodes"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            UOBREPS(**{"layers": [1], "n_actions": 2, "episodes": 10} | settings)
