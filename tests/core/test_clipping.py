"""Clipping windows against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbounded.core.clipping import (
    EMPTY,
    LARGEST,
    LAZY,
    NONE,
    RANGE,
    SCALE,
    Window,
    checked_clipping,
    clip,
    clip_each,
    clip_to_range,
    clip_to_scale,
    empty_windows,
    rescale,
    scale_of,
    to_unit,
    unclipped,
    unit_factor,
)

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


ORDINARY = st.just(0.0) | st.floats(1e-100, 1e100) | st.floats(-1e100, -1e-100)


@given(st.lists(ORDINARY, min_size=1, max_size=20), st.sampled_from([LAZY, LARGEST]))
@settings(deadline=None)
def test_without_clipping_the_loss_is_used_as_it_is(losses, rule):
    window, reference, C = EMPTY, EMPTY, Fraction(0)
    for loss in losses:
        e = window.e
        l_plus, clipped, window = unclipped(window, rule, loss)
        if C == 0:  # the first unit is that of the window that follows
            e = window.e
        exact = Fraction(loss) + C
        assert math.ldexp(l_plus, e) == pytest.approx(float(exact), rel=1e-12, abs=1e-12 * float(C))
        assert not clipped
        _, _, reference = clip_to_scale(reference, rule, loss)
        assert window == reference  # the threshold is learned as ever
        C = Fraction(math.ldexp(0.5 * window.W, window.e))


# ------------------------------------------------------------ what users of a window need


@pytest.mark.parametrize("rule", [LAZY, LARGEST])
def test_clip_goes_the_way_that_it_is_told(rule):
    window = EMPTY
    for loss in (0.3, -1.1, 0.7, 2.5):
        for way, expected in (
            (SCALE, clip_to_scale(window, rule, loss)),
            (RANGE, clip_to_range(window, loss)),
            (NONE, unclipped(window, rule, loss)),
        ):
            assert clip(window, way, rule, loss) == expected
        _, _, window = clip_to_scale(window, rule, loss)
        window = window._replace(low=-2.0, high=1.5)


def test_the_scale_is_c_or_the_range():
    window = Window(0.75, 5, -4.0, 20.0)
    assert scale_of(window, SCALE) == scale_of(window, NONE) == 12.0
    assert scale_of(window, RANGE) == 24.0
    assert scale_of(EMPTY, SCALE) == 0.0


def test_unit_factor():
    small, large = Window(0.5, -3, 0.0, 0.0), Window(0.5, 7, 0.0, 0.0)
    assert unit_factor(small, large) == 2.0**-10
    assert unit_factor(large, small) == 2.0**10
    assert unit_factor(small, small) == 1.0
    assert unit_factor(EMPTY, large) == 1.0  # nothing is in units of an empty window


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20))
@settings(deadline=None)
def test_what_is_rescaled_keeps_its_value(losses):
    """Kept in units of the window and multiplied by `unit_factor`, a number stays what it was."""
    window, kept, exact = EMPTY, 0.0, Fraction(0)
    for loss in losses:
        _, _, after = clip_to_scale(window, LAZY, loss)
        kept *= unit_factor(window, after)
        if after.W > 0.0:
            kept += 1.0
            exact += Fraction(2) ** after.e
            assert kept == pytest.approx(float(exact / Fraction(2) ** after.e), rel=1e-9)
        window = after


def test_rescale():
    values = np.array([3.0, -0.5, 0.0])
    rescale(values, 4, 1)
    assert values.tolist() == [24.0, -4.0, 0.0]


def test_each_layer_has_its_window():
    windows, alone = empty_windows(3), [EMPTY] * 3
    for losses in ([1.0, -2.0, 0.0], [5.0, -0.1, 0.0], [0.5, -9.0, 1e300]):
        count = clip_each(windows, SCALE, LAZY, np.array(losses))
        results = [clip_to_scale(w, LAZY, x) for w, x in zip(alone, losses, strict=True)]
        assert count == sum(clipped for _, clipped, _ in results)
        assert windows.l_plus.tolist() == [l_plus for l_plus, _, _ in results]
        assert windows.e_before.tolist() == [w.e for w in alone]
        alone = [after for _, _, after in results]
        columns = zip(windows.W, windows.e, windows.low, windows.high, strict=True)
        assert [tuple(column) for column in columns] == [tuple(w) for w in alone]


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (-3.0, (0.0, True)),
        (-2.0, (0.0, False)),
        (-1.0, (0.25, False)),
        (2.0, (1.0, False)),
        (2.5, (1.0, True)),
    ],
)
def test_a_known_range_is_mapped_to_the_unit_interval(loss, expected):
    assert to_unit(loss, -2.0, 2.0) == expected


def test_a_known_range_may_be_as_wide_as_floats_go():
    assert to_unit(0.0, -1.7e308, 1.7e308) == (0.5, False)
    assert to_unit(1.2e308, -1.6e308, 1.6e308)[0] == pytest.approx(0.875)


def test_how_to_clip_is_checked():
    assert checked_clipping("scale", "lazy", 1.0, False) == (SCALE, LAZY, 1.0)
    assert checked_clipping("range", "lazy", 0.5, False) == (RANGE, LAZY, 0.5)
    assert checked_clipping("none", "largest", 0.5, True) == (NONE, LARGEST, 0.5)
    with pytest.raises(ValueError, match="choose clip='scale' with it"):
        checked_clipping("range", "largest", 0.5, False)
    assert checked_clipping("none", "lazy", 0, True) == (NONE, LAZY, 0.0)
    with pytest.raises(ValueError, match="clip must be one of 'scale', 'range', 'none'"):
        checked_clipping("both", "lazy", 1.0, False)
    with pytest.raises(ValueError, match="threshold must be one of 'lazy', 'largest'"):
        checked_clipping("scale", "eager", 1.0, False)
    with pytest.raises(ValueError, match="clip='none' can fail"):
        checked_clipping("none", "lazy", 1.0, False)
    with pytest.raises(ValueError, match="choose mixing above 0, or ablation=True"):
        checked_clipping("range", "lazy", 0.0, False)
