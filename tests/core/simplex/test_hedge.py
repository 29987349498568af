"""Exponential weights and the mixability gap, beside mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.core.simplex.hedge import hedge, mixability_gap
from unbounded.core.simplex.sampling import new_law

finite = st.floats(-1e3, 1e3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(finite, finite), min_size=2, max_size=6),
    st.floats(-4, 2).map(lambda x: 10.0**x),
)
def test_mixability_gap_agrees_with_forty_digits(pairs, eta):
    L, losses = (np.array(values) for values in zip(*pairs, strict=True))
    w = new_law(L.size)
    hedge(L, eta, w)
    gap = mixability_gap(L, eta, w.q, losses)
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
    w = new_law(3)
    hedge(L, math.inf, w)
    assert w.q.tolist() == [0.5, 0.5, 0.0]
    # <w, l> = 3, and the best arm goes from 1 to 2
    assert mixability_gap(L, math.inf, w.q, losses) == 2.0


@pytest.mark.parametrize("n", [3, 50])
def test_hedge_is_a_softmax(n):
    L = 5.0 * np.random.default_rng(n).normal(size=n)
    w = new_law(n)
    hedge(L, 0.6, w)
    weights = np.exp(-0.6 * (L - L.min()))
    np.testing.assert_allclose(w.q, weights / weights.sum(), rtol=1e-13)


def test_a_weight_that_underflowed_still_counts_in_the_gap():
    """The arm that is far behind is the only good one in this round."""
    L, losses, eta = np.array([0.0, 2000.0]), np.array([5000.0, 0.0]), 1.0
    w = new_law(2)
    hedge(L, eta, w)
    assert w.q[1] == 0.0
    # the leader's mix loss is -ln(e^-5000 + e^-2000) = 2000, and hedge pays 5000
    assert mixability_gap(L, eta, w.q, losses) == pytest.approx(3000.0)
