"""The range of the losses in each layer, or its lower end, for learners that are given it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unbounded.core.arrays import Matrix, Vector
from unbounded.core.ceiling import checked_lower
from unbounded.core.occupancy.layout import Layers
from unbounded.validation import checked_real


def checked_ranges(loss_range: npt.ArrayLike, layers: Layers) -> Matrix:
    """``loss_range`` as an array (H, 2), or a clear error."""
    given = np.array(loss_range, dtype=object)
    ranges: Matrix = np.array([checked_real("loss_range", x) for x in given.flat]).reshape(
        given.shape
    )
    if ranges.shape == (2,):
        ranges = np.tile(ranges, (layers.horizon, 1))
    if ranges.shape != (layers.horizon, 2):
        raise ValueError(
            f"loss_range must be (low, high), or {layers.horizon} such pairs; "
            f"got shape {ranges.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # found below
        width = ranges[:, 1] - ranges[:, 0]
    if not (np.all(np.isfinite(width)) and np.all(width > 0)):
        raise ValueError(f"loss_range needs finite low < high, got {ranges.tolist()}")
    if layers.ends and np.any((ranges[1:, 0] > 0.0) | (ranges[1:, 1] < 0.0)):
        raise ValueError(
            "loss_range must have 0 in it, which is what the end of an episode costs, in every "
            f"layer but the first; got {ranges.tolist()}"
        )
    return ranges


def checked_least(
    lower: float | Sequence[float] | None,
    best_reward: float | Sequence[float] | None,
    layers: Layers,
) -> Vector:
    """Return the lower bound of each layer from ``lower`` or ``best_reward``, or raise."""
    if lower is not None and best_reward is not None:
        raise TypeError("pass either lower or best_reward, not both: lower is -best_reward")
    given = zip(
        _each("lower", lower, layers), _each("best_reward", best_reward, layers), strict=True
    )
    least = np.array([checked_lower(low, reward) for low, reward in given])
    if layers.ends and np.any(least[1:] > 0.0):
        raise ValueError(
            "the lower bound cannot be above 0, which is what the end of an episode costs; "
            f"got {least.tolist()}: give lower=0"
        )
    return least


def _each(name: str, value: Any, layers: Layers) -> Sequence[float | None]:
    """Return a number for every layer, or one for each; or none at all."""
    if np.ndim(value) > 0:
        if len(value) != layers.horizon:
            raise ValueError(
                f"{name} must be a number, or one for each of the {layers.horizon} layers; "
                f"got {len(value)}"
            )
        return value
    return [value] * layers.horizon


def as_given(value: float | Sequence[float] | None, checked: Vector) -> Any:
    """Return what was ``checked`` in the form of the argument: None, one number, or several."""
    if value is None:
        return None
    return float(checked[0]) if np.ndim(value) == 0 else checked.tolist()
