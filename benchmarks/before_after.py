"""Whether another checkout is slower: the same plays, in turn, in one process of each.

    taskset -c 0 python benchmarks/before_after.py BEFORE NOW [--pairs 60] [--only "SCB n=10"]

BEFORE and NOW are checkouts. Each plays a case for about half a second of CPU time, garbage
collection disabled, compiled code loaded; the order within a pair is random, and each quarter of
the pairs has new processes, since where code and arrays lie in memory makes a difference of its
own. The median of the ratios NOW/BEFORE is printed with its 95% interval (of order statistics), and
the mean of their logarithms with Student's. Both must play the same: their losses are compared.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SIZES, ACTIONS, EPISODES = [5] * 5, 4, 4000
STUDENT = 2.0  # 97.5% quantile, 60 degrees of freedom


def bandit(name: str, arms: int, rounds: int, **settings: Any) -> Any:
    """Simulate a bandit learner; return its losses."""
    from unchanged import adversaries, unbounded

    learner = getattr(unbounded, name)(arms, seed=0, **settings)
    run = {"rounds": rounds, "seed": 1, "checkpoints": [rounds], "workers": 1, "comparators": [0]}
    run["pseudo_regret"] = False
    return lambda: unbounded.simulate(learner, adversaries.StochasticGap(), **run).regret


def ask_and_tell(rounds: int = 20_000) -> Any:
    from unchanged import unbounded

    def play() -> Any:
        learner, total = unbounded.SCB(10, seed=0), 0
        for _ in range(rounds):
            choice = learner.ask()
            learner.tell(choice, 1.0 + choice.arm)
            total += choice.arm
        return total

    return play


def episodes(name: str, n: int = EPISODES, **settings: Any) -> Any:
    """Simulate a learner for MDPs; return its regret."""
    from unchanged import all_mdp_learners, make, mdp_adversary, unbounded, worlds

    mdp = worlds.dirichlet(SIZES, ACTIONS, np.random.default_rng(505))
    if name == "OREPS" or settings.get("explorer") == "oracle":
        settings["transitions"] = mdp.P
    learner = make(all_mdp_learners()[name], SIZES, ACTIONS, n, seed=0, **settings)
    run = {"seed": 1, "checkpoints": [n], "workers": 1}
    return lambda: (
        unbounded.simulate_mdp(learner, mdp, mdp_adversary("stochastic"), n, **run).pseudo_regret
    )


def solves(size: tuple[int, int, int], regime: str, n: int, cold: bool = False) -> Any:
    """Replay recorded programs over occupancy measures; return their certificates."""
    import unbounded

    sys.path.insert(0, str(Path(unbounded.__file__).parents[2] / "benchmarks"))
    from occupancy import Sequence  # the checkout's own

    sequence = Sequence(size, regime, 1, n)
    return lambda: sequence.run(sequence.Ls, cold=cold, repeat=1)[1]


CASES: dict[str, Any] = {
    "CostSCBRL": lambda: episodes("CostSCBRL"),
    "SCB 1e5 arms": lambda: bandit("SCB", 100_000, 1_000_000),
    "AdaINF 1e5 arms": lambda: bandit("AdaINF", 100_000, 400_000),
    "SCB n=10": lambda: bandit("SCB", 10, 1_000_000),
    "SCB ask+tell": ask_and_tell,
    "CostSCB n=10": lambda: bandit("CostSCB", 10, 1_000_000),
    "AdaINF n=10": lambda: bandit("AdaINF", 10, 1_000_000),
    "SCBRL practical": lambda: episodes("SCBRL"),
    "SCBRL paper": lambda: episodes("SCBRL", profile="theory"),
    "SCBRL paper, playing": lambda: episodes("SCBRL", 2000, profile="theory", explorer="oracle"),
    "UOB-REPS": lambda: episodes("UOBREPS"),
    "O-REPS": lambda: episodes("OREPS"),
    "solves 5,5,4 loose": lambda: solves((5, 5, 4), "loose", 300),
    "solves 5,10,4 tight x10": lambda: solves((5, 10, 4), "tight x10", 150),
    "solves 3,5,4 cold": lambda: solves((3, 5, 4), "tight", 60, cold=True),
}


def worker(case: str) -> None:
    """Play whenever a line with a number comes: so many plays; answer with CPU seconds."""
    play = CASES[case]()
    digest = np.asarray(play()).sum()  # loads or compiles
    gc.disable()
    print(repr(float(digest)), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        for _ in range(int(line)):
            play()
        print(time.process_time() - start, flush=True)
        gc.collect()


class Checkout:
    """A process that plays a case with one checkout."""

    def __init__(self, root: Path, case: str) -> None:
        paths = [root / "src", HERE, root / "tests"]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", case], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)),
                              "PYTHONSAFEPATH": "1", "UNBOUNDED_JIT": "always"},
        )  # fmt: skip
        self.digest = self.answer()

    def answer(self) -> str:
        return self.process.stdout.readline().strip()  # type: ignore[union-attr]

    def seconds(self, plays: int) -> float:
        print(plays, file=self.process.stdin, flush=True)
        return float(self.answer())

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()


def compare(case: str, before: Path, now: Path, pairs: int, seconds: float) -> str:
    """Return the row of a case."""
    logs, spent = [], 0.0
    for _ in range(4):
        both = [Checkout(before, case), Checkout(now, case)]
        if both[0].digest != both[1].digest:
            return f"| {case} | plays differ: {both[0].digest}, {both[1].digest} |"
        plays = max(1, round(seconds / min(both[0].seconds(1) for _ in range(3))))
        both[1].seconds(plays)
        for _ in range(pairs // 4):
            taken = {k: both[k].seconds(plays) for k in random.sample((0, 1), 2)}
            logs.append(math.log(taken[1] / taken[0]))
            spent += taken[0]
        for one in both:
            one.close()
    logs.sort()
    n = len(logs)
    k = max(0, int(n / 2 - 0.98 * math.sqrt(n)) - 1)  # of the binomial distribution
    median = [math.exp(x) for x in (float(np.median(logs)), logs[k], logs[n - 1 - k])]
    m, e = np.mean(logs), STUDENT * np.std(logs, ddof=1) / math.sqrt(n)
    mean = [math.exp(x) for x in (m, m - e, m + e)]
    return f"| {case} | {n} | {spent / n:.2f} | " + " | ".join(
        f"{a:.3f} [{b:.3f}, {c:.3f}]" for a, b, c in (median, mean)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("now", type=Path, nargs="?")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker)
        return
    print("| case | pairs | s | median now/before | mean |\n|---|---|---|---|---|", flush=True)
    for case in given.only:
        print(compare(case, given.before, given.now, given.pairs, given.seconds), flush=True)


if __name__ == "__main__":
    main()
