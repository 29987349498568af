"""Losses replayed from a matrix or from a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unbounded._jit import assign, kernel
from unbounded.core.arrays import Matrix
from unbounded.play.adversary import Adversary


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    n = out.size
    start = ((t - 1) % (params.size // n)) * n
    assign(out, params[start : start + n])


class Replay(Adversary):
    """Row t of a matrix of losses in round t, from the start again after the last row.

    Parameters
    ----------
    losses : array_like of shape (rounds, n_arms)
        Finite numbers.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Replay
    >>> result = simulate(SCB(n_arms=2), Replay([[1, 5], [0, 7]]), rounds=10, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.0, 7.0)
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

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> Self:
        """Read the losses from a file, with one row per round and one column per arm.

        Parameters
        ----------
        path : path
            A CSV file with a header, or a Parquet file (``.parquet``; needs ``polars`` or
            ``pyarrow``).
        columns : sequence of str, optional
            Which columns; all by default.
        scale, shift : float
            Every loss x becomes ``scale * x + shift``.
        """
        read = _read_parquet if Path(path).suffix == ".parquet" else _read_csv
        return cls(read(Path(path), columns), scale=scale, shift=shift)


def _read_csv(path: Path, columns: Sequence[str] | None) -> Matrix:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    places = _places(path, header, columns)
    losses = np.empty((len(rows), len(places)))
    for r, row in enumerate(rows):
        for j, place in enumerate(places):
            try:
                losses[r, j] = float(row[place])
            except (ValueError, IndexError):
                raise ValueError(
                    f"{path}: line {r + 2} has no number in column {header[place]!r}"
                ) from None
    return losses


def _read_parquet(path: Path, columns: Sequence[str] | None) -> Matrix:
    try:
        table = import_module("polars").read_parquet(path)
        names = table.columns
    except ModuleNotFoundError:
        try:
            table = import_module("pyarrow.parquet").read_table(path)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "reading Parquet needs polars or pyarrow: pip install polars"
            ) from None
        names = table.column_names
    wanted = [names[place] for place in _places(path, names, columns)]
    return np.column_stack([np.asarray(table[name].to_numpy(), np.float64) for name in wanted])


def _places(path: Path, names: Sequence[str], wanted: Sequence[str] | None) -> list[int]:
    if wanted is None:
        return list(range(len(names)))
    for name in wanted:
        if name not in names:
            raise ValueError(f"{path} has no column {name!r}; it has {', '.join(names)}")
    return [list(names).index(name) for name in wanted]
