"""Whether a checkout is slower than another: the same plays, in turn, in one process of each.

    taskset -c 0 python benchmarks/before_after.py BEFORE NOW [--pairs 60] [--only "SCB n=10"]
    taskset -c 0 python benchmarks/before_after.py BEFORE NOW --goals  # 15 minutes

Turns are measured in CPU time, garbage collection disabled, compiled code loaded, the order within
a pair random. Each quarter of the pairs has new processes, as addresses in memory make a difference
of their own. Prints the median of the ratios NOW/BEFORE with its 95% interval (order
statistics). Both must play the same, and solve every program.

``--goals`` measures NOW against what it should be: against BEFORE, against pymab, and against the
same loop in C; then fresh processes: to compile, to the first decision, and with many states.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import random
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

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


def pymab(rounds: int = 20_000) -> Any:
    from pymab.policies import EXP3Policy

    def play() -> int:
        learner, rng, total = EXP3Policy(n_arms=10, gamma=0.1), np.random.default_rng(0), 0
        for _ in range(rounds):
            arm = learner.select_action(rng=rng)
            learner.update(action=arm, reward=0.1 * arm)
            total += arm
        return total

    return play


def replay(name: str, arms: int, rounds: int, **settings: Any) -> Any:
    """In C the same loop as SCB(profile="paper") in the simulator."""
    from bandits import c_loop, some_losses

    losses = some_losses(arms)
    if name == "C":
        with tempfile.TemporaryDirectory() as directory:
            loop = c_loop(Path(directory))
        return lambda: loop(losses, rounds)[0]
    import unbounded

    learner = getattr(unbounded, name)(arms, seed=0, **settings)
    options = {"seed": 0, "checkpoints": [rounds], "pseudo_regret": False, "workers": 1}
    against = unbounded.adversaries.Replay(losses)
    return lambda: unbounded.simulate(learner, against, rounds, **options).regret


def episodes(
    name: str, n: int = 4000, sizes: tuple[int, ...] = (5,) * 5, A: int = 4, **settings: Any
) -> Any:
    from unchanged import all_mdp_learners, make, mdp_adversary, unbounded, worlds

    mdp = worlds.dirichlet(list(sizes), A, np.random.default_rng(505))
    if name == "OREPS" or "explorer" in settings:
        settings["transitions"] = mdp.P
    learner = make(all_mdp_learners()[name], list(sizes), A, n, seed=0, **settings)
    losses, options = mdp_adversary("stochastic"), {"seed": 1, "checkpoints": [n], "workers": 1}

    def play() -> Any:
        result = unbounded.simulate_mdp(learner, mdp, losses, n, **options)
        assert not result.unsolved.any()
        return result.pseudo_regret

    return play


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
LARGE = {"n": 2000, "sizes": (1, 50, 50, 50, 1), "A": 10}
MORE: dict[str, Any] = {  # of the goals
    "SCB-RL, 5,5,4": lambda: episodes("SCBRL", 20_000),
    "CostSCBRL, 5,5,4": lambda: episodes("CostSCBRL", 20_000),
    "CostSCBRL, 152 states": lambda: episodes("CostSCBRL", **LARGE),
    "pymab": pymab,
    "C n=10": lambda: replay("C", 10, 300_000),
    "SCB replay n=10": lambda: replay("SCB", 10, 300_000, profile="paper"),
    "SCB replay n=100": lambda: replay("SCB", 100, 100_000),
    "AdaINF replay n=100": lambda: replay("AdaINF", 100, 100_000),
    "AdaINF replay n=10": lambda: replay("AdaINF", 10, 100_000),
    "SCB practical replay n=10": lambda: replay("SCB", 10, 100_000),
}


class Goal(NamedTuple):
    """A ratio of CPU times of two cases of as many rounds."""

    of: str
    to: str
    most: float  # that it should be


BEFORE = "before"  # the same case in the other checkout
GOALS = (
    Goal("SCB-RL, 5,5,4", BEFORE, 1 / 1.6),
    Goal("CostSCBRL, 5,5,4", BEFORE, 149 / 192),
    Goal("CostSCBRL, 152 states", BEFORE, 3.4 / 12),
    Goal("SCB ask+tell", "pymab", 1 / 5),
    Goal("SCB ask+tell", BEFORE, 1.0),
    Goal("SCB replay n=10", "C n=10", 1.0),
    Goal("AdaINF replay n=10", "SCB practical replay n=10", 1.3),
    Goal("AdaINF replay n=100", "SCB replay n=100", 1.3),
)


def worker(case: str) -> None:
    """Say what a play comes to; then, for each number that comes, play so often: CPU seconds."""
    play = (CASES | MORE)[case]()
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


def compare(
    cases: tuple[str, str], roots: list[Path], pairs: int, turn: float, quarters: int = 4
) -> str:
    """The median ratio of the second's time to the first's, each with its root, and interval."""
    logs: list[float] = []
    for _ in range(quarters):
        both: list[Any] = [begun(*one) for one in zip(roots, cases, strict=True)]
        plays_to = {one.stdout.readline() for one in both}
        assert cases[0] != cases[1] or len(plays_to) == 1, f"{cases}: plays differ, {plays_to}"
        one_play = [min(seconds(process, 1) for _ in range(3)) for process in both]
        plays = [max(1, round(turn / taken)) for taken in one_play]
        if roots[0] != roots[1]:
            plays[1] = plays[0]
        for _ in range(pairs // quarters):
            taken = {k: seconds(both[k], plays[k]) / plays[k] for k in random.sample((0, 1), 2)}
            logs.append(math.log(taken[1] / taken[0]))
        for process in both:
            process.communicate()
    return median(logs)


def median(logs: list[float]) -> str:
    """The median of ratios, and its 95% interval."""
    logs = sorted(logs)
    k = max(0, int(len(logs) / 2 - 0.98 * math.sqrt(len(logs))) - 1)  # of the binomial distribution
    low, middle, high = np.exp([logs[k], np.median(logs), logs[-1 - k]])
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def goals(roots: list[Path], pairs: int, turn: float) -> None:
    """Print what is reached of what should be."""
    print("| CPU time of | to that of | ratio | at most |\n|---|---|---|---|", flush=True)
    for of, to, most in GOALS:
        cases, places = ((of, of), roots) if to == BEFORE else ((to, of), [roots[1]] * 2)
        print(
            f"| {of} | {to} | {compare(cases, places, pairs, turn, 2)} | {most:.2f} |", flush=True
        )
    print("\n| fresh processes | now |\n|---|---|", flush=True)
    for what, found in processes(roots[1], 5):
        print(f"| {what} | {found} |", flush=True)
    print("\nbit for bit the same with all losses times 2^37:", ran(roots[1], SCALES)[0])


MANY = """
    import json, sys
    sys.argv = [""]
    import scb_rl_sizes as sizes
    sizes.PATIENCE = 0.0  # without UOB-REPS
    found = sizes.memory({S}, 5) if {memory} else sizes.times({S}, 5)
    assert not found.get("unsolved")
    print(json.dumps(found["peak"] if {memory} else 1e3 * found["SCB-RL"]))
