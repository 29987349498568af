"""Regret against the scale of the losses: a table, and a figure in out/scales.png and .svg.

The same latencies in other units: 10^-6 ... 10^6. Scale-free learners play the same in all of them.
Two learners assume losses in [0, 10], which is right in one of the units: smaller losses look like
0, and larger ones are clipped, so that all arms look alike. Nothing is tuned.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import StrMethodFormatter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unbounded import (
    AHB,
    SCB,
    SCBIX,
    AdaINF,
    CostSCB,
    EpsilonGreedy,
    Exp3,
    Learner,
    TsallisINF,
    Uniform,
    simulate,
)
from unbounded.adversaries import Latencies

N_ARMS, ROUNDS, REPLICATES = 10, 20_000, 16
SCALES = 10.0 ** np.arange(-6, 7, 2)
RANGE = (0.0, 10.0)  # at scale 1, less than 1% of the slowest arm's latencies are longer
LEARNERS: dict[str, tuple[Learner, str, str]] = {
    # name: (settings, color, line and marker); the colors are Okabe and Ito's but for one, safe
    # for color-blind eyes
    "CostSCB": (CostSCB(N_ARMS), "#0072B2", "-o"),
    "AdaINF": (AdaINF(N_ARMS), "#7B3294", "-s"),
    "SCB": (SCB(N_ARMS), "#56B4E9", "-^"),
    "SCB-IX": (SCBIX(N_ARMS), "#009E73", "-v"),
    "AHB": (AHB(N_ARMS), "#CC79A7", "-D"),
    "epsilon-greedy": (EpsilonGreedy(N_ARMS), "#999999", "-P"),
    "Tsallis-INF, range [0, 10]": (TsallisINF(N_ARMS, loss_range=RANGE), "#D55E00", "--X"),
    "Exp3, range [0, 10]": (Exp3(N_ARMS, loss_range=RANGE), "#E69F00", "--*"),
    "uniform": (Uniform(N_ARMS), "#000000", ":"),
}


def measure(console: Console) -> dict[str, np.ndarray]:
    """Mean regret / scale for every learner and scale."""
    regret = {name: np.empty(SCALES.size) for name in LEARNERS}
    columns = (
        TextColumn("{task.description:>24}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("compiling", total=len(LEARNERS) * SCALES.size)
        for name, (learner, _, _) in LEARNERS.items():
            progress.update(task, description=name)
            for i, scale in enumerate(SCALES):
                adversary = Latencies(fastest=3, scale=float(scale))
                result = simulate(learner, adversary, ROUNDS, REPLICATES, seed=1, checkpoints=1)
                regret[name][i] = result.pseudo_regret[:, -1].mean() / scale
                progress.advance(task)
    return regret


def show_table(console: Console, regret: dict[str, np.ndarray]) -> None:
    table = Table(title=f"regret / scale, {N_ARMS} arms, {ROUNDS:,} rounds, {REPLICATES} runs")
    table.add_column("scale of the losses")
    for scale in SCALES:
        table.add_column(f"{scale:.0e}", justify="right")
    for name, values in regret.items():
        table.add_row(name, *(f"{value:,.0f}" for value in values))
    console.print(table)


def draw(regret: dict[str, np.ndarray], directory: Path) -> list[Path]:
    figure, axes = plt.subplots(figsize=(8.0, 4.8), layout="constrained")
    for name in sorted(LEARNERS, key=lambda name: -regret[name][-1]):  # as the lines end
        _, color, line = LEARNERS[name]
        percent = 100.0 * regret[name] / regret["uniform"]
        axes.plot(SCALES, percent, line, color=color, markersize=5, label=name)
    axes.set_xscale("log")
    axes.set_ylim(0.0, 105.0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:.0f}%"))
    axes.set_xlabel("unit of the losses: the same latencies, multiplied by this")
    axes.set_ylabel("regret, in percent of random choice")
    axes.set_title("Scale-free learners play the same in every unit (lower is better)")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    paths = [directory / f"scales.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def main() -> None:
    console = Console(width=max(110, int(os.environ.get("COLUMNS", "110"))))
    regret = measure(console)
    show_table(console, regret)
    directory = Path("out")
    directory.mkdir(exist_ok=True)
    console.print("Figure:", *draw(regret, directory))


if __name__ == "__main__":
    main()
