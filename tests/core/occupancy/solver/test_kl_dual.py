"""The dual of a mirror-descent step: gradient and Newton matrix by differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_reference import boxes_as_arrays, states_as_arrays, violations
from occupancy_work import Case
from unbounded.core.occupancy.solver.kl_dual import assemble, evaluate

seeds = st.integers(0, 2**32 - 1)


def point(seed):
    """A case with a random base measure of the transitions, and its gradient in v."""
    case = Case(seed)
    case.v *= 0.2
    case.ln_P = np.log(case.mdp.P + 0.05)

    def gradient(v):
        evaluate(case.lay, case.lo, case.hi, v, case.ln_P, case.theta.copy(), case.W)
        return case.W.grad.copy()

    return case, gradient


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_transitions_are_clipped_multiples_of_the_base(seed):
    case, _ = point(seed)
    W, layers = case.W, case.layers
    evaluate(case.lay, case.lo, case.hi, case.v, case.ln_P, case.theta, W)
    box, _ = violations(layers, case.lo, case.hi, np.ones(layers.n_pairs), W.P)
    assert box <= 1e-13
    arrays = [boxes_as_arrays(layers, x) for x in (case.lo, case.hi, case.ln_P, W.P)]
    values, at = states_as_arrays(layers, case.v), 0
    for h in range(layers.horizon):
        w = W.w[h]
        for s, a in np.ndindex(arrays[0][h].shape[:2]):
            lo, hi, ln_P, P = (x[h][s, a] for x in arrays)
            v, theta = values[h + 1], case.theta[at]
            expected = np.clip(np.exp(ln_P + (v - theta) / w), lo, hi)
            assert np.allclose(P, expected, rtol=1e-9, atol=1e-13)
            kept = P > 0
            kl = np.sum((P * (np.log(np.where(kept, P, 1.0)) - ln_P) - P)[kept])
            # the constant sum P0 of the divergence is counted as one
            assert W.bound[at] == pytest.approx(P @ v - w * (kl + 1), abs=1e-11)
            at += 1
    assert not W.bound[at:].any()


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_gradients_are_differences_of_values(seed):
    case, gradient = point(seed)
    ours = gradient(case.v)
    for k in range(1, case.v.size):
        e = np.zeros(case.v.size)
        e[k] = 1e-6
        values = [
            evaluate(case.lay, case.lo, case.hi, v, case.ln_P, case.theta.copy(), case.W)
            for v in (case.v + e, case.v - e)
        ]
        assert ours[k] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_newton_matrix_is_minus_the_hessian_without_two_rank_one_terms(seed):
    case, gradient = point(seed)
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


def test_damping_is_relative_to_the_mass_of_a_state():
    case, gradient = point(3)
    gradient(case.v)
    matrices = []
    for damping in (0.0, 0.25):
        assemble(case.lay, case.lo, case.hi, damping, case.W)
        matrices.append(case.newton_matrix())
    added = (matrices[1] - matrices[0])[1:, 1:]
    fed = (case.W.r <= 1.5 * case.W.q)[1:]
    expected = 0.25 * case.W.q[1:] / np.repeat(case.w, case.layers.sizes)
    assert np.allclose(np.diag(added)[fed], expected[fed], rtol=1e-9)
    assert not (added - np.diag(np.diag(added))).any()
