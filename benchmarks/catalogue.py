"""Every learner against every adversary: regret / (range sqrt(n T)), as a page of the docs.

    python benchmarks/catalogue.py                # plays what is missing, then writes the page
    python benchmarks/catalogue.py --write-only   # writes the page from what has been played
    python benchmarks/catalogue.py --arms 10 --learners AHB "SCB range"     # only some of the cells

Replicates are paired: with equal seeds every learner meets the same losses (adversaries that react
to the learner apart). Each finished cell is one line of docs/data/catalogue.csv, so that a run that
was stopped goes on where it was; delete lines to play them again.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unbounded import (
    AHB,
    INF,
    SCB,
    SCBIX,
    SFMAB,
    SOLOFTRL,
    UCB1,
    UMABG,
    UMABNN,
    AdaFTRL,
    AdaHedge,
    Banker,
    DoublingTsallisINF,
    EpsilonGreedy,
    Exp3,
    Exp3Auer,
    Exp3IX,
    Exp3P,
    Learner,
    TsallisINF,
    TsallisINFRV,
    Uniform,
    UniINF,
    simulate,
)
from unbounded.adversaries import (
    Adversary,
    Chaser,
    Drift,
    Growth,
    LowerBound,
    OutsideWindow,
    Pareto,
    Shrink,
    Signs,
    SpikeLeastLikely,
    Spikes,
    StochasticGap,
    StudentT,
    Switch,
    ZerosFirst,
    worst_cases,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "data" / "catalogue.csv"
PAGE = DOCS / "catalogue.md"
ROUNDS, REPLICATES, SEED = 100_000, 50, 2024
ARMS = (10, 100)

Range = tuple[float, float]

# Learners that are told the range get the one of the losses' construction; None: the range of the
# losses of all replicates, which nobody could know beforehand.
ADVERSARIES: dict[str, tuple[Adversary, Range | None]] = {
    "gap": (StochasticGap(0.1), (0, 1)),
    "gap + 1000": (StochasticGap(0.1, shift=1000.0), (1000, 1001)),
    "gap / 1000": (StochasticGap(0.1, scale=1e-3), (0, 1e-3)),
    "lower bound": (LowerBound(), (0, 1)),
    "switch": (Switch(), (0, 1)),
    "drift": (Drift(), (0, 1)),
    "growth": (Growth(), (-1, 1)),
    "shrink": (Shrink(), (0, 1)),
    "spikes up": (Spikes(sign="positive"), (0, 30)),
    "spikes down": (Spikes(sign="negative"), (-30, 1)),
    "negative": (Signs("negative"), (-1, 0)),
    "mixed": (Signs("mixed"), (-1, 1)),
    "alternating": (Signs("alternating"), (-1, 1)),
    "Student t": (StudentT(2.0), None),
    "Pareto": (Pareto(1.5), None),
    "zeros first": (ZerosFirst(), (0, 1)),
    "hidden spikes*": (SpikeLeastLikely(), (-8, 1)),
    "chaser*": (Chaser(), (0, 1)),
    "outside*": (OutsideWindow(), (-1, 1)),
    **{f"{name}*": (case, told) for name, (case, told) in worst_cases().items()},
}

Maker = Callable[[int, int, Range], Learner]
LEARNERS: dict[str, Maker] = {
    "Uniform": lambda n, T, r: Uniform(n),
    "EpsilonGreedy": lambda n, T, r: EpsilonGreedy(n),
    "UCB1 (range)": lambda n, T, r: UCB1(n, loss_range=r),
    "Exp3 (range)": lambda n, T, r: Exp3(n, loss_range=r),
    "Exp3 (range, T)": lambda n, T, r: Exp3(n, rounds=T, loss_range=r),
    "Exp3Auer (range, T)": lambda n, T, r: Exp3Auer(n, rounds=T, loss_range=r),
    "Exp3P (range, T)": lambda n, T, r: Exp3P(n, rounds=T, loss_range=r),
    "Exp3IX (range)": lambda n, T, r: Exp3IX(n, loss_range=r),
    "Exp3IX (range, T)": lambda n, T, r: Exp3IX(n, rounds=T, delta=0.05, loss_range=r),
    "INF (range, T)": lambda n, T, r: INF(n, rounds=T, loss_range=r),
    "TsallisINF (range)": lambda n, T, r: TsallisINF(n, loss_range=r),
    "TsallisINFRV (range)": lambda n, T, r: TsallisINFRV(n, loss_range=r),
    "DoublingTsallisINF": lambda n, T, r: DoublingTsallisINF(n),
    "AHB": lambda n, T, r: AHB(n),
    "SFMAB fixed": lambda n, T, r: SFMAB(n),
    "SFMAB adaptive": lambda n, T, r: SFMAB(n, exploration="adaptive"),
    "UMABNN": lambda n, T, r: UMABNN(n),
    "UMABG adaptive": lambda n, T, r: UMABG(n),
    "UMABG fixed (T)": lambda n, T, r: UMABG(n, exploration="fixed", rounds=T),
    "Banker (T)": lambda n, T, r: Banker(n, rounds=T),
    "UniINF (T)": lambda n, T, r: UniINF(n, rounds=T),
    "SCB scale": lambda n, T, r: SCB(n),
    "SCB range": lambda n, T, r: SCB(n, clip="range"),
    "SCB range, rate 2": lambda n, T, r: SCB(n, clip="range", rate=2.0),
    "SCBIX scale": lambda n, T, r: SCBIX(n),
    "SCBIX range": lambda n, T, r: SCBIX(n, clip="range"),
    "AdaHedge (all losses)": lambda n, T, r: AdaHedge(n),
    "SOLOFTRL (all losses)": lambda n, T, r: SOLOFTRL(n),
    "AdaFTRL (all losses)": lambda n, T, r: AdaFTRL(n),
}

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


def told_range(adversary: Adversary, told: Range | None, n: int, rounds: int) -> Range:
    if told is not None:
        return told
    seen = simulate(
        Uniform(n), adversary, rounds, REPLICATES, SEED, checkpoints=[rounds], pseudo_regret=False
    )
    return float(seen.low.min()), float(seen.high.max())


def play(cells: list[Cell], rounds: int, workers: int | None) -> None:
    """Play the cells that are missing, and keep each as soon as it is done."""
    ranges: dict[tuple[int, str], Range] = {}
    begin = time.monotonic()
    for done, (n, adversary_name, learner_name) in enumerate(cells):
        adversary, told = ADVERSARIES[adversary_name]
        if (n, adversary_name) not in ranges:
            ranges[n, adversary_name] = told_range(adversary, told, n, rounds)
        learner = LEARNERS[learner_name](n, rounds, ranges[n, adversary_name])
        result = simulate(
            learner, adversary, rounds, REPLICATES, SEED,
            checkpoints=[rounds], pseudo_regret=False, workers=workers,
        )  # fmt: skip
        regrets = result.relative_regret("range")[:, -1] / math.sqrt(n * rounds)
        if adversary.looks and told is not None:  # what range is realised depends on the learner
            regrets = result.regret[:, -1] / ((told[1] - told[0]) * math.sqrt(n * rounds))
        append((n, adversary_name, learner_name), regrets)
        elapsed = time.monotonic() - begin
        left = elapsed / (done + 1) * (len(cells) - done - 1)
        print(
            f"{done + 1}/{len(cells)} n={n} {adversary_name} | {learner_name}: "
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
            lines.append(f"| {who} | " + " | ".join(entries) + " |")
        lines.append("")

    table("Mean with its 95% interval", lambda v: f"{three(v.mean())} ± {interval(v):.2g}")
    table("95% quantile over replicates", quantile)
    return lines


FREE = [name for name in LEARNERS if "(" not in name and name != "Uniform"]


def winners(played: dict[Cell, np.ndarray], n: int) -> list[str]:
    """Who has the smallest mean regret, among learners told nothing and among all bandits."""
    lines = [
        f"### Who wins, n = {n}", "",
        "| adversary | best when told nothing | within noise of it | best bandit of all |",
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
        "| learner | worst mean | against |",
    ]
    lines.append("|---|---|---|")
    for who in LEARNERS:
        cells = {name: played[n, name, who] for name in ADVERSARIES if (n, name, who) in played}
        if cells:
            name = max(cells, key=lambda name: cells[name].mean())
            lines.append(f"| {who} | {three(cells[name].mean())} | {name} |")
    lines.append("")
    return lines


def page(played: dict[Cell, np.ndarray], rounds: int) -> str:
    settings = [f"| {name} | `{pair[0]!r}` |" for name, pair in ADVERSARIES.items()]
    missing = [
        (n, a, w) for n in ARMS for a in ADVERSARIES for w in LEARNERS if (n, a, w) not in played
    ]
    rank, sure = around_quantile(REPLICATES)
    lines = [
        "# The catalogue: every learner against every adversary", "",
        "Made by `python benchmarks/catalogue.py`; do not edit. Realised regret divided by",
        f"range × sqrt(nT), at T = {rounds:,} with {REPLICATES} replicates, paired: every learner",
        "met the same losses, except from adversaries with a star, which react to the learner. The",
        "range is that of all losses of all arms; with a star, where the learner has a part in it,",
        "the range within which the adversary stays. The numbers behind the tables:",
        "[data/catalogue.csv](data/catalogue.csv). What follows from them:",
        "[which-learner.md](which-learner.md).", "",
        "After a learner's name stands what it was told: the range of the losses, the number of",
        "rounds T, or the losses of all arms. For Student t and Pareto the range told is that of",
        "the losses of all replicates. Exp3P (form `bubeck`) and Exp3IX (range, T) are also told",
        "delta = 0.05. UMABNN takes negative losses as 0.", "",
        "95% quantiles stand with the interval from the "
        f"{rank}th smallest to the largest of the {REPLICATES}",
        f"values, which covers the true quantile with probability {sure:.2f} whatever the",
        f"distribution; with {REPLICATES} replicates there is none of 0.95. One quantile above",
        "another within these intervals means nothing.", "",
    ]  # fmt: skip
    if missing:
        lines += [f"**{len(missing)} cells have not been played yet**; they are empty below.", ""]
    for n in ARMS:
        if any(cell[0] == n for cell in played):
            lines += [f"## n = {n}", ""]
            lines += winners(played, n) + worst(played, n) + tables(played, n)
    lines += ["## The adversaries", "", "| name | settings |", "|---|---|", *settings, ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-only", action="store_true", help="play nothing")
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS)
    parser.add_argument("--adversaries", nargs="+", default=[*ADVERSARIES], metavar="NAME")
    parser.add_argument("--learners", nargs="+", default=[*LEARNERS], metavar="NAME")
    parser.add_argument("--workers", type=int, default=None)
    args: Any = parser.parse_args()
    if not args.write_only:
        played = load()
        cells = [(n, a, w) for n in args.arms for a in args.adversaries for w in args.learners]
        play([cell for cell in cells if cell not in played], ROUNDS, args.workers)
    PAGE.write_text(page(load(), ROUNDS), encoding="utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
