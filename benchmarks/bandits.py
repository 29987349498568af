"""Speed of the bandit learners, as ratios measured in one interleaved run.

1. ask + tell against the Exp3 of River and of pymab;
2. the simulator against the same loop in C (scb_loop.c, gcc -O3);
3. cost per round against the number of arms;
4. a fresh process: import and first decision with a warm cache;
5. AdaINF against SCB, in the simulator and by ask + tell, in time of the processor;
6. CostSCB and AdaINF with a half-life against themselves without, likewise.

Every pair is timed in turns, and each figure is the median over the turns: machines are shared.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from unbounded import SCB, SCBIX, AdaINF, CostSCB, Exp3, settings, simulate
from unbounded.adversaries import Replay, StochasticGap
from unbounded.learners.bandit import Learner

settings.jit = "always"  # compiled code is what is measured


Clock = Callable[[], float]


def seconds(action: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    start = clock()
    action()
    return clock() - start


def interleaved(
    actions: dict[str, Callable[[], object]], turns: int, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Time each action once a turn, after a first time that does not count."""
    for action in actions.values():
        action()
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(turns):
        for name, action in actions.items():
            times[name].append(seconds(action, clock))
    return times


def ratio(times: dict[str, list[float]], a: str, b: str) -> float:
    """The median over the turns of time a / time b."""
    return statistics.median(x / y for x, y in zip(times[a], times[b], strict=True))


def ask_and_tell(turns: int) -> None:
    from pymab.policies import EXP3Policy
    from river import bandit

    print("\n1. ask + tell, microseconds per round (median), and peer / SCB")
    for n in (10, 100):
        rounds = 2000
        rewards = np.random.default_rng(0).random((rounds, n)).tolist()
        ours: dict[str, Callable[[], object]] = {}
        for learner in (SCB(n, seed=0), SCBIX(n, seed=0), Exp3(n, seed=0)):

            def play(learner=learner, losses=rewards):
                for row in losses:
                    choice = learner.ask()
                    learner.tell(choice, row[choice.arm])

            ours[learner.spec.name] = play
        arms = list(range(n))
        river = bandit.Exp3(gamma=0.1, seed=0)

        def play_river(policy=river, arms=arms, rewards=rewards):
            for row in rewards:
                arm = policy.pull(arms)
                policy.update(arm, row[arm])

        pymab, rng = EXP3Policy(n_arms=n, gamma=0.1), np.random.default_rng(0)

        def play_pymab(policy=pymab, rng=rng, rewards=rewards):
            for row in rewards:
                arm = policy.select_action(rng=rng)
                policy.update(action=arm, reward=row[arm])

        times = interleaved(ours | {"River Exp3": play_river, "pymab EXP3": play_pymab}, turns)
        for name, values in times.items():
            peer = f"   {ratio(times, name, 'SCB'):5.1f}x" if name not in ours else ""
            print(f"   n = {n:<4} {name:<11} {1e6 * statistics.median(values) / rounds:7.2f}{peer}")


def c_loop(directory: Path) -> Callable[..., np.ndarray]:
    library = directory / "scb_loop.so"
    source = Path(__file__).with_name("scb_loop.c")
    subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).scb_loop
    pointer = np.ctypeslib.ndpointer(dtype=np.float64, flags="C")
    integer = ctypes.c_int64
    function.argtypes = [integer, integer, pointer, integer, ctypes.c_uint64, pointer]
    function.restype = None

    def play(losses: np.ndarray, rounds: int, seed: int = 1) -> np.ndarray:
        out = np.zeros(4)
        function(losses.shape[1], rounds, losses, losses.shape[0], seed, out)
        return out

    return play


