"""The cells left to run, and shards: parts that need nothing of one another but a directory.

Which replicates a shard has follows from the experiment alone, not from what is stored: shards that
start at different times agree on it without talking to one another. `script` has Slurm run them.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unbounded.experiments.experiment import ConfigError
from unbounded.experiments.grid import Cell
from unbounded.experiments.task import Span

if TYPE_CHECKING:
    from unbounded.experiments.api import Job

SHARDS = "shards"
"""Where the results of shards are, in the directory of an experiment."""

_MOST = 10**6


@dataclass(frozen=True)
class Shard:
    """Part ``number`` of ``count``, from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def directory(self) -> str:
        """Of its results, in ``SHARDS``."""
        return f"{self.number}-of-{self.count}"


def shard_of(text: str) -> Shard:
    """Return the shard that "7/100" means."""
    form = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
    if not form:
        raise ConfigError(f"a shard is written as NUMBER/COUNT, such as 7/100; got {text[:60]!r}")
    number, count = int(form[1]), int(form[2])
    if not 1 <= count <= _MOST:
        raise ConfigError(f"an experiment can be cut into 1 .. {_MOST} shards, not {count}")
    if not 1 <= number <= count:
        raise ConfigError(f"there is no shard {number} of {count}: they are numbered 1 .. {count}")
    return Shard(number, count)


def share_of(shard: Shard | None, plan: Sequence[Cell], replicates: int) -> list[Span]:
    """Return the replicates that a shard has of each cell; without a shard, all of them.

    Of R replicates of the cell at position p, shard j = 0 .. N - 1 has
    floor(R (j + p + 1) / N) - floor(R (j + p) / N), one after the other. That telescopes over j, so
    every replicate has one shard, and over p, so that two shards differ by at most one replicate
    in any stretch of cells. Cells that should take the same time stand together: every shard has
    its part of what is slow.
    """
    if shard is None:
        return [Span(i, 0, replicates) for i in range(len(plan))]
    order = sorted(range(len(plan)), key=lambda i: (_likeness(plan[i]), i))
    j, count = shard.number - 1, shard.count
    spans = []
    for position, i in enumerate(order):
        before = replicates * position // count
        first = replicates * (position + j) // count - before
        end = replicates * (position + j + 1) // count - before
        if first < end:
            spans.append(Span(i, first, end - first))
    return sorted(spans)


def _likeness(cell: Cell) -> tuple[str, ...]:
    """Equal for cells that should take the same time."""
    s = cell.settings
    return s.learner, cell.learner_settings, str(s.size), str(s.rounds)


def of_share(spans: Sequence[Span], share: Sequence[Span]) -> list[Span]:
    """Return what of some spans is in a share, which has at most one span of each cell."""
    owned = {span.cell: span for span in share}
    found = []
    for span in spans:
        own = owned.get(span.cell)
        if own is not None:
            first = max(span.first, own.first)
            end = min(span.first + span.replicates, own.first + own.replicates)
            if first < end:
                found.append(Span(span.cell, first, end - first))
    return found


def rows_of_share(frame: pl.DataFrame, plan: Sequence[Cell], share: Sequence[Span]) -> pl.DataFrame:
    """Return the rows of the replicates of a share, in their order."""
    key = pl.col("cell").cast(pl.String)
    owned = {plan[span.cell].key: span for span in share}
    first = {cell: span.first for cell, span in owned.items()}
    end = {cell: span.first + span.replicates for cell, span in owned.items()}
    from_, to = (key.replace_strict(one, default=-1, return_dtype=pl.Int64) for one in (first, end))
    return frame.filter(pl.col("replicate").is_between(from_, to, closed="left"))


def missing(frame: pl.DataFrame, plan: Sequence[Cell], replicates: int) -> list[Span]:
    """Return the replicates that the rows lack."""
    stored = frame.select("cell", "replicate").unique()
    counts = {
        str(key): replicates_of
        for key, replicates_of in stored.group_by("cell").agg(pl.col("replicate")).iter_rows()
    }
    spans = []
    for i, cell in enumerate(plan):
        if cell.key not in counts:
            spans.append(Span(i, 0, replicates))
            continue
        have = np.array(counts[cell.key], dtype=np.int64)
        have = np.sort(have[have < replicates])
        ends = np.concatenate(([-1], have, [replicates]))
        gaps = np.flatnonzero(np.diff(ends) > 1)
        spans += [Span(i, int(ends[g]) + 1, int(ends[g + 1] - ends[g]) - 1) for g in gaps]
    return spans


def of_other_code(frame: pl.DataFrame, plan: Sequence[Cell]) -> int:
    """Return how many cells have rows with their settings that were made by other code."""
    names = [*plan[0].columns, "code"]
    stored = set(frame.select(names).unique().iter_rows())
    codes: dict[tuple[Any, ...], set[str]] = {}
    for *settings, code in stored:
        codes.setdefault(tuple(settings), set()).add(code)
    return sum(
        bool(codes.get(tuple(cell.columns.values()), {cell.code}) - {cell.code}) for cell in plan
    )


_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{shards}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
# Options of sbatch come before these lines: unbounded slurm ... | sbatch --time=2:00:00
# Submitted again, the array runs only what is missing. When it is over:
#   {show}
set -eu
cd {directory}
exec {run} --shard "$SLURM_ARRAY_TASK_ID/{shards}"
"""


def script(jobs: Sequence[Job], path: Path, shards: int, *, quick: bool = False) -> str:
    """Write what ``sbatch`` is given: an array with a task for each shard, of one core each.

    The interpreter is the one that makes the script, in its working directory: the machines must
    see both under the same names. ``jobs`` were read from ``path``, with ``quick`` or without.
    """
    if shards < 1:
        raise ConfigError(f"--shards must be at least 1, got {shards}")
    most = max(len(job.cells) * job.experiment.replicates for job in jobs)
    if shards > most:
        raise ConfigError(
            f"--shards {shards} is more than the {most} replicates: give at most that"
        )
    out = jobs[0].store.directory
    out = out.parent if path.is_dir() else out
    # -P: the current directory is for what the experiment names, behind what is installed.
    run = [sys.executable, "-P", "-m", "unbounded", "run", str(path), "--out", str(out)]
    run += ["--quick"] if quick else []
    name = path.resolve().name if path.is_dir() else jobs[0].experiment.name
    return _SCRIPT.format(
        name="".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name),
        shards=shards,
        show=shlex.join(["unbounded", "report", str(out)]).replace("\n", "?"),
        directory=shlex.quote(str(Path.cwd())),
        run=shlex.join([*run, "--engine", "serial"]),
    )
