"""Dynamic regret where the best arm, or the scale, changes: learners with and without a half-life.

    python benchmarks/changing.py                       # plays what is missing, then writes tables
    python benchmarks/changing.py --write-only          # writes tables from what has been played
    python benchmarks/changing.py --arms 10 --rounds 10000

Pseudo-regret against the best arm of each round, in units of the scale of that round, in percent
of that of uniform play. Replicates are paired: with equal seeds every learner meets the same losses
(adversaries that react to the learner apart). "random programs" are 200 other environments, one
replicate each, whose seeds nothing was tuned on. Each finished cell is a line of
docs/results/data/changing.csv; delete lines to play them again.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from result_tables import write_tables

import unbounded
from unbounded import Uniform, adversaries, settings, simulate
from unbounded.adversaries import RandomChanges

DATA = Path(__file__).resolve().parents[1] / "docs" / "results" / "data" / "changing.csv"
ARMS, ROUNDS, SEEDS, PROGRAMS, FIRST_PROGRAM = (10, 100), (10_000, 100_000), 20, 200, 900_000
RANDOM = "random programs"
# How often the best arm changes; None where it does not, or as often as the learner makes it.
CHANGES: dict[str, int | None] = {
    "stationary": None, "1 change": 1, "5 changes": 5, "20 changes": 20, "100 changes": 100,
    "drift": 6, "scale falls": 3, "scale rises": 3, "incidents": 25, "cheap": 5, "heavy tails": 5,
    "offset drifts": 5, "replicas": 20, "moves away": None, "likeliest costs 1": None,
}  # fmt: skip
SIGNED = ("offset drifts",)  # where there is no lower bound on the losses
COSTS = ("CostSCB", "CostSCBIX", "FixedShare", "DiscountedThompson", "RestartingCostSCB")
KNOWN = ("DiscountedUCB", "SlidingWindowUCB", "Exp3S")  # these are given the true range
FORGETTING = ("CostSCB", "AdaINF")

Case = tuple[str, dict[str, Any]]
CASES: list[Case] = [
    *((who, {}) for who in FORGETTING),
    *((who, {"half_life": h}) for who in FORGETTING for h in (100, 300, 1000, 3000, 10_000)),
    *((who, {"half_life": h}) for who in FORGETTING for h in ("rule", "T/S")),
    ("CostSCB", {"half_life": 1000, "cap": 100.0}),
    ("CostSCB", {"half_life": 1000, "outliers": "sqrt"}),
    ("AdaINF", {"half_life": 1000, "robust": False}),
    ("CostSCBIX", {"half_life": 1000}),
    ("RestartingCostSCB", {"every": 3000}),
    ("RestartingCostSCB", {"detect": "page-hinkley"}),
    ("FixedShare", {"window": 1000}),
    ("FixedShare", {"window": 10_000}),
    ("Exp3S", {"switches": "S"}),
    *(("DiscountedUCB", {"half_life": h, "width": 0.3}) for h in (300, 1000, 3000, 10_000)),
    ("DiscountedUCB", {"half_life": 1000}),
    *(("SlidingWindowUCB", {"window": w, "width": 0.3}) for w in (1000, 3000)),
    *(("DiscountedThompson", {"half_life": h}) for h in (300, 1000, 3000)),
    *(("EpsilonGreedy", {"step": step}) for step in (0.1, 0.03, 0.01)),
    ("Uniform", {}),
]
TUNED = ("DiscountedUCB", "SlidingWindowUCB", "DiscountedThompson", "EpsilonGreedy", *FORGETTING)

Cell = tuple[int, int, str, str]  # arms, rounds, adversary, learner


def name_of(case: Case) -> str:
    return f"{case[0]}({', '.join(f'{k}={v}' for k, v in case[1].items())})"


def resolved(case: Case, n: int, T: int, changes: int | None) -> dict[str, Any] | None:
    """Settings of a learner, given what is known of the changes; None without that."""
    given = dict(case[1])
    if not {"rule", "T/S", "S"} & {str(value) for value in given.values()}:
        return given
    if changes is None:
        return None
    if given.pop("switches", None):
        return {"rounds": T, "switches": changes}
    rule = n ** (1 / 3) * (T / changes) ** (2 / 3)
    given["half_life"] = round(rule if given["half_life"] == "rule" else T / changes)
    return given


def regrets(case: Case, n: int, T: int, adversary: Any, changes: int | None, replicates: int,
            seed: int, span: tuple[float, float]) -> np.ndarray | None:  # fmt: skip
    """Dynamic pseudo-regret of a learner; those that are given a range get ``span``."""
    given = resolved(case, n, T, changes)
    if given is None:
        return None
    if case[0] in KNOWN:
        given["loss_range"] = span
    learner = getattr(unbounded, case[0])(n, **given)
    play = simulate(
        learner, adversary, T, replicates, seed, checkpoints=[T], dynamic=True, workers=1
    )
    declared = adversary.expected is not None  # else the losses of a round are not random
    found = play.dynamic_pseudo_regret if declared else play.dynamic_regret
    return np.asarray(found[:, -1])


def span_of(n: int, T: int, adversary: Any, replicates: int, seed: int) -> tuple[float, float]:
    """Between which numbers the losses lie, in all replicates."""
    play = simulate(Uniform(n), adversary, T, replicates, seed, checkpoints=[T], workers=1)
    return float(play.low.min()), float(play.high.max())


FEW_COLUMNS = ("1 change", "100 changes", "scale rises", "moves away")  # not at n = 100, T = 1e5
FEW: list[Case] = [
    *((who, {}) for who in FORGETTING),
    *((who, {"half_life": h}) for who in FORGETTING for h in (1000, 3000, 10_000)),
    *(("DiscountedUCB", {"half_life": h, "width": 0.3}) for h in (3000, 10_000)),
    ("EpsilonGreedy", {"step": 0.03}),
    ("EpsilonGreedy", {"step": 0.01}),
    ("Exp3S", {"switches": "S"}),
    ("FixedShare", {"window": 10_000}),
    ("RestartingCostSCB", {"every": 3000}),
    ("Uniform", {}),
]


def wanted(case: Case, n: int, T: int, adversary: str) -> bool:
    """Say whether a cell is played: with many arms, those that take long are not."""
    if adversary in SIGNED and case[0] in COSTS:
        return False
    if n > 10 and case[0] == "DiscountedThompson":  # 5 us a round, of logarithms
        return T <= 10_000 and adversary in ("heavy tails", "replicas")
    if n * T > 10**6:
        return case in FEW and adversary not in (*FEW_COLUMNS, RANDOM)
    return n == 10 or adversary != RANDOM or case in FEW


def load() -> dict[Cell, np.ndarray]:
    """Return the regrets of each cell that has been played."""
    if not DATA.exists():
        return {}
    with DATA.open(newline="") as file:
        return {
            (int(row["n"]), int(row["T"]), row["adversary"], row["learner"]): np.array(
                row["regrets"].split(), dtype=float
            )
            for row in csv.DictReader(file)
        }


def append(cell: Cell, values: np.ndarray) -> None:
    new = not DATA.exists()
    with DATA.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["n", "T", "adversary", "learner", "regrets"])
        writer.writerow([*cell, " ".join(f"{x:.5g}" for x in values)])


def play(n: int, T: int) -> None:
    """Play the cells that are missing."""
    played, known = load(), adversaries.changing()
    for name in (*CHANGES, RANDOM):
        missing = [case for case in CASES if (n, T, name, name_of(case)) not in played]
        missing = [case for case in missing if wanted(case, n, T, name)]
        if not missing:
            continue
        if name == RANDOM:
            plays = [(RandomChanges(seed=FIRST_PROGRAM + i), 1, i) for i in range(PROGRAMS)]
        else:
            plays = [(known[name], SEEDS, 1)]
        spans = [span_of(n, T, one, many, seed) for one, many, seed in plays]
        for case in missing:
            began = time.process_time()
            found = [
                regrets(case, n, T, one, CHANGES.get(name), many, seed, span)
                for (one, many, seed), span in zip(plays, spans, strict=True)
            ]
            if found[0] is None:
                continue
            append((n, T, name, name_of(case)), np.concatenate(found))
            took = time.process_time() - began
            print(f"{n} {T} {name} {name_of(case)} {took:.1f} s", file=sys.stderr, flush=True)


def three(x: float) -> str:
    return f"{x:.3g}" if x < 999.5 else f"{x:.0f}"


def percent(values: np.ndarray, uniform: np.ndarray) -> tuple[float, float]:
    """Mean regret in percent of the uniform learner's, and its standard error."""
    unit = 100.0 / uniform.mean()
    return values.mean() * unit, values.std(ddof=1) / math.sqrt(values.size) * unit


