"""Whether a checkout is slower than another: the same plays, in turn, in one process of each.

    taskset -c 0 python benchmarks/before_after.py BEFORE NOW [--pairs 60] [--only "SCB n=10"]

Turns are measured in CPU time, garbage collection disabled, compiled code loaded, the order within
a pair random. Each quarter of the pairs has new processes, as addresses in memory make a difference
of their own. Prints the median of the ratios NOW/BEFORE with its 95% interval (order
statistics). Both must play the same.
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


def bandit(name: str, arms: int, rounds: int) -> Any:
    from unchanged import adversaries, unbounded

    learner, losses = getattr(unbounded, name)(arms, seed=0), adversaries.StochasticGap()
    options = {"seed": 1, "checkpoints": [rounds], "workers": 1, "comparators": [0]}
    options["pseudo_regret"] = False
    return lambda: unbounded.simulate(learner, losses, rounds, **options).regret


def ask_and_tell(rounds: int = 20_000) -> Any:
    from unchanged import unbounded

    def play() -> int:
        learner, total = unbounded.SCB(10, seed=0), 0
        for _ in range(rounds):
            choice = learner.ask()
            learner.tell(choice, 1.0 + choice.arm)
            total += choice.arm
        return total

    return play


def episodes(name: str, n: int = 4000, **settings: Any) -> Any:
    from unchanged import all_mdp_learners, make, mdp_adversary, unbounded, worlds

    mdp = worlds.dirichlet([5] * 5, 4, np.random.default_rng(505))
    if name == "OREPS" or "explorer" in settings:
        settings["transitions"] = mdp.P
    learner = make(all_mdp_learners()[name], [5] * 5, 4, n, seed=0, **settings)
    losses, options = mdp_adversary("stochastic"), {"seed": 1, "checkpoints": [n], "workers": 1}
    return lambda: unbounded.simulate_mdp(learner, mdp, losses, n, **options).pseudo_regret


def solves(size: tuple[int, int, int], regime: str, n: int, cold: bool = False) -> Any:
    import unbounded

    sys.path.insert(0, str(Path(unbounded.__file__).parents[2] / "benchmarks"))
    from occupancy import Sequence  # the checkout's own

    sequence = Sequence(size, regime, 1, n)
    return lambda: sequence.run(sequence.Ls, cold=cold, repeat=1)[1]


CASES: dict[str, Any] = {
    "SCB n=10": lambda: bandit("SCB", 10, 1_000_000),
    "SCB ask+tell": ask_and_tell,
    "CostSCB n=10": lambda: bandit("CostSCB", 10, 1_000_000),
    "AdaINF n=10": lambda: bandit("AdaINF", 10, 1_000_000),
    "SCB 1e5 arms": lambda: bandit("SCB", 100_000, 1_000_000),
    "AdaINF 1e5 arms": lambda: bandit("AdaINF", 100_000, 400_000),
    "SCBRL practical": lambda: episodes("SCBRL"),
    "SCBRL paper": lambda: episodes("SCBRL", profile="theory"),
    "SCBRL paper, playing": lambda: episodes("SCBRL", 2000, profile="theory", explorer="oracle"),
    "UOB-REPS": lambda: episodes("UOBREPS"),
    "O-REPS": lambda: episodes("OREPS"),
    "CostSCBRL": lambda: episodes("CostSCBRL"),
    "solves 5,5,4 loose": lambda: solves((5, 5, 4), "loose", 300),
    "solves 5,10,4 tight x10": lambda: solves((5, 10, 4), "tight x10", 150),
    "solves 3,5,4 cold": lambda: solves((3, 5, 4), "tight", 60, cold=True),
}


def worker(case: str) -> None:
    """Say what a play comes to; then, for each number that comes, play so often: CPU seconds."""
    play = CASES[case]()
    print(float(np.sum(play())), flush=True)  # loads or compiles
    gc.disable()
    for line in sys.stdin:
        start = time.process_time()
        for _ in range(int(line)):
            play()
        print(time.process_time() - start, flush=True)
        gc.collect()


def begun(root: Path, case: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(map(str, (root / "src", HERE, root / "tests")))
    env = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "UNBOUNDED_JIT": "always"}
    command, pipe = [sys.executable, __file__, "--worker", case], subprocess.PIPE
    return subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, env=env)


def seconds(process: Any, plays: int) -> float:
    print(plays, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def compare(case: str, roots: list[Path], pairs: int, turn: float) -> str:
    logs: list[float] = []
    for _ in range(4):
        both: list[Any] = [begun(root, case) for root in roots]
        plays_to = {one.stdout.readline() for one in both}
        assert len(plays_to) == 1, f"{case}: plays differ, {plays_to}"
        plays = max(1, round(turn / min(seconds(both[0], 1) for _ in range(3))))
        for _ in range(pairs // 4):
            taken = {k: seconds(both[k], plays) for k in random.sample((0, 1), 2)}
            logs.append(math.log(taken[1] / taken[0]))
        for one in both:
            one.communicate()
    logs.sort()
    k = max(0, int(len(logs) / 2 - 0.98 * math.sqrt(len(logs))) - 1)  # of the binomial distribution
    low, middle, high = np.exp([logs[k], np.median(logs), logs[-1 - k]])
    return f"| {case} | {len(logs)} | {middle:.3f} [{low:.3f}, {high:.3f}] |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("roots", type=Path, nargs="*", metavar="BEFORE NOW")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker)
        return
    print("| case | pairs | now/before |\n|---|---|---|", flush=True)
    for case in given.only:
        print(compare(case, given.roots, given.pairs, given.seconds), flush=True)


if __name__ == "__main__":
    main()
