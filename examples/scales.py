"""Regret against the scale of the losses: a table, and a figure in out/scales.png and .svg.

The same losses are multiplied by 10^-6 ... 10^6. A learner that knows no scale should not care.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unbounded import AHB, SCB, SCBIX, EpsilonGreedy, Exp3, Learner, TsallisINF, Uniform, simulate
from unbounded.adversaries import Replay

N_ARMS, ROUNDS, REPLICATES = 10, 20_000, 16
SCALES = 10.0 ** np.arange(-6, 7, 2)
LEARNERS: dict[str, tuple[Learner, str, str]] = {
    # name: (settings, colour, line); the colours are Okabe and Ito's, safe for colour-blind eyes
    "SCB": (SCB(N_ARMS), "#0072B2", "-"),
    "SCB, range clipping": (SCB(N_ARMS, clip="range"), "#56B4E9", "-"),
    "SCB-IX": (SCBIX(N_ARMS), "#004D40", "-"),
    "SCB-IX, range clipping": (SCBIX(N_ARMS, clip="range"), "#009E73", "-"),
    "AHB": (AHB(N_ARMS), "#CC79A7", "-"),
    "epsilon-greedy": (EpsilonGreedy(N_ARMS), "#999999", "-"),
    "Tsallis-INF, told [0, 1]": (TsallisINF(N_ARMS), "#D55E00", "--"),
    "Exp3, told [0, 1]": (Exp3(N_ARMS), "#E69F00", "--"),
    "uniform": (Uniform(N_ARMS), "#000000", ":"),
}


def measure(console: Console) -> dict[str, np.ndarray]:
    """Mean regret / scale for every learner and scale."""
    losses = np.random.default_rng(0).random((ROUNDS, N_ARMS))
    losses[:, 3] *= 0.5  # the best arm
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
                adversary = Replay(losses, scale=scale)
                result = simulate(learner, adversary, ROUNDS, REPLICATES, seed=1)
                regret[name][i] = result.relative_regret("scale", pseudo=True)[:, -1].mean()
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
    for name, (_, colour, line) in LEARNERS.items():
        axes.plot(SCALES, regret[name], line, color=colour, marker="o", markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("scale of the losses")
    axes.set_ylabel("mean regret / scale")
    axes.set_title("Scale-free learners do not care how large the losses are")
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
