"""From directories of results to frames; nothing is run and nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from unbounded.experiments.experiment import Experiment
from unbounded.experiments.grid import Cell, Plan, made_otherwise
from unbounded.experiments.shards import missing
from unbounded.experiments.store import EXPERIMENT, Failure, Store, StoreError, in_order
from unbounded.io import read_regular


class Results(NamedTuple):
    """The stored results of one experiment."""

    directory: Path
    file: Path
    plan: Plan
    text: str
    frame: pl.DataFrame
    missing: list[tuple[str, int]]  # cells that lack replicates, and how many they lack
    failures: list[Failure]
    set_aside: list[tuple[Path, str]]
    other_code: int  # cells whose rows were made by other code than is installed here

    @property
    def experiment(self) -> Experiment:
        return self.plan.experiment


def directories(directory: str | os.PathLike[str]) -> list[Path]:
    """Return the directory itself if it holds an experiment, otherwise those inside that do."""
    top = Path(directory)
    if not top.is_dir():
        raise StoreError(f"{top} is not a directory: give one that `unbounded run` has written to")
    if (top / EXPERIMENT).is_file():
        return [top]
    found = sorted(path.parent for path in top.glob(f"*/{EXPERIMENT}"))
    if not found:
        raise StoreError(
            f"there is no {EXPERIMENT} in {top} nor in the directories in it: give a directory "
            "that `unbounded run` has written to, such as out/NAME"
        )
    return found


def read(directory: Path) -> Results:
    """Return all that is stored of the experiment in one directory."""
    store = Store(directory)
    plan = store.plan()
    e, everything = plan.experiment, store.read()
    cells, other_code = _with_stored_keys(everything, plan.cells)
    frame = in_order(everything, cells, e.replicates)
    counts: dict[int, int] = {}
    for span in missing(frame, cells, e.replicates):
        counts[span.cell] = counts.get(span.cell, 0) + span.replicates
    return Results(
        directory=directory,
        file=store.experiment,
        plan=plan,
        text=read_regular(store.experiment).decode("utf-8-sig"),
        frame=frame,
        missing=[(cells[i].label, count) for i, count in counts.items()],
        failures=store.failures(),
        set_aside=store.set_aside,
        other_code=other_code,
    )


def _with_stored_keys(frame: pl.DataFrame, plan: Sequence[Cell]) -> tuple[list[Cell], int]:
    """The plan, where a cell without rows takes the key of the newest rows of equal settings.

    A report shows what was measured, also after the code that measured it has changed.
    """
    stored = (
        frame.group_by("cell", *plan[0].columns)
        .agg(pl.col("finished").max())
        .sort("finished")
        .with_columns(pl.col(pl.Categorical).cast(pl.String))
    )
    keys = set(stored["cell"].to_list())
    newest = {tuple(row[1:-1]): row[0] for row in stored.iter_rows()}
    found = []
    for cell in plan:
        same = newest.get(tuple(cell.columns.values()), cell.key)
        found.append(cell if cell.key in keys else cell._replace(key=same))
    both = zip(plan, found, strict=True)
    others = sum(planned.key != cell.key or made_otherwise(planned) for planned, cell in both)
    return found, others
