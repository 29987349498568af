"""Losses of either sign: the catalogue, random programs, a search against each learner, outliers.

    python benchmarks/signed.py                      # plays what is missing, then writes the page
    python benchmarks/signed.py --write-only         # writes the page from what has been played
    python benchmarks/signed.py --tables outliers    # only some of the tables
    python benchmarks/signed.py --arms 10 --rounds 10000 --blocks 2     # ... or some of the cells

Regret is realised, divided by range × sqrt(nT), where the range is that of the adversary's
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import catalogue
import numpy as np
from adversary_search import GENERATIONS, Phases, random_program, search
from catalogue_cells import ADVERSARIES, Told

from unbounded import AHB, SCB, AdaINF, CostSCB, Learner, TsallisINF, TsallisINFRV, simulate
from unbounded.adversaries import Phase, Program, Replay
from unbounded.adversaries.bandits.program import NO_REACTION, REWARD_UNLIKELIEST

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA, PAGE = DOCS / "results" / "data" / "signed.csv", DOCS / "results" / "signed.md"
ARMS, ROUNDS, BLOCK, BLOCKS = (2, 10, 100), (10_000, 100_000), 25, 20
PROGRAMS_SEED, SEARCH_SEED, PLAY_SEED = 20_261_117, 71, 4_000_000
REPLICATES = {10_000: 4, 100_000: 1}  # of each random program
SEARCHED, SEARCH_ROUNDS, FRESH = 2000, 10_000, 50
OUTLIER, OUTLIER_ARMS, OUTLIER_ROUNDS = 1e6, 10, 10_000

Range = tuple[float, float]
RIVALS: dict[str, Callable[[int, Range], Learner]] = {
    "AdaINF": lambda n, told: AdaINF(n),
    "SCB": lambda n, told: SCB(n),
    "AHB": lambda n, told: AHB(n),
    "TsallisINF (range)": lambda n, told: TsallisINF(n, loss_range=told),
    "TsallisINFRV (range)": lambda n, told: TsallisINFRV(n, loss_range=told),
    "CostSCB (lower)": lambda n, told: CostSCB(n, lower=told[0]),
}
VARIANTS: dict[str, Callable[[int, Range], Learner]] = {  # not counted among those who win
    "AdaINF exploration 1": lambda n, told: AdaINF(n, exploration=1.0),
    "AdaINF pure": lambda n, told: AdaINF(n, robust=False),
}
LEARNERS = RIVALS | VARIANTS
OUTLIERS: dict[str, list[tuple[int, float]]] = {  # (round, sign)
    "none": [],
    "up in round 1": [(1, 1.0)],
    "down in round 1": [(1, -1.0)],
    "ten up": [(1000 * j + 500, 1.0) for j in range(10)],
    "up at 1000": [(1000, 1.0)],
    "down at 1000": [(1000, -1.0)],
    "four down": [(1000 * j, -1.0) for j in (1, 3, 5, 7)],
}
TRIMMED = {f"AdaINF trim {r}": r for r in (1, 4)}


class Cell(NamedTuple):
    """What one line of the data is about."""

    table: str
    n: int
    rounds: int
    case: str
    learner: str


class Signed(NamedTuple):
    """A program, as it is or with the sign of all losses changed."""

    sign: float
    phases: Phases

    @property
    def adversary(self) -> Program:
        return Program(self.phases, scale=self.sign)

    @property
    def range(self) -> Range:
        """What the program's losses cannot leave; spikes are at losses that were seen."""
        reached = [loss for phase in self.phases for loss in _reached(phase)]
        low, high = sorted((self.sign * min(reached), self.sign * max(reached)))
        return low, high if high > low else low + max(1.0, abs(low))


def _reached(phase: Phase) -> list[float]:
    levels = []
    if phase.noise < 1.0:
        levels += [phase.level, phase.level - phase.gap]
    if phase.noise > 0.0:
        levels += [0.0, 1.0]
    if phase.reaction == REWARD_UNLIKELIEST:
        levels.append(0.0)
    elif phase.reaction != NO_REACTION:
        levels.append(1.0)
    sizes = phase.size, phase.size * phase.growth
    return [size * level for size in sizes for level in levels]


def programs(block: int) -> list[Signed]:
    """A block of random programs, half of them with the sign changed."""
    rng = np.random.default_rng([PROGRAMS_SEED, block])
    return [Signed((-1.0) ** j, random_program(rng, above=False)) for j in range(BLOCK)]


def played(
    name: str, program: Signed, n: int, rounds: int, replicates: int, seed: int
) -> np.ndarray:
    """Realised regrets over range sqrt(nT)."""
    low, high = program.range
    result = simulate(
        LEARNERS[name](n, (low, high)), program.adversary, rounds, replicates, seed,
        checkpoints=[rounds], pseudo_regret=False, workers=1,
    )  # fmt: skip
    return result.regret[:, -1] / ((high - low) * math.sqrt(n * rounds))


# ------------------------------------------------------------------------------------ the tables


def play_programs(cell: Cell) -> tuple[np.ndarray, str]:
    """The mean of each program of a block."""
    block = int(cell.case)
    means = [
        played(cell.learner, program, cell.n, cell.rounds, REPLICATES[cell.rounds], PLAY_SEED + j)
        for j, program in enumerate(programs(block))
    ]
    return np.array(means).mean(axis=1), ""


