"""The smoothed dual and its projections on boxes with sum one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from occupancy_reference import boxes_as_arrays, states_as_arrays, violations
from occupancy_work import Case
from unbounded.core.occupancy.layout import STATE
from unbounded.core.occupancy.solver.dual import balance, evaluate, project

seeds = st.integers(0, 2**32 - 1)


def smoothed_maximum(lo, hi, v, rho, P0):
    """max <P, v> - (rho/2) ||P - P0||^2 over the box with sum one, and the P."""
    low, high = v.min() - 2 * rho, v.max() + 2 * rho
    for _ in range(100):
        theta = 0.5 * (low + high)
        P = np.clip(P0 + (v - theta) / rho, lo, hi)
        low, high = (theta, high) if P.sum() > 1 else (low, theta)
    return P @ v - 0.5 * rho * np.sum((P - P0) ** 2), P


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_values_follow_the_definition(seed):
    case = Case(seed)
    layers, W = case.layers, case.W
    ours = evaluate(case.lay, case.lo, case.hi, case.v, case.P0, case.theta, W)
    lows, highs, P0s, Ps = (boxes_as_arrays(layers, x) for x in (case.lo, case.hi, case.P0, W.P))
    values, total = states_as_arrays(layers, case.v), 0.0
    for h in range(layers.horizon + 1):
        c = layers.unpack_pairs(case.L)[h - 1] + values[h][:, None] if h else np.zeros((1, 1))
        c = c.copy()
        if h < layers.horizon:
            for s, a in np.ndindex(c.shape):
                box = lows[h][s, a], highs[h][s, a]
                phi, P = smoothed_maximum(*box, values[h + 1], W.rho[h], P0s[h][s, a])
                c[s, a] -= phi
                assert np.allclose(Ps[h][s, a], P, rtol=0, atol=1e-10)
        if h == 0:
            total += c[0, 0]
        else:
            e = np.exp(-c / W.w[h])
            total -= W.w[h] * np.log(e.sum())
            x = layers.unpack_pairs(W.x)[h - 1]
            assert np.allclose(x, e / e.sum(), rtol=1e-9)
            at = slice(case.lay[STATE, h], case.lay[STATE, h + 1])
            assert np.allclose(W.q[at], x.sum(1), rtol=1e-14)
            assert np.allclose(W.grad[at], W.q[at] - W.r[at], rtol=0, atol=1e-15)
    assert ours == pytest.approx(total, abs=1e-11)
    box, _ = violations(layers, case.lo, case.hi, np.ones(layers.n_pairs), W.P)
    assert box <= 1e-14


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_gradients_are_differences_of_values(seed):
    case = Case(seed)

    def value(v):
        return evaluate(case.lay, case.lo, case.hi, v, case.P0, case.theta.copy(), case.W)

    step = 1e-6
    evaluate(case.lay, case.lo, case.hi, case.v, case.P0, case.theta.copy(), case.W)
    gradient = case.W.grad.copy()
    assert gradient[0] == 0.0
    for k in range(1, case.v.size):
        e = np.zeros(case.v.size)
        e[k] = step
        difference = (value(case.v + e) - value(case.v - e)) / (2 * step)
        assert gradient[k] == pytest.approx(difference, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_rows_sum_to_one_also_where_rho_is_small(seed):
    """(v - theta)/rho carries rounding of order 1e-10 here, which the free entries take up."""
    case = Case(seed)
    case.W.rho[:] = 1e-6
    evaluate(case.lay, case.lo, case.hi, case.v, case.P0, case.theta, case.W)
    box, _ = violations(case.layers, case.lo, case.hi, np.ones(case.layers.n_pairs), case.W.P)
    assert box <= 1e-14


def layer(rng):
    """m pairs with boxes around distributions on n states, entries after ``start``."""
    m, n, start = (int(rng.integers(*r)) for r in ((1, 9), (1, 9), (0, 4)))
    P = rng.dirichlet(np.full(n, 0.5), size=m).T.ravel()
    width = rng.choice([0.0, 0.05, 0.3, 1.0], size=m * n)
    ahead = np.full(start, np.nan)
    lo, hi = np.maximum(P - width, 0.0), np.minimum(P + width, 1.0)
    return m, n, start, np.concatenate([ahead, lo]), np.concatenate([ahead, hi])


def bisection(lo, hi, target):
    """clip(target - t, lo, hi) with sum one."""
    low, high = np.min(target - hi) - 1, np.max(target - lo) + 1
    for _ in range(200):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.clip(target - t, lo, hi).sum() > 1 else (low, t)
    return np.clip(target - t, lo, hi), t


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_projection_is_the_nearest_distribution_in_the_box(seed):
    rng = np.random.default_rng(seed)
    m, n, start, lo, hi = layer(rng)
    values = np.clip(rng.normal(0.3, 0.5, size=m * n), -1.0, 2.0)  # what it takes
    P = np.concatenate([np.full(start, 7.0), values])
    given_P = P.copy()
    project(m, n, lo, hi, start, P, np.empty(m + n), np.empty(4 * m))
    assert np.array_equal(P[:start], given_P[:start])
    for i in range(m):
        row = slice(start + i, None, m)
        expected, _ = bisection(lo[row], hi[row], given_P[row])
        assert np.allclose(P[row], expected, rtol=0, atol=1e-13)
        assert P[row].sum() == pytest.approx(1.0, abs=1e-14)
        assert np.all(lo[row] <= P[row])
        assert np.all(P[row] <= hi[row])
    again = P.copy()
    project(m, n, lo, hi, start, again, np.empty(m + n), np.empty(4 * m))
    assert np.allclose(again, P, rtol=0, atol=2e-15)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_balance_finds_the_multiplier(seed):
    rng = np.random.default_rng(seed)
    m, n, start, lo, hi = layer(rng)
    P0 = np.concatenate([np.zeros(start), rng.dirichlet(np.ones(n), size=m).T.ravel()])
    v, rho = rng.normal(size=n), float(10 ** rng.uniform(-3, 1))
    low, high = np.full(m, v.min() - 2 * rho), np.full(m, v.max() + 2 * rho)
    theta, total, free = rng.uniform(low, high), np.empty(m), np.empty(m)
    balance(m, n, start, rho, 1e-12, lo, hi, P0, v, total, free, low, high, theta)
    for i in range(m):
        row = slice(start + i, None, m)
        target = P0[row] + v / rho
        P = np.clip(target - theta[i] / rho, lo[row], hi[row])
        expected, _ = bisection(lo[row], hi[row], target)
        assert np.allclose(P, expected, rtol=0, atol=1e-11)
        assert P.sum() - 1 == pytest.approx(total[i], abs=1e-12)
