"""Losses of learners that are told a range [low, high]."""

from __future__ import annotations

from unbounded._jit import kernel


@kernel
def to_unit(loss: float, low: float, high: float) -> tuple[float, bool]:
    """Map ``loss`` from [low, high] to [0, 1], clipping what lies outside; say if it did."""
    if loss <= low:
        return 0.0, loss < low
    if loss >= high:
        return 1.0, loss > high
    return (0.5 * loss - 0.5 * low) / (0.5 * high - 0.5 * low), False  # high - low may overflow
