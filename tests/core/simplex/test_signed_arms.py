"""Estimates of either sign: the gap and the distribution, against arithmetic with 60 digits."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from unbounded.core.simplex import signed_arms

DIGITS = 60  # more where the sizes are further apart


@pytest.fixture(params=[False, True], ids=["few", "many"])
def many(request, monkeypatch):
    """Whether the arms are played as many arms are, from the first one on."""
    monkeypatch.setattr(signed_arms, "MANY_ARMS", 1 if request.param else 1000)
    return request.param


def normaliser(m: list[Decimal]) -> Decimal:
    """y with sum (m + y)^-2 = 1, from the left by Newton's method on a concave function."""
    y = Decimal(1)
    for _ in range(400):
        S2 = sum((v + y) ** -2 for v in m)
        S3 = sum((v + y) ** -3 for v in m)
        step = S2 * (1 - 1 / S2.sqrt()) * S2.sqrt() / S3
        y += step
        if abs(step) < Decimal(10) ** -(DIGITS - 8):
            break
    return y


def roots(M: list[Decimal], S: Decimal) -> list[Decimal]:
    lowest = min(M)
    m = [(v - lowest) / (2 * S) for v in M]
    y = normaliser(m)
    return [1 / (v + y) for v in m]


def exact_gap(M: np.ndarray, S: float, k: int, x: float) -> tuple[float, np.ndarray]:
    """The gap and p' = argmin <L + x e_k, p> - 4 S sum sqrt(p)."""
    with localcontext() as context:
        context.prec = DIGITS
        before = [Decimal(float(v)) for v in M]
        after = list(before)
        after[k] += Decimal(x)
        r, s = roots(before, Decimal(S)), roots(after, Decimal(S))
        gap = 2 * Decimal(S) * sum((a - b) ** 2 / b for a, b in zip(r, s, strict=True))
        return float(gap), np.array([float(v * v) for v in s])


def arms_with(M: np.ndarray, S: float) -> signed_arms.Arms:
    arms = signed_arms.new_arms(M.size)
    arms.M[:] = M
    return signed_arms.solve(arms, S, 0.0)


def distribution(arms: signed_arms.Arms) -> np.ndarray:
    q = np.empty(arms.M.size)
    signed_arms.fill(arms, q)
    return q


def instances(count: int, seed: int) -> list[tuple[np.ndarray, float, int, float]]:
    """Of all sizes: estimates, S, an arm, and what is added to it."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        n = int(rng.choice([2, 3, 5, 40]))
        M = rng.exponential(10.0 ** rng.uniform(-3, 4), n)
        M -= M.min()
        S = 10.0 ** rng.uniform(-2, 2)
        x = rng.normal() * 10.0 ** rng.uniform(-6, 8)
        found.append((M, S, int(rng.integers(n)), float(x)))
    return found


@pytest.mark.parametrize("instance", instances(150, 1))
def test_the_gap_is_exact_or_a_bound_that_is_hardly_more(instance, many):
    M, S, k, x = instance
    arms = arms_with(M, S)
    z = x * signed_arms.root(arms, k) / (2.0 * S)
    _, gap = signed_arms.add(arms, k, x)
    expected, _ = exact_gap(M, S, k, x)
    if abs(z) > 0.25:
        assert gap == pytest.approx(expected, rel=1e-9)
    else:
        assert expected * (1.0 - 1e-9) <= gap <= expected * (1.0 + 2.0 * abs(z)) + 1e-13 * S


@pytest.mark.parametrize("instance", instances(60, 2))
def test_the_distribution_after_the_change(instance, many):
    M, S, k, x = instance
    arms, gap = signed_arms.add(arms_with(M, S), k, x)
    arms = signed_arms.solve(arms, S + gap, 0.0)
    _, expected = exact_gap(M, S + gap, k, x)
    np.testing.assert_allclose(distribution(arms), expected, rtol=1e-9, atol=1e-15)
    assert many or arms.M.min() == 0.0
    arms.check_for(0.0)


def test_subtracted_potentials_would_have_lost_the_gap(many):
    """The control: x p_k + Phi(L) - Phi(L + x e_k), as it stands, is rounding error."""
    M, S, k, x = np.array([0.0, 50.0, 80.0]), 1.0, 0, 1e-3

    def potential(L: np.ndarray) -> float:
        r = np.array([float(v) for v in roots([Decimal(float(v)) for v in L], Decimal(S))])
        return float((L * r**2).sum() - 4.0 * S * r.sum())

    arms = arms_with(M + 0.0, S)
    p = signed_arms.root(arms, k) ** 2
    _, gap = signed_arms.add(arms, k, x)
    expected, _ = exact_gap(M, S, k, x)
    after = M + 1e6
    after[k] += x
    naive = x * p + potential(M + 1e6) - potential(after)
    assert gap == pytest.approx(expected, rel=0.01)
    assert abs(naive - expected) > expected


def test_an_arm_may_fall_without_limit(many):
    """Where min L would swallow S, differences to it do not."""
    arms = arms_with(np.array([0.0, 3.0, 5.0]), 1.0)
    for _ in range(40):
        arms, gap = signed_arms.add(arms, 0, -1e6 * arms.S)
        arms = signed_arms.solve(arms, arms.S + gap / (4.0 * (math.sqrt(3.0) - 1.0)), 0.1)
        q = distribution(arms)
        assert np.isfinite(q).all()
        assert abs(q.sum() - 1.0) < 1e-12
        arms.check_for(0.1)


@pytest.mark.parametrize("x", [-1e170, -1e90, 1e90, 1e170, 0.3e40, -0.3e40])
@pytest.mark.parametrize("k", [0, 1])
def test_changes_beside_which_S_is_nothing(many, x, k):
    """The gap is then the change times what is played of the others, or of the arm itself."""
    M = np.array([0.0, 1e40, 3e40]) if abs(x) == 0.3e40 else np.array([0.0, 1.0, 3.0])
    _, gap = signed_arms.add(arms_with(M, 1.0), k, x)
    assert gap == pytest.approx(exact_gap(M, 1.0, k, x)[0], rel=1e-9, abs=1e-13)


def test_a_lost_S_means_to_begin_anew(many):
    arms = arms_with(np.array([0.0, 3.0]), 1.0)
    arms = signed_arms.rescale(arms, 2.0**-500)
    assert arms.S == 2.0**-500
    arms = signed_arms.rescale(arms, 2.0**-500)
    assert arms.S == 0.0
    assert arms.M.tolist() == [0.0, 0.0]
    assert distribution(arms).tolist() == [0.5, 0.5]
    arms.check_for(0.0)
