"""Dynamic regret where the best arm, or the scale, changes: learners with and without a half-life.

    python benchmarks/changing.py [--arms 10] [--rounds 100000] [--seeds 20] [--write]

Pseudo-regret against the best arm of each round, in units of the scale of that round, in percent
of that of uniform play. A second table has 200 random programs, whose seeds nothing was tuned on.
``--write`` makes docs/results/tables/changing-1.csv and -2.csv, or appends to these.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from result_tables import TABLES

import unbounded
from unbounded import Uniform, adversaries, settings, simulate
from unbounded.adversaries import RandomChanges

settings.jit = "always"
warnings.simplefilter("ignore", unbounded.ScaleWarning)

COSTS = ("CostSCB", "CostSCBIX", "FixedShare", "DiscountedThompson", "RestartingCostSCB")
SIGNED = ("offset drifts",)  # where there is no lower bound on the losses
CASES: list[tuple[str, dict[str, Any]]] = [
    ("AdaINF", {}),
    *(("AdaINF", {"half_life": h}) for h in (100, 1000, 10_000)),
    ("CostSCB", {}),
    *(("CostSCB", {"half_life": h}) for h in (100, 1000, 10_000)),
    ("CostSCB", {"half_life": 1000, "cap": 100.0}),
    ("CostSCB", {"half_life": 1000, "outliers": "sqrt"}),
    ("CostSCBIX", {"half_life": 1000}),
    *(("EpsilonGreedy", {"step": step}) for step in (0.1, 0.03, 0.01)),
    ("DiscountedThompson", {"half_life": 1000}),
    ("FixedShare", {"window": 10_000}),
    *(
        ("DiscountedUCB", {"half_life": h, "width": width, "loss_range": "known"})
        for h in (300, 1000, 3000)
        for width in (1.0, 0.3)
    ),
    ("SlidingWindowUCB", {"window": 3000, "loss_range": "known"}),
]


def name_of(case: tuple[str, dict[str, Any]]) -> str:
    name, given = case
    return f"{name}({', '.join(f'{k}={v}' for k, v in given.items())})"


def regret(case: tuple[str, dict[str, Any]], n: int, adversary: Any, T: int, seeds: int) -> float:
    """Mean dynamic pseudo-regret of a learner; those that are given a range get the true one."""
    name, given = case
    if given.get("loss_range") == "known":
        look = simulate(Uniform(n), adversary, rounds=T, replicates=1, seed=0)
        given = {**given, "loss_range": (float(look.low.min()), float(look.high.max()))}
    learner = getattr(unbounded, name)(n, **given)
    play = simulate(learner, adversary, rounds=T, replicates=seeds, seed=1, dynamic=True)
    declared = adversary.expected is not None  # else the losses of a round are not random
    found = play.dynamic_pseudo_regret if declared else play.dynamic_regret
    return float(found[:, -1].mean())


def catalogue(n: int, T: int, seeds: int) -> Iterator[list[str]]:
    found = {
        key: one for key, one in adversaries.changing().items() if key != "service day" or n == 6
    }
    yield ["n", "T", "learner", *found]
    uniform = {key: regret(("Uniform", {}), n, one, T, seeds) for key, one in found.items()}
    for case in CASES:
        cells = []
        for key, one in found.items():
            missing = key in SIGNED and case[0] in COSTS
            share = "" if missing else f"{100 * regret(case, n, one, T, seeds) / uniform[key]:.3g}"
            cells.append(share)
        yield [str(n), str(T), name_of(case), *cells]


def programs(n: int, T: int, many: int) -> Iterator[list[str]]:
    yield ["n", "T", "programs", "learner", "mean", "worst"]
    found = [RandomChanges(seed=10_000 + i) for i in range(many)]
    uniform = [regret(("Uniform", {}), n, one, T, 1) for one in found]
    for case in CASES:
        shares = [
            100 * regret(case, n, one, T, 1) / base
            for one, base in zip(found, uniform, strict=True)
        ]
        mean, worst = f"{np.mean(shares):.3g}", f"{np.max(shares):.3g}"
        yield [str(n), str(T), str(many), name_of(case), mean, worst]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    n, T = given.arms, given.rounds
    for number, rows in ((1, catalogue(n, T, given.seeds)), (2, programs(n, T, given.programs))):
        path = TABLES / f"changing-{number}.csv"
        head = next(rows)
        if given.write and not path.exists():
            path.write_text(",".join(head) + "\n", encoding="utf-8")
        print(" | ".join(head))
        for row in rows:
            print(" | ".join(row), flush=True)
            if given.write:
                with path.open("a", newline="", encoding="utf-8") as file:
                    csv.writer(file, lineterminator="\n").writerow(row)


if __name__ == "__main__":
    main()
