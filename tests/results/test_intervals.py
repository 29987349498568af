"""Intervals, against SciPy and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("polars")

from scipy import stats

from unbounded.results import intervals


@pytest.mark.parametrize("count", [40, 150, 10_000])
def test_intervals_of_quantiles(count):
    values = np.arange(count, dtype=float)  # so that an order statistic is its own place
    deltas = intervals.tail_levels(count)
    assert deltas[-1] == pytest.approx(min(10 / count, 0.5))
    for delta, low, high in zip(deltas, *intervals.tail_quantiles(values, deltas)[1:], strict=True):
        below = stats.binom(count, 1.0 - delta)  # how many values are below the true quantile
        certain = high == count - 1  # nothing larger was seen: no upper end can be given
        chance = (1.0 if certain else below.cdf(high)) - below.cdf(low)
        assert 0.94 < chance < (1.0 if certain or delta * count < 30 else 0.98)


def test_the_interval_of_a_median_is_that_of_the_tables():
    """The 40th and the 61st of 100 values."""
    values = np.random.default_rng(0).permutation(100) + 1.0
    middle, low, high = intervals.tail_quantiles(values, np.array([0.5]))
    assert (middle.item(), low.item(), high.item()) == (50.5, 40.0, 61.0)


def test_student_and_resampling():
    for freedom in (1, 2, 3, 4, 9, 10, 49, 500, 1999):
        assert intervals.student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    rng = np.random.default_rng(0)
    x = np.array([1.0, 10.0, 100.0])
    exact = np.outer(np.ones(5), 3.0 * x**0.5)
    assert intervals.slope_interval(x, exact) == pytest.approx((0.5, 0.5, 0.5))
    assert math.isnan(intervals.slope_interval(x, exact - 4.0)[0])
    inside = 0
    for _ in range(200):  # the interval of the bootstrap holds the truth about as often as it says
        low, high = intervals.slope_interval(x, exact[:1] * rng.gamma(4.0, 0.25, (40, 3)))[1:]
        inside += low <= 0.5 <= high
    assert 170 <= inside <= 199


@pytest.mark.parametrize("count", [2, 3, 40])
def test_the_interval_of_a_mean(count):
    values = np.random.default_rng(1).gamma(2.0, 1.0, count)
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    expected = (values.mean(), low, high)
    assert intervals.mean_interval(values) == pytest.approx(expected, rel=1e-9)
    assert intervals.mean_interval(values[:1]) == (values[0],) * 3


def test_the_interval_of_a_slope_is_that_of_its_resamples():
    rng = np.random.default_rng(2)
    x = np.array([10.0, 100.0, 1000.0])
    values = rng.gamma(9.0, 1.0, (12, 3)) * x**0.7
    chosen = np.random.default_rng(intervals.SEED).integers(0, 12, (intervals.RESAMPLES, 12))
    slopes = [np.polyfit(np.log(x), np.log(values[one].mean(axis=0)), 1)[0] for one in chosen]
    expected = [
        np.polyfit(np.log(x), np.log(values.mean(axis=0)), 1)[0],
        *np.quantile(slopes, [0.025, 0.975]),
    ]
    assert intervals.slope_interval(x, values) == pytest.approx(expected)
