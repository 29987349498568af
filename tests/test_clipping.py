"""Clipping windows against exact rational arithmetic, and the errata that concern them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded import SCB
from unbounded.core.clipping import EMPTY, LARGEST, LAZY, clip_to_range, clip_to_scale

finite = st.floats(allow_nan=False, allow_infinity=False)
losses_of_many_sizes = st.lists(
    st.one_of(finite, st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 1.0])),
    min_size=1,
    max_size=30,
)


def value(mantissa: float, e: int) -> Fraction:
    return Fraction(mantissa) * Fraction(2) ** e


@settings(deadline=None)
@given(losses_of_many_sizes, st.sampled_from([LAZY, LARGEST]))
def test_scale_window(losses, rule):
    window, C = EMPTY, Fraction(0)
    for loss in losses:
        exact = Fraction(loss)
        l_plus, clipped, after = clip_to_scale(window, rule, loss)
        assert clipped == (abs(exact) > C)
        expected = max(-C, min(C, exact)) + C
        # Exact but for the rounding of a sum in units of 2^e.
        assert abs(value(l_plus, window.e) - expected) <= 2 * C * Fraction(2) ** -52
        assert 0.0 <= l_plus <= window.W
        if abs(exact) > C or (rule == LARGEST and 2 * abs(exact) > C):
            C = 2 * abs(exact)
        window = after
        assert value(window.W, window.e) == 2 * C
        assert window.W == 0.0 or 0.5 <= window.W < 1.0


@settings(deadline=None)
@given(losses_of_many_sizes)
def test_range_window(losses):
    window, seen = EMPTY, []
    for loss in losses:
        l_plus, clipped, after = clip_to_range(window, loss)
        if seen:
            low, high = Fraction(min(seen)), Fraction(max(seen))
            width = high - low
            expected = max(low, min(high, Fraction(loss))) - low
            assert abs(value(l_plus, window.e) - expected) <= width * Fraction(2) ** -51
            assert clipped == (not min(seen) <= loss <= max(seen))
            assert 0.0 <= l_plus <= window.W
        else:
            assert (l_plus, clipped) == (0.0, False)
        seen.append(loss)
        window = after
        exact = Fraction(max(seen)) - Fraction(min(seen))
        assert abs(value(window.W, window.e) - exact) <= exact * Fraction(2) ** -52
        assert (window.W > 0.0) == (exact > 0)


def test_e1_lazy_and_largest_thresholds_differ():
    """Erratum E1: after 1 and 1.5 the pseudo-code has C = 2, the text has C = 3."""
    lazy, largest = SCB(1), SCB(1, threshold="largest")
    for learner in (lazy, largest):
        for loss in (1.0, 1.5):
            learner.tell(learner.ask(), loss)
    assert (lazy.scale, largest.scale) == (2.0, 3.0)


def test_e1_counterexample_to_the_bands():
    """Erratum E1: a constant 0.6 after 0.35 never moves C = 0.7, though 0.6 is in (1/2, 1]."""
    learner = SCB(1)
    for loss in [0.35] + [0.6] * 50:
        learner.tell(learner.ask(), loss)
    assert learner.scale == 0.7
    assert learner.clipped == 1


def test_e4_the_first_loss_other_than_zero_only_sets_the_threshold():
    learner = SCB(3, seed=0)
    for _ in range(5):
        learner.tell(learner.ask(), 0.0)
        assert learner.probabilities().tolist() == [1 / 3] * 3
        assert learner.scale == 0.0
    learner.tell(learner.ask(), -7.0)
    assert learner.scale == 14.0
    np.testing.assert_allclose(learner.probabilities(), 1 / 3)


def test_the_threshold_is_never_above_twice_the_largest_loss():
    rng = np.random.default_rng(0)
    for clip, factor in (("scale", 2.0), ("range", 2.0)):
        learner, largest = SCB(4, clip=clip, seed=1), 0.0
        for loss in rng.standard_cauchy(500):
            largest = max(largest, abs(loss))
            learner.tell(learner.ask(), loss)
            assert learner.scale <= factor * largest


@pytest.mark.parametrize("clip", ["scale", "range"])
def test_extreme_jump_of_the_scale(clip):
    """From 5e-324 to 1.8e308 and back: what was learned before the jump weighs nothing."""
    learner = SCB(2, clip=clip, seed=0)
    for _ in range(20):
        learner.tell(learner.ask(), 5e-324)
    for sign in (1.0, -1.0):
        learner.tell(learner.ask(), sign * 1.7976931348623157e308)
    q = learner.probabilities()
    assert np.isfinite(q).all()
    learner.tell(learner.ask(), -5e-324)
    assert np.isfinite(learner.probabilities()).all()
    assert learner.scale == math.inf or learner.scale > 1e308
