"""Losses replayed from a matrix or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from unbounded.adversaries._recorded import from_file, in_memory
from unbounded.core.arrays import Vector
from unbounded.jit.kernel import assign, kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import Nested, checked_flag, naming


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    n = out.size
    start = ((t - 1) % (params.size // n)) * n
    assign(out, params[start : start + n])


class Replay(Adversary):
    """Row t of a matrix of losses in round t.

    Parameters
    ----------
    losses : array_like of shape (rounds, n_arms)
        Finite numbers. An array that is mapped from a file is not read as a whole.
    path : str
        Instead of ``losses``, a file with one row per round and one column per arm: ``.npy``
        (float64 in C order is mapped, and not read as a whole), ``.parquet`` (needs ``polars`` or
        ``pyarrow``), or ``.csv`` with a header.
    columns : sequence of str
        Which columns of a Parquet or CSV file; all by default.
    repeat : bool
        Whether to begin again after the last row. If not, more rounds than rows are an error.
        By default matrices are repeated, and files are not.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Replay
    >>> result = simulate(SCB(n_arms=2), Replay([[1, 5], [0, 7]]), rounds=10, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.0, 7.0)
    """

    fill = _fill

    def __init__(
        self,
        losses: Annotated[ArrayLike | None, Nested(2)] = None,
        *,
        path: str | None = None,
        columns: Sequence[str] | None = None,
        repeat: bool | None = None,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        if (losses is None) == (path is None):
            raise TypeError("Replay needs losses, or the path of a file")
        self._given = "losses" if path is None else "path"
        with naming(self._given):
            if losses is not None:
                self._recorded = in_memory(losses, (2,), "(rounds, n_arms)")
            elif path is not None:
                self.path = path
                self._recorded = from_file(path, columns, (".npy", ".parquet", ".csv"))
            if len(self._recorded.shape) != 2:
                raise ValueError(
                    f"losses must have shape (rounds, n_arms), got {self._recorded.shape}"
                )
            self._recorded.check_finite(lambda t, k: f"row {t}, column {k}")
        self._repeat = path is None if repeat is None else checked_flag("repeat", repeat)

    def begin(self, n: int, rounds: int, key: int) -> tuple[Vector, Vector]:
        with naming(self._given):
            if self._recorded.width != n:
                raise ValueError(f"losses has {self._recorded.width} columns for {n} arms")
            self._recorded.check_count(rounds, "rounds", self._repeat)
        return self._recorded.params((self.scale, self.shift)), np.array([key], np.float64)
