"""The log-barrier solve and the mixability gap, beside mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.core.simplex.ftrl import log_barrier
from unbounded.core.simplex.hedge import hedge, mixability_gap
from unbounded.core.simplex.lanes import LANES

finite = st.floats(-1e3, 1e3)


def solve(L, eta, start=1.0):
    L = np.asarray(L, dtype=float)
    p = np.empty(L.size)
    lam, total = log_barrier(L, eta, start, p, np.zeros(3 * LANES))
    return p, lam, total


def exact(L, eta):
    """1 / (eta (L - min L) + lambda) with sum 1, to 40 digits."""
    with mpmath.workdps(40):
        theta = [mpmath.mpf(eta) * (mpmath.mpf(x) - mpmath.mpf(min(L))) for x in L]
        low, high = mpmath.mpf(1), mpmath.mpf(len(L))
        for _ in range(150):
            lam = (low + high) / 2
            if sum(1 / (x + lam) for x in theta) > 1:
                low = lam
            else:
                high = lam
        return np.array([float(1 / (x + lam)) for x in theta])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(finite, min_size=1, max_size=6),
    st.floats(-6, 6).map(lambda x: 10.0**x),
    st.floats(-10, 100),
)
def test_log_barrier_agrees_with_forty_digits(L, eta, start):
    p, lam, total = solve(L, eta, start)
    np.testing.assert_allclose(p, exact(L, eta), rtol=1e-11)
    assert abs(total - 1.0) < 1e-13
    assert 1.0 - 1e-12 <= lam <= len(L) * (1.0 + 1e-12)


@pytest.mark.parametrize("n", [LANES - 1, LANES, 3 * LANES + 5, 1000])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0, 1e6])
def test_log_barrier_with_many_arms(n, spread):
    L = spread * np.random.default_rng(n).exponential(size=n)
    for start in (1.0, float(n), 17.0):
        p, _, total = solve(L, 0.3, start)
        assert abs(total - 1.0) < 1e-12
        np.testing.assert_allclose(
            1.0 / p - 1.0 / p.max(), 0.3 * (L - L.min()), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("k", [-1000, -300, 300, 900])
def test_log_barrier_depends_on_the_product_of_rate_and_losses_only(k):
    L = np.random.default_rng(0).normal(size=7)
    plain = solve(L, 0.7)[0]
    assert np.array_equal(plain, solve(np.ldexp(L, k), math.ldexp(0.7, -k))[0])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(finite, finite), min_size=2, max_size=6),
    st.floats(-4, 2).map(lambda x: 10.0**x),
)
def test_mixability_gap_agrees_with_forty_digits(pairs, eta):
    L, losses = (np.array(values) for values in zip(*pairs, strict=True))
    w = np.empty(L.size)
    hedge(L, eta, w, np.zeros(LANES), np.zeros(LANES))
    gap = mixability_gap(L, eta, w, losses)
    with mpmath.workdps(40):
        weights = [mpmath.exp(-mpmath.mpf(eta) * mpmath.mpf(x)) for x in L]
        weights = [x / sum(weights) for x in weights]
        mix = -mpmath.log(
            sum(
                x * mpmath.exp(-mpmath.mpf(eta) * mpmath.mpf(y))
                for x, y in zip(weights, losses, strict=True)
            )
        ) / mpmath.mpf(eta)
        mean = sum(x * mpmath.mpf(y) for x, y in zip(weights, losses, strict=True))
        expected = float(mean - mix)
    span = losses.max() - losses.min()
    assert gap == pytest.approx(expected, abs=1e-12 * (span + 1.0 / eta) + 1e-12 * span)


def test_mixability_gap_of_follow_the_leader():
    L, losses = np.array([1.0, 1.0, 3.0]), np.array([4.0, 2.0, -1.0])
    w = np.empty(3)
    hedge(L, math.inf, w, np.zeros(LANES), np.zeros(LANES))
    assert w.tolist() == [0.5, 0.5, 0.0]
    # <w, l> = 3, and the best arm goes from 1 to 2
    assert mixability_gap(L, math.inf, w, losses) == 2.0
