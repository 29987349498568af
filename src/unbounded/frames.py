"""Columns of a table: of polars, pandas, Arrow, or a dict of arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbounded.validation import shown

LEAST = 2.0**-200  # a probability that is never drawn


def columns_of(frame: Any) -> list[str]:
    """Return the names of the columns of a frame, or a TypeError."""
    if isinstance(frame, Mapping):
        return list(frame)
    names = getattr(frame, "column_names", None)  # Arrow, whose columns are arrays
    names = getattr(frame, "columns", None) if names is None else names
    names = getattr(getattr(frame, "dtype", None), "names", None) if names is None else names
    if names is None:
        raise TypeError(
            "a table must be a frame of polars or pandas, or a dict of arrays such as "
            f'{{"arm": [0, 1], "probability": [0.5, 0.5], "loss": [3.0, 2.0]}}, got {shown(frame)}'
        )
    return [str(name) for name in names]


def check_has(frame: Any, *names: str) -> None:
    """Raise if a column is missing."""
    there = columns_of(frame)
    for name in names:
        if name not in there:
            raise ValueError(
                f"the table has no column {name!r}: it has {', '.join(map(repr, there))}; rename "
                f"the one that is meant, or give a dict {{{name!r}: ...}}"
            )


def labels(frame: Any, name: str) -> list[Any]:
    """Return a column of names or numbers, as Python objects."""
    found: list[Any] = np.asarray(frame[name]).tolist()
    return found


def lists(frame: Any, name: str) -> list[list[Any] | None]:
    """Return a column of lists; None where a value is missing."""
    values = frame[name]
    values = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return [list(one) if hasattr(one, "__iter__") else None for one in values]


def mappings(frame: Any, name: str) -> list[dict[str, Any] | None]:
    """Return a column of dicts, or of such as JSON; None where a value is missing."""
    values = frame[name]
    values = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    found = [json.loads(one) if isinstance(one, str) else one for one in values]
    return [dict(one) if isinstance(one, Mapping) else None for one in found]


def numbers(frame: Any, name: str) -> NDArray[np.float64]:
    """Return a column of numbers; NaN where a value is missing."""
    values = np.asarray(frame[name])
    if values.dtype == object:
        missing = [one is None or type(one).__name__ == "NAType" for one in values]
        values = np.where(missing, np.nan, values)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} must be of numbers, got {shown(frame[name])}") from None


def losses(frame: Any) -> NDArray[np.float64]:
    """Return the column of losses, or minus that of rewards."""
    if "loss" not in columns_of(frame) and "reward" in columns_of(frame):
        return 0.0 - numbers(frame, "reward")
    check_has(frame, "loss")
    return numbers(frame, "loss")


def propensities(frame: Any) -> NDArray[np.float64]:
    """Return the column of the probabilities with which arms were chosen."""
    check_has(frame, "probability")
    found = numbers(frame, "probability")
    if not np.all((found >= LEAST) & (found <= 1.0)):
        raise ValueError(
            f"column 'probability' must be of numbers in [{LEAST:g}, 1], with none missing"
        )
    return found
