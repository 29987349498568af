"""FTRL with a Tsallis entropy of any order."""

from __future__ import annotations

import numpy as np
import pytest

from slow.formulas import bisect, tsallis
from unbounded.core.simplex.ftrl import power_entropy
from unbounded.core.simplex.sampling import new_law


@pytest.mark.parametrize("n", [2, 5, 40, 300])
@pytest.mark.parametrize("a", [1.05, 1.5, 2.0])
def test_against_bisection(a, n):
    rng, b = np.random.default_rng(1), a / (a - 1.0)
    for scale in (1e-12, 1e-3, 1.0, 1e3, 1e12):
        L = rng.normal(size=n) * scale
        law = new_law(n)
        power_entropy(L, 1.0, a, law)
        x = L - L.min()
        c = bisect(lambda c, x=x: 1.0 - ((x + c) ** -b).sum(), 1.0, n ** (1.0 / b))
        np.testing.assert_allclose(law.q, (x + c) ** -b, rtol=1e-10 * b, atol=1e-300)
        assert law.q.sum() == pytest.approx(1.0, abs=1e-13)


def test_order_one_half_is_the_librarys_own():
    """-2 sum sqrt(p) with the rate eta is -4 sum sqrt(p) with 2 eta."""
    L, law = np.random.default_rng(2).exponential(3.0, 7), new_law(7)
    power_entropy(L, 0.4, 2.0, law)
    np.testing.assert_allclose(law.q, tsallis(L, 0.8), rtol=1e-12)