def found(n: int, target: str) -> Signed:
    """What a search against ``target`` finds: half of it with the sign changed."""
    best: list[tuple[float, Signed]] = []
    for sign in (1.0, -1.0):
        rng = np.random.default_rng([SEARCH_SEED, n, [*RIVALS].index(target), int(sign > 0)])

        def score(
            phases: Phases,
            replicates: int,
            sign: float = sign,
            rng: np.random.Generator = rng,
        ) -> float:
            seed = int(rng.integers(2**32))
            values = played(target, Signed(sign, phases), n, SEARCH_ROUNDS, replicates, seed)
            return float(values.mean() - 2.0 * values.std() / math.sqrt(replicates))

        phases = search(score, SEARCHED // 2, rng)
        best.append((score(phases, 20), Signed(sign, phases)))
    return max(best)[1]


_FOUND: dict[tuple[int, str], Signed] = {}


def play_search(cell: Cell) -> tuple[np.ndarray, str]:
    key = cell.n, cell.case
    if key not in _FOUND:
        _FOUND[key] = found(*key)
    program = _FOUND[key]
    values = played(cell.learner, program, cell.n, SEARCH_ROUNDS, FRESH, PLAY_SEED)
    return values, code(program)


def code(program: Signed) -> str:
    """A program in short: the sign, and what differs from the defaults."""
    phases = [
        "Phase("
        + ", ".join(
            f"{name}={value:g}"
            for name, value in phase._asdict().items()
            if value != Phase._field_defaults[name]
        )
        + ")"
        for phase in program.phases
    ]
    return ("-" if program.sign < 0.0 else "+") + " " + " ".join(phases)


def coins(replicate: int) -> np.ndarray:
    """Losses 0 and 1 with one better arm."""
    rng = np.random.default_rng([PROGRAMS_SEED, replicate])
    means = np.where(np.arange(OUTLIER_ARMS) == 3, 0.3, 0.5)
    return (rng.random((OUTLIER_ROUNDS, OUTLIER_ARMS)) < means).astype(float)


def play_outliers(cell: Cell) -> tuple[np.ndarray, str]:
    """Rounds in which every arm has the same huge loss; told learners are told [0, 1]."""
    values = []
    for replicate in range(FRESH):
        losses = coins(replicate)
        for t, sign in OUTLIERS[cell.case]:
            losses[t - 1] = sign * OUTLIER
        n = cell.n
        learner = (
            AdaINF(n, trim=TRIMMED[cell.learner])
            if cell.learner in TRIMMED
            else LEARNERS[cell.learner](n, (0.0, 1.0))
        )
        result = simulate(
            learner, Replay(losses), cell.rounds, 1, replicate,
            checkpoints=[cell.rounds], pseudo_regret=False, workers=1,
        )  # fmt: skip
        values.append(result.regret[0, -1] / math.sqrt(n * cell.rounds))
    return np.array(values), ""


def play_catalogue(cell: Cell) -> tuple[np.ndarray, str]:
    told = Told(ADVERSARIES[cell.case], cell.n, cell.rounds)
    return catalogue.regrets_of(cell.n, cell.case, cell.learner, cell.rounds, told, 1), ""


TABLES: dict[str, Callable[[Cell], tuple[np.ndarray, str]]] = {
    "outliers": play_outliers,
    "catalogue": play_catalogue,
    "programs": play_programs,
    "search": play_search,
}


def all_cells() -> Iterator[Cell]:
    for case in OUTLIERS:
        for who in [*LEARNERS, *TRIMMED]:
            yield Cell("outliers", OUTLIER_ARMS, OUTLIER_ROUNDS, case, who)
    for n in ARMS:
        for rounds in ROUNDS:
            for case in ADVERSARIES:
                for who in [*RIVALS, "Uniform"]:
                    if rounds != catalogue.ROUNDS or n not in catalogue.ARMS:
                        yield Cell("catalogue", n, rounds, case, who)
    for block in range(BLOCKS):
        for rounds in ROUNDS:
            for n in ARMS:
                for who in players(rounds):
                    yield Cell("programs", n, rounds, str(block), who)
    for n in ARMS:
        for target in RIVALS:
            for who in LEARNERS:
                yield Cell("search", n, SEARCH_ROUNDS, target, who)


def players(rounds: int) -> list[str]:
    """Who plays the random programs: variants only the short ones."""
    return [*LEARNERS] if rounds == min(ROUNDS) else [*RIVALS]


# ------------------------------------------------------------------------------- data and page


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


def of_programs(data: Data, n: int, rounds: int) -> dict[str, np.ndarray]:
    """The means of all programs that every learner has played."""
    names = players(rounds)
    blocks = [
        block
        for block in range(BLOCKS)
        if all(Cell("programs", n, rounds, str(block), who) in data for who in names)
    ]
    return {
        who: np.concatenate(
            [data[Cell("programs", n, rounds, str(block), who)][0] for block in blocks] or [[]]
        )
        for who in names
    }


def programs_page(data: Data) -> list[str]:
    lines = ["## Random programs", ""]
    for rounds in ROUNDS:
        for n in ARMS:
            means = of_programs(data, n, rounds)
            table = np.array(list(means.values()))
            if table.size == 0:
                continue
            best = table[: len(RIVALS)].min(axis=0)
            lines += [
                f"n = {n}, T = {rounds:,}, {table.shape[1]} programs, replicates of each: "
                f"{REPLICATES[rounds]}", "",
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


def page(data: Data) -> str:
    lines = [
        "# Losses of either sign: random programs, searches, outliers", "",
        "Made by `python benchmarks/signed.py`; do not edit. Realised regret divided by",
        "range × sqrt(nT); the range is that of the adversary's construction, and learners with",
        "(range) were told it, those with (lower) its lower end. `AdaINF pure` has `robust=False`.",
        "Programs are those of `benchmarks/adversary_search.py`, every other one with the sign of",
        "all losses changed; their seeds were not used when the learner was designed.", "",
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
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(load()), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