def some_losses(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    losses = (rng.random((64, n)) < 0.5).astype(float)
    losses[:, 0] *= rng.random(64) < 0.8
    return losses


def simulator_against_c(turns: int) -> None:
    print("\n2. simulator / C (gcc -O3), SCB against a replayed matrix, ns per round (median)")
    with tempfile.TemporaryDirectory() as directory:
        play_c = c_loop(Path(directory))
        for n, rounds in ((10, 300_000), (100, 60_000), (1000, 10_000), (10_000, 2000)):
            losses = some_losses(n)
            passes = play_c(losses, rounds)[2]

            def ours(n=n, rounds=rounds, losses=losses):
                simulate(
                    SCB(n, profile="paper"), Replay(losses), rounds, seed=0, checkpoints=[rounds],
                    pseudo_regret=False,
                )  # fmt: skip

            def c(rounds=rounds, losses=losses):
                play_c(losses, rounds)

            times = interleaved({"ours": ours, "C": c}, turns)
            ns = {k: 1e9 * statistics.median(v) / rounds for k, v in times.items()}
            print(
                f"   n = {n:<6} ours {ns['ours']:10.0f}   C {ns['C']:10.0f} "
                f"({passes:.1f} Newton passes)   ratio {ratio(times, 'ours', 'C'):.2f}"
            )


def cost_against_n(turns: int) -> None:
    print("\n3. cost per round against n, ns (median)")
    for n in (10, 100, 1000, 10_000, 100_000, 1_000_000):
        rounds = max(20, min(100_000, 3_000_000 // n))
        losses = some_losses(n)[: max(1, min(64, 4_000_000 // n))]

        def play(n=n, rounds=rounds, losses=losses):
            simulate(
                SCB(n, profile="paper"),
                Replay(losses),
                rounds,
                seed=0,
                checkpoints=[rounds],
                pseudo_regret=False,
            )

        ns = 1e9 * statistics.median(interleaved({"SCB": play}, turns)["SCB"]) / rounds
        print(f"   n = {n:<9,} {ns:14,.0f}   {ns / n:8.2f} per arm")


def fresh_process(turns: int) -> None:
    program = "from unbounded import SCB; l = SCB(10, seed=0); l.tell(l.ask(), 1.0)"
    times = interleaved(
        {"SCB": lambda: subprocess.run([sys.executable, "-c", program], check=True),
         "import numba": lambda: subprocess.run([sys.executable, "-c", "import numba"], check=True),
        }, turns)  # fmt: skip
    print("\n4. fresh process with a warm cache, seconds (median)")
    for name, values in times.items():
        print(f"   {name:<14} {statistics.median(values):.2f}")


def one_against_another(
    number: int,
    turns: int,
    makers: dict[str, Callable[..., Any]],
    sizes: Sequence[tuple[int, int]],
) -> None:
    """Print the time of the second learner over that of the first, in ns per round."""
    first, second = makers
    print(f"\n{number}. {second} / {first}, ns per round of the processor's time (median)")
    for n, rounds in sizes:
        losses = some_losses(n)
        simulations: dict[str, Callable[[], object]] = {}
        asks: dict[str, Callable[[], object]] = {}
        for name, make in makers.items():
            learner, rows = make(n, seed=0), losses.tolist()

            def in_simulator(make=make, n=n, rounds=rounds, losses=losses):
                simulate(
                    make(n), Replay(losses), rounds, seed=0, checkpoints=[rounds],
                    pseudo_regret=False, workers=1,
                )  # fmt: skip

            def by_asking(learner=learner, rows=rows):
                for _ in range(30):
                    for row in rows:
                        choice = learner.ask()
                        learner.tell(choice, row[choice.arm])

            simulations[name] = in_simulator
            asks[name] = by_asking
        for what, actions, count in (
            ("simulator", simulations, rounds),
            ("ask + tell", asks, 30 * len(losses)),
        ):
            times = interleaved(actions, turns, time.process_time)
            ns = {k: 1e9 * statistics.median(v) / count for k, v in times.items()}
            print(
                f"   n = {n:<6} {what:<11} {first} {ns[first]:7.0f}   {second} {ns[second]:7.0f}   "
                f"ratio {ratio(times, second, first):.2f}"
            )


def ada_inf_against_scb(turns: int) -> None:
    sizes = ((2, 100_000), (10, 100_000), (100, 30_000), (1000, 5000))
    one_against_another(5, turns, {"SCB": SCB, "AdaINF": AdaINF}, sizes)


def forgetting_against_not(turns: int) -> None:
    """The same coins for both; of many arms only the arm played and one other are looked at."""
    print("\n6. with a half-life / without, time of the processor (median, least, most)")
    print("| learner | n | half-life | gap | simulated | ask + tell |\n|---|---|---|---|---|---|")
    few = [(10, h, gap) for h in (1000, 10_000) for gap in (0.0, 0.1, 0.4)]
    for cls in (CostSCB, AdaINF):
        for n, h, gap in (*few, (100_000, 100_000, 0.1)):
            losses = StochasticGap(gap)
            rounds = max(100_000, 10 * h if n > 10 else 0)
            cells = []
            for how in (simulated, asked):
                if n > 10 and how is asked:
                    continue
                learners = {"without": cls(n, seed=0), "with": cls(n, half_life=h, seed=0)}
                plays = {k: partial(how, one, losses, rounds) for k, one in learners.items()}
                times = interleaved(plays, turns, time.process_time)
                found = sorted(x / y for x, y in zip(times["with"], times["without"], strict=True))
                cells.append(f"{statistics.median(found):.2f} [{found[0]:.2f}, {found[-1]:.2f}]")
            cells += [""] * (2 - len(cells))
            print(f"| {cls.__name__} | {n:,} | {h:,} | {gap} | {' | '.join(cells)} |", flush=True)


def simulated(learner: Learner, losses: StochasticGap, rounds: int) -> None:
    simulate(
        learner, losses, rounds, seed=1, checkpoints=[rounds], comparators=[0],
        pseudo_regret=False, workers=1,
    )  # fmt: skip


def asked(learner: Learner, losses: StochasticGap, rounds: int) -> None:
    for u in np.random.default_rng(1).random(rounds // 5).tolist():
        choice = learner.ask()
        learner.tell(choice, float(u < (0.5 - losses.gap if choice.arm == 0 else 0.5)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--only", type=int, help="one of the six")
    given = parser.parse_args()
    turns = given.turns
    parts = (
        partial(ask_and_tell, turns), partial(simulator_against_c, turns),
        partial(cost_against_n, max(3, turns // 3)), partial(fresh_process, max(3, turns // 2)),
        partial(ada_inf_against_scb, turns), partial(forgetting_against_not, turns),
    )  # fmt: skip
    for number, part in enumerate(parts, 1):
        if given.only in (None, number):
            part()
