"""Results as tables on a terminal: learners down, adversaries across, one table for each size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unbounded.experiments.experiment import Experiment
from unbounded.experiments.grid import Cell, Plan
from unbounded.experiments.store import SHOWN
from unbounded.io import printable
from unbounded.report.labels import learner_names, short_names, thousands


class Pivot(NamedTuple):
    """One table."""

    title: str
    adversaries: list[str]  # the heads of the columns
    rows: dict[str, list[str]]  # for each learner, what its cells say


class Mean(NamedTuple):
    """Of the replicates of a cell, at the last round: the regret, as it is and relative."""

    replicates: int
    regret: float
    relative: float
    error: float | None  # of the relative one; None for a single replicate


def means(frame: pl.DataFrame, e: Experiment) -> dict[str, Mean]:
    """By the key of the cell."""
    last = frame.filter(pl.col("round") == pl.col("round").max().over("cell"))
    regret, relative = pl.col(SHOWN[e.kind].column), pl.col(f"relative_{SHOWN[e.kind].column}")
    error = relative.std() / pl.len().sqrt()
    summary = last.group_by("cell").agg(
        pl.len(), regret.mean(), relative.mean().alias("mean"), error.alias("error")
    )
    return {str(key): Mean(*row) for key, *row in summary.iter_rows()}


def pivots(plan: Plan, found: dict[str, Mean]) -> list[Pivot]:
    """Return a table for each number of arms or world, and number of rounds."""
    e, cells = plan.experiment, plan.cells
    learners = learner_names(
        [(c.settings.learner, c.learner_settings) for c in cells], plan.known("learners")
    )
    adversaries = short_names(
        [(c.settings.adversary, c.adversary_settings) for c in cells], plan.known("adversaries")
    )
    _, name, unit = SHOWN[e.kind]
    tables: dict[str, Pivot] = {}
    for cell, size in zip(cells, _sizes(plan), strict=True):
        s = cell.settings
        title = f"{name} / {unit} after {thousands(s.rounds)} {_LENGTH[e.kind]}, {size}"
        table = tables.setdefault(title, Pivot(title, list(adversaries.values()), {}))
        learner = learners[s.learner, cell.learner_settings]
        row = table.rows.setdefault(learner, [""] * len(table.adversaries))
        column = list(adversaries).index((s.adversary, cell.adversary_settings))
        row[column] = _text(found.get(cell.key), e.replicates)
    return list(tables.values())


_LENGTH = {"bandits": "rounds", "MDPs": "episodes"}


def _sizes(plan: Plan) -> list[str]:
    if plan.experiment.kind == "bandits":
        return [f"{c.settings.arms} arms" for c in plan.cells]
    variants = [(str(c.settings.world), str(c.world_settings)) for c in plan.cells]
    # Sizes of worlds do not follow from their names.
    names = short_names(variants, plan.known("worlds"))
    return [names[variant] for variant in variants]


def _text(mean: Mean | None, replicates: int) -> str:
    if mean is None:
        return "–"
    error = "" if mean.error is None else f" ± {mean.error:.2g}"
    count = "" if mean.replicates == replicates else f" ({mean.replicates}/{replicates})"
    return f"{mean.relative:.4g}{error}{count}"


def cell_table(e: Experiment, cells: Sequence[Cell], found: dict[str, Mean]) -> Table:
    """Return one line for each cell."""
    _, name, unit = SHOWN[e.kind]
    table = Table("cell", "replicates", name, f"{name} / {unit}", "± s.e.", box=None)
    for cell in cells:
        count, *numbers = found.get(cell.key, (0,))
        texts = ["" if number is None else f"{number:.4g}" for number in numbers]
        table.add_row(Text(printable(cell.label)), f"{count}/{e.replicates}", *texts)
    return table


def print_pivots(console: Console, tables: Sequence[Pivot]) -> None:
    """Tables that fit: one that is too wide is continued below."""
    for k, table in enumerate(tables):
        if k:
            console.print()
        console.print(printable(f"{table.title}: mean ± s.e."), markup=False, style="bold")
        left = list(range(len(table.adversaries)))
        while left:
            taken = len(left)
            while (
                taken > 1
                and _drawn(table, left[:taken])
                .__rich_measure__(console, console.options.update(max_width=10**6))
                .maximum
                > console.width
            ):
                taken -= 1
            console.print(_drawn(table, left[:taken]))
            left = left[taken:]


def _drawn(table: Pivot, columns: Sequence[int]) -> Table:
    drawn = Table(box=None, pad_edge=False)
    drawn.add_column("learner")
    for j in columns:
        drawn.add_column(Text(printable(table.adversaries[j])), justify="right")
    for learner, texts in table.rows.items():
        drawn.add_row(Text(printable(learner)), *(texts[j] for j in columns))
    return drawn
