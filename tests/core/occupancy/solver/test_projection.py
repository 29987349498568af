"""Projections on boxes with sum one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.core.occupancy.solver.projection import balance, project

seeds = st.integers(0, 2**32 - 1)


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
    P = np.concatenate([np.full(start, 7.0), rng.normal(0.3, 0.5, size=m * n)])
    given_P = P.copy()
    project(m, n, lo, hi, start, P, np.empty(m), np.empty(4 * m))
    assert np.array_equal(P[:start], given_P[:start])
    for i in range(m):
        row = slice(start + i, None, m)
        expected, _ = bisection(lo[row], hi[row], given_P[row])
        assert np.allclose(P[row], expected, rtol=0, atol=1e-13)
        assert P[row].sum() == pytest.approx(1.0, abs=1e-14)
        assert np.all(lo[row] <= P[row])
        assert np.all(P[row] <= hi[row])
    again = P.copy()
    project(m, n, lo, hi, start, again, np.empty(m), np.empty(4 * m))
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
