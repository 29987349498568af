"""Rows of results: their columns, and how they are made of what comes back from a worker.

The key of a cell contains a hash of this file (`unbounded.experiments.task.code_version`).
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from unbounded._version import __version__
from unbounded.experiments.grid import Cell
from unbounded.experiments.task import Outcome

_TEXT = pl.Categorical
SCHEMA: dict[str, Any] = {
    "cell": _TEXT,
    "learner": _TEXT,
    "learner_settings": _TEXT,
    "adversary": _TEXT,
    "adversary_settings": _TEXT,
    "arms": pl.Int64,
    "world": _TEXT,
    "world_settings": _TEXT,
    "states": pl.Int64,
    "actions": pl.Int64,
    "horizon": pl.Int64,
    "rounds": pl.Int64,
    "seed": pl.Int64,
    "replicate": pl.Int64,
    "round": pl.Int64,
    "regret": pl.Float64,
    "pseudo_regret": pl.Float64,
    "relative_regret": pl.Float64,
    "relative_pseudo_regret": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "clipped": pl.Int64,
    "threshold": pl.Float64,
    "explored": pl.Int64,
    "reach": pl.Float64,
    "code": _TEXT,
    "versions": _TEXT,
    "seconds": pl.Float64,
    "finished": pl.Datetime("ms", "UTC"),
}
"""The columns of results. ``seconds`` is the computing time of the replicate."""

TIMING = ("seconds", "finished")
"""The columns that differ between equal runs."""


@cache
def versions() -> str:
    """Of the package and of what its numbers depend on."""
    below = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"unbounded {__version__}, {below}, Numba {version('numba')}"


def frame_of(outcomes: Iterable[Outcome], plan: Sequence[Cell]) -> pl.DataFrame:
    """Rows, one for each replicate and checkpoint, of outcomes that did not fail."""
    frames = [_rows(outcome, plan[outcome.span.cell]) for outcome in outcomes]
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)


def _rows(outcome: Outcome, cell: Cell) -> pl.DataFrame:
    first, count = outcome.span.first, outcome.span.replicates
    height = count * outcome.rounds.size
    constant: dict[str, Any] = {
        "cell": cell.key,
        **cell.columns,
        "code": outcome.code,
        "versions": versions(),
        "seconds": outcome.seconds / count,
        "finished": datetime.now(UTC),
    }
    changing = {
        "replicate": np.repeat(np.arange(first, first + count), outcome.rounds.size),
        "round": np.tile(outcome.rounds, count),
        **{name: values.ravel() for name, values in outcome.columns.items()},
    }

    def series(name: str) -> pl.Series:
        if name in changing:  # before its exploration is over a learner has no reach: null
            values = changing[name]
            return pl.Series(name, values, dtype=SCHEMA[name], nan_to_null=name == "reach")
        # What was not followed, or what a learner does not have, is null too.
        one = pl.Series(name, [constant.get(name)], dtype=SCHEMA[name])
        return one.new_from_index(0, height)

    return pl.DataFrame([series(name) for name in SCHEMA])
