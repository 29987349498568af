"""Intervals: Student's for means, the bootstrap's for slopes, order statistics for quantiles."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@cache
def student(freedom: float, level: float = 0.95) -> float:
    """Compute the two-sided quantile of Student's t: P(|T| < t) = level."""
    low, high = 0.0, 20.0
    while _outside(high, freedom) > 1.0 - level:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _outside(middle, freedom) > 1.0 - level:
            low = middle
        else:
            high = middle
    return high


def _outside(t: float, freedom: float) -> float:
    """P(|T| > t): the regularized incomplete beta function I_x(freedom / 2, 1 / 2)."""
    a, b, square = 0.5 * freedom, 0.5, t * t
    x, y = freedom / (freedom + square), square / (freedom + square)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logs + a * math.log(x) + b * math.log(y)) if y > 0.0 else 0.0
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, y) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            c, d = 1.0 + step / c, 1.0 / (1.0 + step * d)
            total *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return total


def mean_interval(values: Array) -> tuple[float, float, float]:
    """Return the mean and its 95% interval; without width for a single value."""
    with np.errstate(over="ignore", invalid="ignore"):  # of values near the largest float
        mean = float(values.mean())
    if values.size < 2:
        return mean, mean, mean
    half = student(values.size - 1) * standard_error(values)
    return mean, mean - half, mean + half


def standard_error(values: Array) -> float:
    """Of the mean of two or more values."""
    size = float(np.abs(values).max())
    if not 0.0 < size < math.inf:  # an infinite value has no deviation
        return 0.0 if size == 0.0 else math.nan
    if (values == values[0]).all():  # the rounding of their mean is no deviation
        return 0.0
    unit = 2.0 ** -math.frexp(size)[1] if size > 1e150 else 1.0  # squares must not overflow
    return float((values * unit).std(ddof=1)) / unit / math.sqrt(values.size)


RESAMPLES = 1000
SEED = 2024  # of the bootstrap: the same rows give the same page


@lru_cache(maxsize=2)
def _resampled(replicates: int) -> Array:
    """Return how often each replicate is drawn in each resample, over their number."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, replicates, (RESAMPLES, replicates))
    weights = np.empty((RESAMPLES, replicates))
    for row, chosen in zip(weights, drawn, strict=True):
        row[:] = np.bincount(chosen, minlength=replicates)
    return weights / replicates


def slope_interval(x: Array, values: Array) -> tuple[float, float, float]:
    """Return the slope of log mean(values) against log x, and its 95% bootstrap interval.

    ``values`` has a row for each replicate and a column for each x. Replicates are resampled as
    wholes, because their points belong to the same run or share their losses. NaN where a mean is
    not positive, and for the interval where that of a resample is not.
    """
    logs = np.log(x)
    weights = logs - logs.mean()
    weights /= (weights**2).sum()

    def slopes(means: Array) -> Array:
        positive = (means > 0.0).all(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(means) @ weights
        return np.where(positive, found, np.nan)

    slope = float(slopes(values.mean(axis=0)))
    if values.shape[0] < 2:
        return slope, math.nan, math.nan
    low, high = np.quantile(slopes(_resampled(values.shape[0]) @ values), [0.025, 0.975])
    return slope, float(low), float(high)


def tail_levels(replicates: int) -> Array:
    """Return the delta whose quantiles can be told from this many replicates, from 1/2 down."""
    least = min(10.0 / replicates, 0.5)
    return np.geomspace(0.5, least, 16) if least < 0.5 else np.array([0.5])


def tail_quantiles(values: Array, deltas: Array) -> tuple[Array, Array, Array]:
    """Return the (1 - delta) quantiles, and order statistics about 95% sure to hold the true ones.

    The number of values below the true quantile is binomial; its standard deviations are counted
    with the normal distribution.
    """
    ordered = np.sort(values)
    count = ordered.size
    middle = (1.0 - deltas) * count
    spread = 1.96 * np.sqrt(count * deltas * (1.0 - deltas))
    low = np.clip(np.floor(middle - spread).astype(np.int64) - 1, 0, count - 1)
    high = np.clip(np.ceil(middle + spread).astype(np.int64), 0, count - 1)
    return np.quantile(ordered, 1.0 - deltas), ordered[low], ordered[high]
