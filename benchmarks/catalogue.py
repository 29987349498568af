"""Every learner against every adversary: regret / (range sqrt(n T)), as a page of the docs.

    python benchmarks/catalogue.py                # plays what is missing, then writes the page
    python benchmarks/catalogue.py --write-only   # writes the page from what has been played
    python benchmarks/catalogue.py --arms 10 --learners AHB SCB     # only some of the cells

Replicates are paired: with equal seeds every learner meets the same losses (adversaries that react
to the learner apart). Each finished cell is one line of docs/results/data/catalogue.csv, so that a
run that was stopped goes on where it was; delete lines to play them again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from catalogue_cells import ADVERSARIES, COSTS, LEARNERS, REPLICATES, ROUNDS, SEED, Told
from result_tables import write_tables

from unbounded import simulate

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
DATA = RESULTS / "data" / "catalogue.csv"
ARMS = (10, 100)
ROWS = COSTS | ADVERSARIES

Cell = tuple[int, str, str]


def load() -> dict[Cell, np.ndarray]:
    """What has been played: the relative regrets of each cell."""
    if not DATA.exists():
        return {}
    with DATA.open(newline="") as file:
        return {
            (int(row["n"]), row["adversary"], row["learner"]): np.array(
                row["regrets"].split(), dtype=float
            )
            for row in csv.DictReader(file)
        }


def append(cell: Cell, regrets: np.ndarray) -> None:
    """One finished cell, as one line."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    new = not DATA.exists()
    with DATA.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["n", "adversary", "learner", "regrets"])
        writer.writerow([*cell, " ".join(f"{x:.4g}" for x in regrets)])


def all_cells() -> list[Cell]:
    """Costs first. They are played against the arm of least mean, one loss at a time, which
    learners from the losses of all arms cannot do."""
    return [
        (n, name, who)
        for rows in (COSTS, ADVERSARIES)
        for n in ARMS
        for name in rows
        for who in LEARNERS
        if rows is ADVERSARIES or "all losses" not in who
    ]


def regrets_of(
    n: int, name: str, who: str, rounds: int, told: Told, workers: int | None
) -> np.ndarray:
    """Realized regrets of one cell, over range sqrt(nT); of costs, over sqrt(nT)."""
    row = ROWS[name]
    result = simulate(
        LEARNERS[who](n, rounds, told), row.adversary, rounds, REPLICATES, SEED,
        checkpoints=[rounds], pseudo_regret=False, workers=workers,
        comparators=None if row.best is None else [row.best],
    )  # fmt: skip
    root = math.sqrt(n * rounds)
    if row.best is not None:
        return result.regret[:, -1] / root
    if row.adversary.looks and row.range is not None:  # the learner has a part in the range
        return result.regret[:, -1] / ((row.range[1] - row.range[0]) * root)
    return result.relative_regret("range")[:, -1] / root


def play(cells: list[Cell], workers: int | None) -> None:
    """Play the cells that are missing, and keep each as soon as it is done."""
    known: dict[tuple[int, str], Told] = {}
    begin = time.monotonic()
    for done, (n, name, who) in enumerate(cells):
        told = known.setdefault((n, name), Told(ROWS[name], n))
        regrets = regrets_of(n, name, who, ROUNDS, told, workers)
        append((n, name, who), regrets)
        elapsed = time.monotonic() - begin
        left = elapsed / (done + 1) * (len(cells) - done - 1)
        print(
            f"{done + 1}/{len(cells)} n={n} {name} | {who}: "
            f"{regrets.mean():.3f}  ({elapsed:.0f} s, about {left:.0f} s left)",
            file=sys.stderr,
            flush=True,
        )


def interval(values: np.ndarray) -> float:
    """Half the width of the 95% confidence interval of the mean."""
    if np.ptp(values) == 0.0:
        return 0.0  # the mean is rounded, which would make it a little more
    return 1.96 * float(values.std(ddof=1)) / math.sqrt(values.size)


def three(x: float) -> str:
    """Three significant digits."""
    return f"{x:#.3g}".removesuffix(".")


def around_quantile(size: int) -> tuple[int, float]:
    """A rank r, and how surely the 95% quantile is between the r-th smallest and the largest.

    For independent values of any distribution; r is the largest with a probability of at least 0.9.
    """
    below = [math.comb(size, k) * 0.95**k * 0.05 ** (size - k) for k in range(size + 1)]
    rank = max(r for r in range(1, size) if sum(below[r:size]) >= 0.9)
    return rank, sum(below[rank:size])


def quantile(values: np.ndarray) -> str:
    rank, _ = around_quantile(values.size)
    low, high = np.sort(values)[[rank - 1, -1]]
    return f"{three(np.quantile(values, 0.95))} ({three(low)} to {three(high)})"


