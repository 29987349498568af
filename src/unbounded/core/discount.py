"""Weights that halve every ``half_life`` rounds."""

from __future__ import annotations

from decimal import Decimal


def discount_of(half_life: int) -> float:
    """Return 2^(-1/half_life), correctly rounded, hence the same on every platform.

    Examples
    --------
    >>> discount_of(1)
    0.5
    >>> discount_of(1000)
    0.9993070929904525
    """
    return float(Decimal(2) ** (Decimal(-1) / half_life))
