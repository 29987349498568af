"""The solvers on the simplex against 50-digit arithmetic."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.core.simplex.ftrl import shannon, total, tsallis, tsallis_cold, tsallis_moved
from unbounded.core.simplex.lanes import LANES
from unbounded.core.simplex.sampling import fill_uniform, mix, sample, uniform

mpmath.mp.dps = 50


def exact_tsallis(L: np.ndarray, eta: float) -> list[mpmath.mpf]:
    """Bisection on the normaliser, 50 digits."""
    theta = [mpmath.mpf(float(v)) * mpmath.mpf(eta) for v in L]
    low = min(theta) - 2 * mpmath.sqrt(len(theta))
    high = min(theta) - 2
    for _ in range(120):
        x = (low + high) / 2
        if mpmath.fsum(4 / (v - x) ** 2 for v in theta) > 1:
            high = x
        else:
            low = x
    return [4 / (v - low) ** 2 for v in theta]


def exact_shannon(L: np.ndarray, eta: float) -> list[mpmath.mpf]:
    weights = [mpmath.exp(-mpmath.mpf(eta) * mpmath.mpf(float(v))) for v in L]
    scale = mpmath.fsum(weights)
    return [w / scale for w in weights]


def solve_tsallis(L, eta, anchor=None):
    p, lanes = np.empty(L.size), np.zeros(3 * LANES)
    anchor = tsallis(L, eta, tsallis_cold(L, eta) if anchor is None else anchor, p, lanes)
    return p / anchor.S2, anchor


def instances():
    rng = np.random.default_rng(1)
    for n in (1, 2, 3, 10, 63, 64, 65, 200, 1000):
        for spread in (0.0, 1e-9, 1.0, 1e3, 1e9):
            yield n, rng.exponential(size=n) * spread, 10.0 ** rng.uniform(-4, 2)
        yield n, np.where(np.arange(n) == 0, 0.0, 1e12), 1.0  # one arm far ahead


@pytest.mark.parametrize(("n", "L", "eta"), list(instances()))
def test_tsallis_to_twelve_digits(n, L, eta):
    if n == 1000 and L.max() in (1.0, 1e9):
        pytest.skip("enough of the slow ones")
    p, _ = solve_tsallis(L, eta)
    exact = exact_tsallis(L, eta)
    assert max(abs(float(a) - float(b)) for a, b in zip(p, exact, strict=True)) <= 1e-12
    assert abs(p.sum() - 1.0) <= 1e-12


@pytest.mark.parametrize(("n", "L", "eta"), list(instances()))
def test_shannon_to_twelve_digits(n, L, eta):
    p, lanes = np.empty(n), np.zeros(LANES)
    p /= shannon(L, eta, p, lanes)
    exact = exact_shannon(L, eta)
    assert max(abs(float(a) - float(b)) for a, b in zip(p, exact, strict=True)) <= 1e-12


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(0.0, 1e6), min_size=2, max_size=80),
    st.floats(1e-6, 1e3),
    st.floats(0.3, 1.0),
    st.integers(0, 1000),
    st.floats(0.0, 1e7),
)
def test_a_warm_start_finds_what_a_cold_start_finds(values, eta, decay, k, growth):
    L = np.array(values)
    _, anchor = solve_tsallis(L, eta)
    k %= L.size
    before = L[k]
    L[k] += growth
    warm, _ = solve_tsallis(L, eta * decay, tsallis_moved(anchor, before, L[k]))
    cold, _ = solve_tsallis(L, eta * decay)
    np.testing.assert_allclose(warm, cold, atol=2e-12)


def test_tsallis_minimises_its_objective():
    """<L, p> - 4 sum sqrt(p) / eta is not lower anywhere else."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        n, eta = int(rng.integers(2, 30)), 10.0 ** rng.uniform(-2, 1)
        L = rng.exponential(size=n)
        p, _ = solve_tsallis(L, eta)

        def objective(p, L=L, eta=eta):
            return L @ p - 4.0 * np.sqrt(p).sum() / eta

        others = rng.dirichlet(np.ones(n), size=200)
        near = 0.999 * p + 0.001 * others
        best = objective(p)
        assert all(objective(other) >= best - 1e-12 * abs(best) for other in (*others, *near))


@pytest.mark.parametrize("n", [1, 70])
def test_uniform_whatever_the_memory_held(n):
    q, lane_sums = np.full(n, np.nan), np.full(LANES, np.nan)
    fill_uniform(q, lane_sums)
    assert (q == 1.0 / n).all()
    assert n < LANES or lane_sums.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 500])
def test_sampling_follows_the_distribution(n):
    rng = np.random.default_rng(n)
    q, lane_sums = rng.dirichlet(np.full(n, 0.5)), np.zeros(LANES)
    q[rng.random(n) < 0.2] = 0.0
    q[0] += 1.0 - q.sum()
    mix(q, 1.0, 0.0, lane_sums)
    draws = 200_000
    words = rng.bit_generator.random_raw(draws)
    counts = np.bincount([sample(q, lane_sums, w) for w in words], minlength=n)
    assert (counts[q == 0.0] == 0).all()
    expected = q * draws
    pooled = expected >= 5.0
    chi2 = ((counts - expected)[pooled] ** 2 / expected[pooled]).sum()
    degrees = max(1, pooled.sum() - 1)
    assert chi2 <= degrees + 5.0 * math.sqrt(2.0 * degrees)


def test_the_last_word_takes_an_arm_of_positive_probability():
    q = np.array([0.3, 0.2, 0.5 - 1e-9, 0.0])
    assert sample(q, np.zeros(LANES), np.uint64(2**64 - 1)) == 2
    many = np.zeros(130)
    many[[3, 70]] = 0.5 - 1e-9
    lane_sums = np.zeros(LANES)
    mix(many, 1.0, 0.0, lane_sums)
    assert many[sample(many, lane_sums, np.uint64(2**64 - 1))] > 0.0


def test_uniform_equals_the_generator():
    words = np.random.PCG64(5).random_raw(100)
    expected = np.random.Generator(np.random.PCG64(5)).random(100)
    assert [uniform(w) for w in words] == expected.tolist()


@pytest.mark.parametrize("n", [1, 63, 64, 200, 1001])
def test_total_is_the_sum(n):
    values = np.random.default_rng(n).normal(size=n)
    assert total(values, np.zeros(LANES)) == pytest.approx(math.fsum(values), abs=1e-12)