"""
SCALES = """
    import numpy as np
    from unbounded import SCB, SCBRL, AdaINF, CostSCB, CostSCBRL, simulate, simulate_mdp, worlds
    from unbounded.adversaries import Replay
    from unbounded.adversaries.mdps import MDPReplay
    T, mdp, rng = 3000, worlds.dirichlet([5] * 5, 4, seed=1), np.random.default_rng(2)
    rows, losses = rng.random((T, 10)), rng.random((T, 5, 5, 4))
    def regret(learner, factor):
        options = {"seed": 3, "workers": 1, "checkpoints": 50}
        if learner in (SCBRL, CostSCBRL):
            one = learner([5] * 5, 4)
            found = simulate_mdp(one, mdp, MDPReplay(factor * losses), T, **options)
            assert not found.unsolved.any()
        else:
            found = simulate(learner(10), Replay(factor * rows), T, **options)
        return found.pseudo_regret / factor
    every = SCB, AdaINF, CostSCB, SCBRL, CostSCBRL
    print(int(all(np.array_equal(regret(one, 1.0), regret(one, 2.0**37)) for one in every)))
"""


def ran(root: Path, script: str, cache: str = "", jit: str = "always") -> list[float]:
    """The numbers that a script prints in a fresh process, and its CPU seconds."""
    text = textwrap.dedent(script) + "\nimport time\nprint(time.process_time())\n"
    path = os.pathsep.join(map(str, (root / "src", HERE)))
    env = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "UNBOUNDED_JIT": jit}
    if cache:
        env["UNBOUNDED_CACHE_DIR"] = cache
    done = subprocess.run(
        [sys.executable, "-c", text], check=True, stdout=subprocess.PIPE, text=True, env=env
    )
    return [float(number) for number in done.stdout.split()]


def processes(root: Path, turns: int) -> Any:
    """The first decision, compiling, memory and time with many states."""
    from start import COMPILE, COMPILED, ONE_SCB_RL, UNIT

    with tempfile.TemporaryDirectory() as cache:
        yield "compiling SCB-RL, CPU s", ran(root, COMPILE["SCB-RL"] + COMPILED, cache, "auto")[0]
        logs = []
        for _ in range(turns):
            unit = ran(root, UNIT)[-1]
            logs.append(math.log(ran(root, ONE_SCB_RL, cache, "auto")[-1] / unit))
        yield "first decision of SCB-RL, cached, to import numba", median(logs)
    for what, memory in (("ms an episode", False), ("peak MB", True)):
        for S in (500, 2000):
            found = ran(root, MANY.format(S=S, memory=memory))[0]
            yield f"SCB-RL, {S:,} states, 5 known successors: {what}", f"{found:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("roots", type=Path, nargs="*", metavar="BEFORE NOW")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker)
        return
    if given.goals:
        goals(given.roots, given.pairs, given.seconds)
        return
    print("| case | pairs | now/before |\n|---|---|---|", flush=True)
    for case in given.only:
        found = compare((case, case), given.roots, given.pairs, given.seconds)
        print(f"| {case} | {given.pairs} | {found} |", flush=True)


if __name__ == "__main__":
    main()