def catalogue(played: dict[Cell, np.ndarray], n: int, T: int) -> list[str]:
    """One row per learner, and the best of several settings, chosen afterwards."""
    columns = list(CHANGES)
    lines = ["| learner | " + " | ".join(columns) + " | worst |", "|---" * (len(columns) + 2) + "|"]
    best: dict[str, dict[str, float]] = {who: {} for who in TUNED}
    for case in CASES[:-1]:
        cells, shares = [], []
        for name in columns:
            values = played.get((n, T, name, name_of(case)))
            uniform = played.get((n, T, name, "Uniform()"))
            if values is None or uniform is None:
                cells.append("")
                continue
            share, error = percent(values, uniform)
            cells.append(f"{three(share)} ± {error:.1g}")
            shares.append((share, name))
            if case[0] in best and case[1] and not {"cap", "outliers", "robust"} & set(case[1]):
                best[case[0]][name] = min(share, best[case[0]].get(name, math.inf))
        if shares:
            share, name = max(shares)
            lines.append(f"| {name_of(case)} | {' | '.join(cells)} | {three(share)}: {name} |")
    for who, shares in best.items():
        if not shares:
            continue
        row = [three(shares[name]) if name in shares else "" for name in columns]
        lines.append(f"| {who}, best setting of each column | {' | '.join(row)} | |")
    return lines


