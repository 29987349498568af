"""The range of the losses in each layer, for learners that are told it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unbounded._arguments import checked_real
from unbounded.core.arrays import Matrix
from unbounded.core.occupancy.layout import Layers


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
    return ranges
