"""What the slow twins are made of. Roots are found by bisection down to the last bit."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

Player = Generator[np.ndarray, tuple, None]  # is sent (arm, losses), or (arm, losses, mask)


def bisect(increasing, low: float, high: float) -> float:
    """A root of an increasing function in [low, high]."""
    for _ in range(300):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if increasing(middle) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()


def tsallis(L: np.ndarray, eta: float) -> np.ndarray:
    """argmin <L, p> - 4 sum sqrt(p) / eta over the simplex."""
    theta = eta * (L - L.min())
    n = L.size
    x = bisect(lambda x: (4.0 / (theta - x) ** 2).sum() - 1.0, -2.0 * math.sqrt(n), -2.0)
    p = 4.0 / (theta - x) ** 2
    return p / p.sum()


def log_barrier(L: np.ndarray, eta: float) -> np.ndarray:
    """argmin <L, p> - sum ln(p) / eta over the simplex."""
    theta = eta * (L - L.min())
    x = bisect(lambda x: (1.0 / (theta - x)).sum() - 1.0, -float(L.size), -1.0)
    p = 1.0 / (theta - x)
    return p / p.sum()


def mixed(p: np.ndarray, share: float) -> np.ndarray:
    return (1.0 - share) * p + share / p.size


def restricted(p: np.ndarray, masks: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Which arms slept, by a mask of those that did not, if there is one; and p on the others."""
    asleep = ~masks[0] if masks else np.zeros(p.size, bool)
    awake = np.where(asleep, 0.0, p)
    return asleep, awake / awake.sum()


def unit(loss: float, loss_range=(0.0, 1.0)) -> float:
    low, high = loss_range
    return min(1.0, max(0.0, (loss - low) / (high - low)))
