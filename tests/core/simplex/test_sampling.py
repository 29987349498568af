"""Distributions over the arms, and what is drawn from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unbounded.core.simplex.sampling import (
    LANES,
    Law,
    blend,
    draw,
    make_uniform,
    new_law,
    put_all_on,
    uniform,
)


def law_of(q: np.ndarray) -> Law:
    law = new_law(q.size)
    law.q[:] = q
    blend(law, 1.0, 0.0)
    return law


@pytest.mark.parametrize("n", [1, 70])
def test_uniform_whatever_the_memory_held(n):
    law = Law(np.full(n, np.nan), np.full(LANES, np.nan), np.zeros(1))
    make_uniform(law)
    assert (law.q == 1.0 / n).all()
    assert n < LANES or law.lane_sums.sum() == pytest.approx(1.0)
    assert (new_law(n).q == 1.0 / n).all()


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 63, 64, 65, 70, 1000, 12_345])
def test_a_new_law_is_what_the_kernel_would_make(n):
    new, made = new_law(n), Law(np.empty(n), np.zeros(LANES), np.zeros(1))
    make_uniform(made)
    assert np.array_equal(new.q, made.q)
    assert np.array_equal(new.lane_sums, made.lane_sums)


@pytest.mark.parametrize("n", [1, 5, 31, 32, 33, 200])
def test_blend(n):
    law, before = new_law(n), np.random.default_rng(n).dirichlet(np.ones(n))
    law.q[:] = before
    blend(law, 0.7, 0.3 / n)
    np.testing.assert_allclose(law.q, 0.7 * before + 0.3 / n, rtol=1e-15)
    if n >= LANES:
        sums = [law.q[j::LANES].sum() for j in range(LANES)]
        np.testing.assert_allclose(law.lane_sums, sums, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 7, 100])
def test_all_on_one_arm(n):
    law = new_law(n)
    put_all_on(law, n - 1)
    assert law.q.tolist() == [0.0] * (n - 1) + [1.0]
    for word in np.random.PCG64(0).random_raw(20):
        assert draw(law, word) == (n - 1, 1.0)


@pytest.mark.parametrize("n", [1, 5, 31, 32, 33, 500])
def test_draws_follow_the_distribution(n):
    rng = np.random.default_rng(n)
    q = rng.dirichlet(np.full(n, 0.5))
    q[rng.random(n) < 0.2] = 0.0
    q[0] += 1.0 - q.sum()
    law, draws = law_of(q), 200_000
    drawn = [draw(law, word) for word in rng.bit_generator.random_raw(draws)]
    assert all(probability == law.q[k] for k, probability in drawn[:1000])
    counts = np.bincount([k for k, _ in drawn], minlength=n)
    assert (counts[q == 0.0] == 0).all()
    expected = q * draws
    pooled = expected >= 5.0
    chi2 = ((counts - expected)[pooled] ** 2 / expected[pooled]).sum()
    degrees = max(1, pooled.sum() - 1)
    assert chi2 <= degrees + 5.0 * math.sqrt(2.0 * degrees)


def test_the_last_word_takes_an_arm_of_positive_probability():
    last = np.uint64(2**64 - 1)
    assert draw(law_of(np.array([0.3, 0.2, 0.5 - 1e-9, 0.0])), last)[0] == 2
    many = np.zeros(130)
    many[[3, 70]] = 0.5 - 1e-9
    assert draw(law_of(many), last)[1] > 0.0


@pytest.mark.parametrize("n", [2, 40])
def test_an_arm_has_its_lower_end_and_not_its_upper_one(n):
    """So the first word, which is 0, takes no arm of probability 0."""
    q = np.zeros(n)
    q[1] = 1.0
    assert draw(law_of(q), np.uint64(0)) == (1, 1.0)
    q[:2] = 0.5
    assert draw(law_of(q), np.uint64(2**63)) == (1, 0.5)
    assert draw(law_of(q), np.uint64(2**63 - 2**11)) == (0, 0.5)


def test_uniform_equals_the_generator():
    words = np.random.PCG64(5).random_raw(100)
    expected = np.random.Generator(np.random.PCG64(5)).random(100)
    assert [uniform(w) for w in words] == expected.tolist()
