"""Intervals: Student's for means, the bootstrap's for slopes, order statistics for quantiles."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unbounded.results.intervals import mean_interval as mean_interval

Array = NDArray[np.float64]

RESAMPLES = 1000
SEED = 2024  # of the bootstrap: the same rows give the same page


@lru_cache(maxsize=2)
def _resampled(replicates: int) -> Array:
    """How often each replicate is drawn in each resample, over their number."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, replicates, (RESAMPLES, replicates))
    weights = np.empty((RESAMPLES, replicates))
    for row, chosen in zip(weights, drawn, strict=True):
        row[:] = np.bincount(chosen, minlength=replicates)
    return weights / replicates


def slope_interval(x: Array, values: Array) -> tuple[float, float, float]:
    """The slope of log mean(values) against log x, and its 95% bootstrap interval.

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
    """The delta whose quantiles can be told from this many replicates, from 1/2 down."""
    least = min(10.0 / replicates, 0.5)
    return np.geomspace(0.5, least, 16) if least < 0.5 else np.array([0.5])


def tail_quantiles(values: Array, deltas: Array) -> tuple[Array, Array, Array]:
    """The (1 - delta) quantiles, and order statistics about 95% sure to hold the true ones.

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
