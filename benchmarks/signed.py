"""Losses of either sign: the catalogue, random programs, a search against each learner, outliers.

    python benchmarks/signed.py                      # plays what is missing, then writes the page
    python benchmarks/signed.py --write-only         # writes the page from what has been played
    python benchmarks/signed.py --tables outliers    # only some of the tables
    python benchmarks/signed.py --arms 10 --rounds 10000 --blocks 2     # ... or some of the cells

Regret is realized, divided by range × sqrt(nT), where the range is that of the adversary's
construction; learners that are told a range are told this one. Each finished cell is one line of
docs/results/data/signed.csv, so that a run that was stopped goes on where it was; several runs may
go on at once if they play different cells. Rows of the catalogue at n = 10 and 100 and T = 100,000
are those of benchmarks/catalogue.py.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from pathlib import Path
from typing import Any

import catalogue
import numpy as np
from adversary_search import GENERATIONS
from catalogue_cells import ADVERSARIES
from result_tables import write_tables
from signed_cells import (
    ARMS,
    BLOCKS,
    FRESH,
    LEARNERS,
    OUTLIER,
    OUTLIER_ARMS,
    OUTLIER_ROUNDS,
    OUTLIERS,
    PROGRAM_ROUNDS,
    REPLICATES,
    RIVALS,
    ROUNDS,
    SEARCH_ROUNDS,
    SEARCHED,
    TABLES,
    TRIMMED,
    Cell,
    all_cells,
)

DATA = Path(__file__).resolve().parents[1] / "docs" / "results" / "data" / "signed.csv"


def load() -> dict[Cell, tuple[np.ndarray, str]]:
    if not DATA.exists():
        return {}
    with DATA.open(newline="") as file:
        return {
            Cell(row["table"], int(row["n"]), int(row["rounds"]), row["case"], row["learner"]): (
                np.array(row["values"].split(), dtype=float),
                row["note"],
            )
            for row in csv.DictReader(file)
        }


def append(cell: Cell, values: np.ndarray, note: str) -> None:
    DATA.parent.mkdir(parents=True, exist_ok=True)
    new = not DATA.exists()
    with DATA.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow([*Cell._fields, "values", "note"])
        writer.writerow([*cell, " ".join(f"{x:.4g}" for x in values), note])


Data = dict[Cell, tuple[np.ndarray, str]]


def of_catalogue(data: Data) -> Data:
    """What catalogue.py has played, as cells of these tables."""
    return {
        Cell("catalogue", n, catalogue.ROUNDS, name, who): (values, "")
        for (n, name, who), values in catalogue.load().items()
        if name in ADVERSARIES and who in [*RIVALS, "Uniform"]
    } | {cell: played for cell, played in data.items() if cell.table == "catalogue"}


def catalogue_page(data: Data) -> list[str]:
    """The worst row of each learner, and how it compares over all rows; then all rows."""
    played, names = of_catalogue(data), [*RIVALS, "Uniform"]
    lines = ["## The catalogue", "", "| n | T | |" + "|".join(f" {who} " for who in names) + "|",
             "|---" * (len(names) + 3) + "|"]  # fmt: skip
    rows: list[list[Cell]] = []
    for n in ARMS:
        for rounds in ROUNDS:
            cells = [
                [Cell("catalogue", n, rounds, name, who) for who in names] for name in ADVERSARIES
            ]
            rows += cells
            if not all(cell in played for row in cells for cell in row):
                continue
            means = np.array([[played[cell][0].mean() for cell in row] for row in cells])
            at = means.argmax(axis=0)
            lines += [
                f"| {n} | {rounds:,} | worst row | "
                + " | ".join(f"{means[i, j]:.2f} ({[*ADVERSARIES][i]})" for j, i in enumerate(at))
                + " |",
                "| | | mean of the rows | "
                + " | ".join(f"{x:.3f}" for x in means.mean(axis=0))
                + " |",
                "| | | rows it wins | "
                + " | ".join(
                    str((means[:, :-1].argmin(axis=1) == j).sum()) for j in range(len(names))
                )
                + " |",
            ]
    return [*lines, "", "### All rows", "", *grid(played, "catalogue", rows, names)]


def of_programs(data: Data, n: int) -> dict[str, np.ndarray]:
    """The means of all programs that every learner has played."""
    cells = {
        who: [Cell("programs", n, PROGRAM_ROUNDS, str(block), who) for block in range(BLOCKS)]
        for who in LEARNERS
    }
    blocks = [b for b in range(BLOCKS) if all(some[b] in data for some in cells.values())]
    return {
        who: np.concatenate([data[some[b]][0] for b in blocks] or [[]])
        for who, some in cells.items()
    }


def programs_page(data: Data) -> list[str]:
    lines = ["## Random programs", ""]
    for n in ARMS:
        means = of_programs(data, n)
        table = np.array(list(means.values()))
        if table.size == 0:
            continue
        best = table[: len(RIVALS)].min(axis=0)
        lines += [
            f"n = {n}, T = {PROGRAM_ROUNDS:,}, {table.shape[1]} programs, replicates of each: "
            f"{REPLICATES}", "",
            "| learner | mean | less than AdaINF's by | 95% quantile | worst | lowest of all |",
            "|---|---|---|---|---|---|",
        ]  # fmt: skip
        for who, values in means.items():
            less = means["AdaINF"] - values
            error = 1.96 * less.std(ddof=1) / math.sqrt(less.size)
            won = (values == best).sum() if who in RIVALS else "-"
            lines.append(
                f"| {who} | {values.mean():.3f} | {less.mean():.3f} ± {error:.3f} "
                f"| {np.quantile(values, 0.95):.2f} | {values.max():.2f} | {won} |"
            )
        lines.append("")
    return lines


def entry(data: Data, cell: Cell) -> str:
    if cell not in data:
        return ""
    values = data[cell][0]
    return f"{values.mean():.2f} ± {1.96 * values.std(ddof=1) / math.sqrt(values.size):.2f}"


def grid(data: Data, title: str, cells: list[list[Cell]], columns: list[str]) -> list[str]:
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in cells:
        entries = [entry(data, cell) for cell in row]
        if any(entries):
            name = row[0].case
            if row[0].table == "search":
                name = f"n = {row[0].n}, {name}"
            elif row[0].table == "catalogue":
                name = f"n = {row[0].n}, T = {row[0].rounds:,}, {name}"
            lines.append(f"| {name} | " + " | ".join(entries) + " |")
    return [*lines, ""]


def missing(data: Data) -> list[str]:
    """How much of each table there is."""
    cells = list(all_cells())
    lines = []
    for table in TABLES:
        wanted = [cell for cell in cells if cell.table == table]
        done = sum(cell in data for cell in wanted)
        if done < len(wanted):
            lines.append(
                f'- **{done} of {len(wanted)} cells** of the table "{table}" have been played; '
                f"`python benchmarks/signed.py --tables {table}` plays the others."
            )
    return [*lines, ""] if lines else []


def page(data: Data) -> str:
    lines = [
        "# Losses of either sign: the catalogue, random programs, searches, outliers", "",
        *missing(data),
        *catalogue_page(data),
        *programs_page(data),
        "## A search against each learner", "",
        f"{SEARCHED} programs and {GENERATIONS} generations of mutants of the best against one",
        f"learner (rows), T = {SEARCH_ROUNDS:,}; the winner is played by all learners (columns),",
        f"with {FRESH} fresh seeds.", "",
    ]  # fmt: skip
    names = [*LEARNERS]
    rows = [
        [Cell("search", n, SEARCH_ROUNDS, target, who) for who in names]
        for n in ARMS
        for target in RIVALS
    ]
    lines += grid(data, "searched against", rows, names)
    notes = [(row[0], data[row[0]][1]) for row in rows if row[0] in data]
    lines += [f"- n = {cell.n}, against {cell.case}: `{note}`" for cell, note in notes]
    lines += [
        "", "## Outliers", "",
        f"Coin flips, one arm better by 0.2, n = {OUTLIER_ARMS}, T = {OUTLIER_ROUNDS:,},",
        f"{FRESH} replicates; in some rounds every arm has a loss of ±{OUTLIER:g}. Regret over",
        "sqrt(nT), in units of the usual losses. Told learners are told [0, 1].", "",
    ]  # fmt: skip
    names = [*LEARNERS, *TRIMMED]
    rows = [
        [Cell("outliers", OUTLIER_ARMS, OUTLIER_ROUNDS, case, who) for who in names]
        for case in OUTLIERS
    ]
    return "\n".join(lines + grid(data, "outliers", rows, names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-only", action="store_true", help="play nothing")
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS)
    parser.add_argument("--rounds", type=int, nargs="+", default=ROUNDS)
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="of 25 random programs")
    parser.add_argument("--against", nargs="+", default=[*RIVALS], metavar="NAME", help="search")
    parser.add_argument(
        "--learners", nargs="+", default=[*LEARNERS, *TRIMMED, "Uniform"], metavar="NAME"
    )
    args: Any = parser.parse_args()
    if not args.write_only:
        data, begin = load(), time.monotonic()
        cells = [
            cell
            for cell in all_cells()
            if cell not in data and cell.table in args.tables and cell.n in args.arms
            and cell.rounds in args.rounds and cell.learner in args.learners
            and (cell.table != "programs" or int(cell.case) < args.blocks)
            and (cell.table != "search" or cell.case in args.against)
        ]  # fmt: skip
        for done, cell in enumerate(cells, start=1):
            values, note = TABLES[cell.table](cell)
            append(cell, values, note)
            print(
                f"{done}/{len(cells)} {' '.join(map(str, cell))}: {values.mean():.3f} "
                f"({time.monotonic() - begin:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
    write_tables("signed", page(load()))


if __name__ == "__main__":
    main()