def programs(played: dict[Cell, np.ndarray], n: int, T: int) -> list[str]:
    """The random programs: mean, quantile and worst of all."""
    uniform = played.get((n, T, RANDOM, "Uniform()"))
    if uniform is None:
        return []
    found = {
        name_of(case): 100.0 * played[n, T, RANDOM, name_of(case)] / uniform
        for case in CASES[:-1]
        if (n, T, RANDOM, name_of(case)) in played
    }
    least = np.min(list(found.values()), axis=0)
    lines = ["", "random programs", "",
             "| learner | programs | mean | 95% quantile | worst | lowest of all |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for who, shares in found.items():
        error = shares.std(ddof=1) / math.sqrt(shares.size)
        lines.append(
            f"| {who} | {shares.size} | {three(shares.mean())} ± {error:.1g} | "
            f"{three(np.quantile(shares, 0.95))} | {three(shares.max())} | "
            f"{int((shares == least).sum())} |"
        )
    return lines


def page(played: dict[Cell, np.ndarray]) -> str:
    lines = ["# Losses that change", ""]
    for n in ARMS:
        for T in ROUNDS:
            if any(cell[:2] == (n, T) for cell in played):
                lines += [f"## n = {n}, T = {T:,}", "", *catalogue(played, n, T)]
                lines += [*programs(played, n, T), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-only", action="store_true", help="play nothing")
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS)
    parser.add_argument("--rounds", type=int, nargs="+", default=ROUNDS)
    args = parser.parse_args()
    settings.jit = "always"
    warnings.simplefilter("ignore", unbounded.ScaleWarning)
    if not args.write_only:
        for n in args.arms:
            for T in args.rounds:
                play(n, T)
    write_tables("changing", page(load()))


if __name__ == "__main__":
    main()
