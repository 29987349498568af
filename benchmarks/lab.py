"""What the laboratory costs: planning, storing, and running a grid of a minute.

python benchmarks/lab.py             # figures of docs/results/benchmarks.md, about three minutes
python benchmarks/lab.py plan store  # some of them
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from unbounded.experiments import config, grid, task
from unbounded.experiments.engine import open_engine
from unbounded.experiments.grid import SCHEMA, frame_of
from unbounded.experiments.runner import run_cells
from unbounded.experiments.shards import missing
from unbounded.experiments.store import Store, in_order
from unbounded.experiments.task import Outcome, Settings, Span


def plan() -> None:
    """A grid of 10,000 cells, from TOML to the list of what is missing."""
    text = f"""
        arms = [5, 10]
        rounds = 1000
        [[learners]]
        name = "SCB"
        clip = ["scale", "range"]
        rate = {[1.0 + i / 50 for i in range(50)]}
        [[adversaries]]
        name = "StochasticGap"
        gap = {[0.01 * i for i in range(1, 6)]}
        scale = {[10.0**i for i in range(10)]}
    """
    started = time.perf_counter()
    e = config.loads(text)
    cells = grid.cells(e)
    spans = missing(pl.DataFrame(schema=SCHEMA), cells, e.replicates)
    seconds = time.perf_counter() - started
    print(f"plan: {len(cells)} cells, {len(spans)} spans in {seconds:.2f} s (limit 2 s)")


def store() -> None:
    """A million rows: in a file for each cell, and in many small ones, merged afterwards."""
    for replicates_a_file in (1000, 50):
        _store(replicates_a_file)


def _store(size: int) -> None:
    e = config.experiment(
        {
            "learners": [{"name": "SCB", "clip": ["scale", "range"]}, {"name": "TsallisINF"}],
            "adversaries": [{"name": "StochasticGap", "scale": [1.0, 1e3, 1e6, 1e9]}],
            "arms": [5, 10, 20, 50],
            "rounds": 10**6,
            "replicates": 1000,
            "checkpoints": 21,
        }
    )
    cells = grid.cells(e)
    points = np.unique(np.geomspace(10**6, 1, 21).round().astype(np.int64))
    rng = np.random.default_rng(0)
    names = [name for name, kind in SCHEMA.items() if kind == pl.Float64 and name != "seconds"]
    with tempfile.TemporaryDirectory() as directory:
        kept = Store(directory)
        with kept.locked():
            spans = [Span(i, r, size) for i in range(len(cells)) for r in range(0, 1000, size)]
            columns = {name: rng.random((size, points.size)) for name in names}
            columns["clipped"] = np.arange(size * points.size).reshape(size, points.size)
            started = time.perf_counter()
            for span in spans:
                outcome = Outcome(span, cells[span.cell].code, 0.5, points, columns)
                kept.write(frame_of([outcome], cells))
            wrote = time.perf_counter()
            frame = in_order(kept.read(), cells, 1000)
            read = time.perf_counter()
            kept.merge(most=1)
            merged = time.perf_counter()
            again = in_order(kept.read(), cells, 1000)
            end = time.perf_counter()
            assert again.equals(frame)
            size = sum(path.stat().st_size for path in Path(directory).rglob("*.parquet"))
    print(
        f"store: {frame.height} rows in {len(spans)} files: written in {wrote - started:.2f} s, "
        f"read in order in {read - wrote:.2f} s (limit 5 s together); merged in "
        f"{merged - read:.2f} s, then read in {end - merged:.2f} s, {size / 1e6:.0f} MB"
    )


def run_by_cpu(work: Sequence[tuple[Span, Settings]]) -> list[Outcome]:
    """As `task.run`, with CPU seconds, which other load on the machine does not change."""
    outcomes = []
    for span, settings in work:
        task.load(settings)
        before = time.process_time()
        outcome = run_by_the_clock([(span, settings)])[0]
        outcomes.append(outcome._replace(seconds=time.process_time() - before))
    return outcomes


run_by_the_clock = task.run


def overhead(workers: int = 2, minutes: float = 1.0) -> None:
    """Everything but the computing itself, for a grid of a minute: start, tasks, files, end."""
    document = {
        "learners": [{"name": "SCB", "clip": ["scale", "range"]}, {"name": "AHB"}],
        "adversaries": [{"name": "StochasticGap"}, {"name": "SpikeLeastLikely"}],
        "arms": [5, 50],
        "rounds": [10_000, 100_000],
    }
    cells = grid.cells(config.experiment(document))
    sample = run_by_cpu([(Span(i, 0, 1), cell.settings) for i, cell in enumerate(cells)])
    replicates = round(60.0 * minutes * workers / sum(outcome.seconds for outcome in sample))
    task.run = run_by_cpu
    with tempfile.TemporaryDirectory() as directory:
        before = _cpu()
        started = time.perf_counter()
        result = run_cells(cells, replicates, store=Store(directory), workers=workers)
        wall = time.perf_counter() - started
        open_engine("local", workers).close(kill=True)  # so that their CPU time is known
        driver, children = (b - a for a, b in zip(before, _cpu(), strict=True))
    seconds = np.array(result.task_seconds)
    compute = seconds.sum()
    print(
        f"overhead: {compute:.1f} CPU seconds of computing; {children - compute:.2f} more in the "
        f"{workers} workers and {driver:.2f} in the driver: "
        f"{100 * ((driver + children) / compute - 1):.1f}% (limit 5%); {wall:.0f} s by the clock"
    )
    print(
        f"tasks: {seconds.size}, {np.median(seconds):.2f} CPU seconds the median, "
        f"{(seconds < 0.1).sum()} shorter than 0.1 s, {seconds.max():.2f} s the longest"
    )


def _cpu() -> tuple[float, float]:
    """CPU seconds of this process, and of its children that have ended."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["plan", "store", "overhead"]
    for name in wanted:
        {"plan": plan, "store": store, "overhead": overhead}[name]()
