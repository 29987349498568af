"""Losses replayed from a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unbounded._jit import kernel
from unbounded.adversaries.base import Adversary


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    n = out.size
    start = ((t - 1) % (params.size // n)) * n
    out[:] = params[start : start + n]


class Replay(Adversary):
    """Row t of a matrix of losses in round t, from the start again after the last row.

    Parameters
    ----------
    losses : array_like of shape (rounds, n_arms)
        Finite numbers.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill = _fill

    def __init__(self, losses: ArrayLike, *, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(scale=scale, shift=shift)
        matrix = np.array(losses, dtype=np.float64, order="C")
        if matrix.ndim != 2 or matrix.size == 0:
            raise ValueError(f"losses must have shape (rounds, n_arms), got {matrix.shape}")
        if not np.isfinite(matrix).all():
            t, k = np.argwhere(~np.isfinite(matrix))[0]
            raise ValueError(f"losses must be finite, got {matrix[t, k]} in row {t}, column {k}")
        self._losses = matrix

    def params(self, n: int, rounds: int) -> Any:
        if self._losses.shape[1] != n:
            raise ValueError(f"losses has {self._losses.shape[1]} columns for {n} arms")
        return self._losses.ravel()
