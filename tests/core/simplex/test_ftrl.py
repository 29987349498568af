"""The solvers on the simplex against 50-digit arithmetic."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unbounded.core.simplex.ftrl import (
    log_barrier,
    log_barrier_mixed,
    shannon,
    shannon_mixed,
    total,
    tsallis,
    tsallis_cold,
    tsallis_mixed,
    tsallis_moved,
)
from unbounded.core.simplex.sampling import LANES, new_law

mpmath.mp.dps = 50


def exact_tsallis(L: np.ndarray, eta: float) -> list[mpmath.mpf]:
    """Newton's method for the normalizer, 50 digits: from above, on a concave function."""
    theta = [mpmath.mpf(float(v)) * mpmath.mpf(eta) for v in L]
    x = min(theta) - 2
    for _ in range(12):
        near = [1 / (v - x) for v in theta]
        total = 4 * mpmath.fsum(r * r for r in near)
        x += (total - total**1.5) / (4 * mpmath.fsum(r**3 for r in near))
    assert abs(total - 1) < 1e-40
    return [4 * r * r for r in near]


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
        yield n, np.where(np.arange(n) == n - 1, 0.0, 1e12), 1.0  # the last one


@pytest.mark.parametrize(("n", "L", "eta"), list(instances()))
def test_tsallis_to_twelve_digits(n, L, eta):
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
@example([0.0, 9e4, 9e4, 9e4], 57.0, 1.0, 0, 9e4)  # little stays of the anchor's sums
@example([0.0, 93146.0, 93146.0, 93146.0], 57.0, 1.0, 0, 93146.0)
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


@pytest.mark.parametrize("n", [1, 63, 64, 200, 1001])
def test_total_is_the_sum(n):
    values = np.random.default_rng(n).normal(size=n)
    assert total(values, np.zeros(LANES)) == pytest.approx(math.fsum(values), abs=1e-12)


# ------------------------------------------------------------------ log barrier


def solve_barrier(L, eta, start=1.0):
    L = np.asarray(L, dtype=float)
    p = np.empty(L.size)
    lam, total = log_barrier(L, eta, start, p, np.zeros(3 * LANES))
    return p, lam, total


def exact_barrier(L, eta):
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
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6),
    st.floats(-6, 6).map(lambda x: 10.0**x),
    st.floats(-10, 100),
)
def test_log_barrier_agrees_with_forty_digits(L, eta, start):
    p, lam, total = solve_barrier(L, eta, start)
    np.testing.assert_allclose(p, exact_barrier(L, eta), rtol=1e-11)
    assert abs(total - 1.0) < 1e-13
    assert 1.0 - 1e-12 <= lam <= len(L) * (1.0 + 1e-12)


@pytest.mark.parametrize("n", [LANES - 1, LANES, 3 * LANES + 5, 1000])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0, 1e6])
def test_log_barrier_with_many_arms(n, spread):
    L = spread * np.random.default_rng(n).exponential(size=n)
    for start in (1.0, float(n), 17.0):
        p, _, total = solve_barrier(L, 0.3, start)
        assert abs(total - 1.0) < 1e-12
        np.testing.assert_allclose(
            1.0 / p - 1.0 / p.max(), 0.3 * (L - L.min()), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("k", [-1000, -300, 300, 900])
def test_log_barrier_depends_on_the_product_of_rate_and_losses_only(k):
    L = np.random.default_rng(0).normal(size=7)
    plain = solve_barrier(L, 0.7)[0]
    assert np.array_equal(plain, solve_barrier(np.ldexp(L, k), math.ldexp(0.7, -k))[0])


# ------------------------------------------------------------------------ laws


@pytest.mark.parametrize("n", [2, 5, 31, 32, 33, 200])
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_mixed_is_normalized_and_mixed(n, beta):
    """And the sums of the lanes are those of the new q, of which many arms are drawn."""
    L, eta = np.random.default_rng(n).exponential(size=n), 0.7
    p, lanes = np.empty(n), np.zeros(3 * LANES)

    def check(law, share):
        np.testing.assert_allclose(law.q, (1.0 - share) * p + share / n, rtol=1e-12)
        if n >= LANES:
            padded = np.append(law.q, np.zeros(-n % LANES)).reshape(-1, LANES)
            np.testing.assert_allclose(law.lane_sums, padded.sum(axis=0), rtol=1e-12)

    law = new_law(n)
    anchor = tsallis_mixed(L, eta, tsallis_cold(L, eta), beta, law)
    alone = tsallis(L, eta, tsallis_cold(L, eta), p, lanes)
    assert anchor == alone
    p /= alone.S2
    check(law, beta)
    law = new_law(n)
    shannon_mixed(L, eta, beta, law)
    p /= shannon(L, eta, p, lanes)
    check(law, beta)
    law = new_law(n)
    lam = log_barrier_mixed(L, eta, 1.0, law)
    alone_lam, sum_p = log_barrier(L, eta, 1.0, p, lanes)
    assert lam == alone_lam
    p /= sum_p
    check(law, 0.0)


@pytest.mark.parametrize("n", [3, 31, 32, 70])
def test_the_anchor_is_that_of_the_solution(n):
    """x solves sum 4 / (eta (L - x))^2 = 1, and the sums are those at x."""
    L, eta = np.random.default_rng(n).exponential(size=n), 0.4
    _, anchor = solve_tsallis(L, eta)
    for j, power_sum in ((2, anchor.S2), (3, anchor.S3)):
        assert power_sum == pytest.approx(((L - anchor.x) ** -j).sum(), rel=1e-9)
    assert pytest.approx(((L - anchor.x) ** -4.0).sum(), rel=1e-4) == anchor.S4  # of a step before
    assert 4.0 / eta**2 * anchor.S2 == pytest.approx(1.0, rel=1e-12)


def test_a_moved_anchor_has_the_sums_of_the_moved_losses():
    L, eta = np.random.default_rng(5).exponential(size=6), 0.4
    _, anchor = solve_tsallis(L, eta)
    sums = [((L - anchor.x) ** -float(j)).sum() for j in (2, 3, 4)]
    anchor = anchor._replace(S2=sums[0], S3=sums[1], S4=sums[2])
    before = L[2]
    L[2] += 1.7
    moved = tsallis_moved(anchor, before, L[2])
    assert moved.x == anchor.x
    wanted = [((L - anchor.x) ** -float(j)).sum() for j in (2, 3, 4)]
    np.testing.assert_allclose(moved[1:], wanted, rtol=1e-12)