def tables(played: dict[Cell, np.ndarray], n: int) -> list[str]:
    names = [name for name in ADVERSARIES if any((n, name, who) in played for who in LEARNERS)]
    lines = []

    def table(title: str, entry: Callable[[np.ndarray], str]) -> None:
        lines.extend([f"### {title}, n = {n}", ""])
        lines.append("| learner | " + " | ".join(names) + " |")
        lines.append("|---" * (len(names) + 1) + "|")
        for who in LEARNERS:
            row = [played.get((n, name, who)) for name in names]
            entries = ["" if values is None else entry(values) for values in row]
            if any(entries):
                lines.append(f"| {who} | " + " | ".join(entries) + " |")
        lines.append("")

    table("Mean with its 95% interval", lambda v: f"{three(v.mean())} ± {interval(v):.2g}")
    table("95% quantile over replicates", quantile)
    return lines


FREE = [name for name in LEARNERS if "(" not in name and name != "Uniform"]


def winners(played: dict[Cell, np.ndarray], n: int) -> list[str]:
    """The learners with the smallest mean regret: without a given range, and of all bandits."""
    lines = [
        f"### Who wins, n = {n}", "",
        "| adversary | best without a given range | within noise of it | best bandit of all |",
        "|---|---|---|---|",
    ]  # fmt: skip
    bandits = [name for name in LEARNERS if "all losses" not in name]
    for name in ADVERSARIES:
        cells = {who: played[n, name, who] for who in bandits if (n, name, who) in played}
        free = {who: cells[who] for who in FREE if who in cells}
        if not free:
            continue
        best = min(free, key=lambda who: free[who].mean())
        ties = []
        for who, values in free.items():
            difference = values - free[best]  # paired
            if who != best and difference.mean() <= interval(difference):
                ties.append(who)
        of_all = min(cells, key=lambda who: cells[who].mean())
        lines.append(
            f"| {name} | {best} ({three(free[best].mean())}) | {', '.join(ties) or '-'} "
            f"| {of_all} ({three(cells[of_all].mean())}) |"
        )
    lines.append("")
    return lines


def worst(played: dict[Cell, np.ndarray], n: int) -> list[str]:
    """The largest mean of each learner over the adversaries."""
    lines = [
        f"### Worst adversary of each learner, n = {n}",
        "",
        "| learner | worst mean | against | rows played |",
    ]
    lines.append("|---|---|---|---|")
    for who in LEARNERS:
        cells = {name: played[n, name, who] for name in ADVERSARIES if (n, name, who) in played}
        if 2 * len(cells) > len(ADVERSARIES):  # of a few rows there is no worst of all
            name = max(cells, key=lambda name: cells[name].mean())
            lines.append(f"| {who} | {three(cells[name].mean())} | {name} | {len(cells)} |")
    lines.append("")
    return lines


def costs(played: dict[Cell, np.ndarray], n: int) -> list[str]:
    """Every learner against the costs, beside the uniform learner."""
    names = [name for name in COSTS if (n, name, "Uniform") in played]
    if not names:
        return []
    lines = [
        f"### Costs, n = {n}: regret in percent of the uniform learner's", "",
        "| learner | " + " | ".join(names) + " | worst |", "|---" * (len(names) + 2) + "|",
    ]  # fmt: skip
    for who in LEARNERS:
        entries, means = [], []
        for name in names:
            values = played.get((n, name, who))
            uniform = played[n, name, "Uniform"].mean() / 100.0
            entries.append("" if values is None else share(values, uniform))
            means += [] if values is None else [values.mean() / uniform]
        if means:
            largest = f"{max(means):.0f}" if len(means) == len(COSTS) else ""
            lines.append(f"| {who} | " + " | ".join(entries) + f" | {largest} |")
    usual = [f"{played[n, name, 'Uniform'].mean():.2g}" for name in names]
    lines += [f"| *uniform, over sqrt(nT)* | {' | '.join(usual)} | |", ""]
    return lines


def share(values: np.ndarray, unit: float) -> str:
    return f"{values.mean() / unit:.1f} ± {interval(values) / unit:.2g}"


def page(played: dict[Cell, np.ndarray], rounds: int) -> str:
    settings = [f"| {name} | `{row.adversary!r}` |" for name, row in (ADVERSARIES | COSTS).items()]
    missing = [cell for cell in all_cells() if cell not in played]
    lines = ["# The catalogue", ""]
    if missing:
        lines += [f"**{len(missing)} cells have not been played yet**; they are empty below.", ""]
    for n in ARMS:
        if any(cell[0] == n for cell in played):
            lines += [f"## n = {n}", ""]
            lines += winners(played, n) + worst(played, n) + costs(played, n) + tables(played, n)
    lines += ["## The adversaries", "", "| name | settings |", "|---|---|", *settings, ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-only", action="store_true", help="play nothing")
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS)
    parser.add_argument("--adversaries", nargs="+", default=[*ROWS], metavar="NAME")
    parser.add_argument("--learners", nargs="+", default=[*LEARNERS], metavar="NAME")
    parser.add_argument("--workers", type=int, default=None)
    args: Any = parser.parse_args()
    if not args.write_only:
        played = load()
        wanted = set(itertools.product(args.arms, args.adversaries, args.learners))
        cells = [cell for cell in all_cells() if cell in wanted and cell not in played]
        play(cells, args.workers)
    write_tables("catalogue", page(load(), ROUNDS))


if __name__ == "__main__":
    main()
