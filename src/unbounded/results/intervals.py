"""The mean of replicates, and Student's interval for it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

_MOST = 2000  # degrees of freedom, beyond which Student's t hardly changes


@cache
def student(freedom: int) -> float:
    """The 97.5% quantile of Student's t.

    Examples
    --------
    >>> from unbounded.results.intervals import student
    >>> round(student(9), 4)
    2.2622
    """
    low, high = 0.0, 20.0
    while _inside(high, freedom) < 0.95:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _inside(middle, freedom) < 0.95:
            low = middle
        else:
            high = middle
    return high


def _inside(t: float, freedom: int) -> float:
    """P(|T| < t), by the finite series of Abramowitz & Stegun, 26.7.3 and 26.7.4."""
    theta = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(theta), math.cos(theta) ** 2
    odd = freedom % 2
    term = math.cos(theta) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= square * k / (k + 1)
    return 2.0 / math.pi * (theta + sine * total) if odd else sine * total


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean and its 95% interval; without width for a single value."""
    with np.errstate(over="ignore", invalid="ignore"):  # of values near the largest float
        mean = float(values.mean())
    if values.size < 2:
        return mean, mean, mean
    half = student(min(values.size - 1, _MOST)) * standard_error(values)
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
