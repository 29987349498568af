"""The mean of replicates, and Student's interval for it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def student(freedom: float, level: float = 0.95) -> float:
    """Compute the two-sided quantile of Student's t: P(|T| < t) = level.

    Examples
    --------
    >>> from unbounded.results.intervals import student
    >>> round(student(9), 4)
    2.2622
    """
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


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean and its 95% interval; without width for a single value."""
    with np.errstate(over="ignore", invalid="ignore"):  # of values near the largest float
        mean = float(values.mean())
    if values.size < 2:
        return mean, mean, mean
    half = student(values.size - 1) * standard_error(values)
    return mean, mean - half, mean + half


def standard_error(values: NDArray[np.float64]) -> float:
    """Of the mean of two or more values.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded.results.intervals import standard_error
    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    size = float(np.abs(values).max())
    if not 0.0 < size < math.inf:  # an infinite value has no deviation
        return 0.0 if size == 0.0 else math.nan
    if (values == values[0]).all():  # the rounding of their mean is no deviation
        return 0.0
    unit = 2.0 ** -math.frexp(size)[1] if size > 1e150 else 1.0  # squares must not overflow
    return float((values * unit).std(ddof=1)) / unit / math.sqrt(values.size)
