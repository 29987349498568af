"""What a report over a million rows costs: seconds, and megabytes of page.

python benchmarks/report.py             # three shapes of a million rows
python benchmarks/report.py --figures   # with the figures for print
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unbounded.experiments import config, grid
from unbounded.experiments.grid import SCHEMA, frame_of
from unbounded.experiments.store import Store
from unbounded.experiments.task import Outcome, Span
from unbounded.report import report

LEARNERS = [
    {"name": "SCB", "profile": "paper", "clip": ["scale", "range"], "rate": [1.0, 2.0]},
    {"name": "SCBIX", "profile": "paper", "clip": ["scale", "range"]},
    *({"name": name} for name in ("AHB", "EpsilonGreedy", "TsallisINF", "Exp3", "Exp3IX", "UMABG")),
]  # 12 of them
GAP = {"name": "StochasticGap", "scale": [1e-6, 1.0, 1e6]}
SHAPES: dict[str, dict[str, Any]] = {
    "many replicates": {
        "adversaries": [GAP], "arms": [10], "rounds": [10**5], "checkpoints": 14,
        "replicates": 2000,
    },
    "many sizes": {
        "adversaries": [GAP, {"name": "Switch"}, {"name": "Growth"}],
        "arms": [4, 16, 64, 256], "rounds": [10**3, 10**4, 10**5], "checkpoints": 20,
        "replicates": 70,
    },
    "many cells": {
        "adversaries": [{"name": "StochasticGap", "gap": [i / 100 for i in range(1, 51)]}],
        "arms": [2, 4, 8, 16, 32, 64, 128], "rounds": [10**3, 10**4, 10**5, 10**6],
        "checkpoints": 30, "replicates": 2,
    },
}  # fmt: skip


def synthesise(directory: Path, shape: dict[str, Any]) -> int:
    """Rows of the right form in a store, with regret that grows like sqrt(n t)."""
    e = config.experiment({"learners": LEARNERS, "name": "synthetic", **shape})
    cells = grid.cells(e)
    store = Store(directory)
    store.keep_experiment(config.dumps(e))
    rng = np.random.default_rng(0)
    rows = 0
    names = [name for name, kind in SCHEMA.items() if kind == pl.Float64 and name != "seconds"]
    frames = []
    with store.locked():
        for i, cell in enumerate(cells):
            points = np.unique(
                np.geomspace(cell.settings.rounds, 1, e.checkpoints).round().astype(np.int64)
            )
            size = (e.replicates, points.size)
            columns = {name: np.zeros(size) for name in names}
            columns["high"] = np.ones(size)
            columns["threshold"] = rng.random(size)
            columns["clipped"] = np.zeros(size, dtype=np.int64)
            regret = rng.gamma(9.0, 0.1, size) * np.sqrt(cell.settings.arms * points)
            columns["regret"] = columns["relative_regret"] = regret
            outcome = Outcome(Span(i, 0, e.replicates), cell.code, 0.1, points, columns)
            frames.append(frame_of([outcome], cells))
            rows += regret.size
            if len(frames) == 256 or i == len(cells) - 1:
                store.write(pl.concat(frames))
                frames = []
    return rows


def main(figures: bool) -> None:
    """Print a line for each shape."""
    with tempfile.TemporaryDirectory() as empty:  # imports and compilation of nothing
        synthesise(Path(empty), SHAPES["many replicates"] | {"replicates": 2})
        report(empty, figures=figures)
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as directory:
            rows = synthesise(Path(directory), shape)
            started, cpu = time.perf_counter(), time.process_time()
            page = report(directory, figures=figures).page
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            size = page.stat().st_size / 1e6
            print(
                f"{name}: {rows} rows in {seconds:.1f} s (CPU {cpu:.1f} s; limit 20 s), "
                f"{size:.2f} MB (limit 15 MB)"
            )


if __name__ == "__main__":
    main("--figures" in sys.argv[1:])
