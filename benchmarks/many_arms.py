"""Nanoseconds per round against the number of arms: SCB's lazy sampler, its dense solve, and C;
and AdaINF's beside SCB's.

For each adversary and n, the lazy loop plays T = max(n, 10^6) rounds from the start, anchors
included. Dense and C then play a window of rounds from the state where it ended. Times are CPU
times of this process; everything is done five times over, and the fastest counts (of each block of
2^14 rounds, where a play from the start is timed). A second table has the losses that force
anchors most often, where both loops play from the start; a third has AdaINF, lazy from the start
and dense in a window, and the lazy SCB of the same minutes.

    python benchmarks/many_arms.py [--arms 10 100 1000] [--figure FILE] [--only ada-inf]
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import PCG64

import unbounded.jit.interpreter as _interpret
from unbounded import SCB, AdaINF
from unbounded.adversaries import Adversary, Growth, StochasticGap, Switch
from unbounded.bandits import ada_inf
from unbounded.core.simplex import lazy, signed_arms, tsallis_arms
from unbounded.jit.kernel import counting_kernel as kernel
from unbounded.simulation.bandit_loops import loops
from unbounded.simulation.ledger import new_book

HERE = Path(__file__).resolve().parent
KEY = 12345
GAP = 0.2
PLAYS = 5
BLOCK = 1 << 14
WINDOW_SECONDS = 0.1
WINDOWS = 5
ARMS = [10, 30, 64, 100, 300, 1000, 10_000, 100_000, 1_000_000]


@kernel
def _constant(params: Any, state: Any, t: int, k: int) -> float:
    return params[0] if k == 0 else 1.0


class Constant(Adversary):
    """Arm 0 loses a little less than the others, always: x keeps rising, and anchors with it."""

    entry = _constant

    def params(self, n: int, rounds: int) -> Any:
        return (0.9,)


@kernel
def _rising(params: Any, state: Any, t: int, k: int) -> float:
    if t == 1:
        return 0.0
    return 0.9 if k == 0 else 1.0


class Rising(Adversary):
    """`Constant` with the range [0, 1] known from the start: x rises as fast as it can."""

    entry = _rising


@kernel
def _exploding(params: Any, state: Any, t: int, k: int) -> float:
    return (1.6 if t % 2 == 0 else -1.6) * 1.6 ** (t - 700.0)


class Exploding(Adversary):
    """Every loss is 1.6 times the last: eta falls so fast that every anchor is soon too old."""

    entry = _exploding


@kernel
def _climbing(params: Any, state: Any, t: int, k: int) -> float:
    return 1.6 ** (t - 700.0)


class Climbing(Adversary):
    """Every loss is 1.6 times the last, and positive: AdaINF anchors in almost all rounds."""

    entry = _climbing


def compile_c() -> Any:
    """The C loop, compiled for this machine."""
    folder = Path(tempfile.mkdtemp())
    flags = ["-O3", "-march=native", "-ffast-math", "-fPIC"]
    subprocess.run(["gcc", *flags, "-c", HERE / "many_arms.c", "-o", folder / "c.o"], check=True)
    # Linked without -ffast-math, which would make this whole process flush denormals to zero.
    subprocess.run(["gcc", "-shared", folder / "c.o", "-o", folder / "c.so", "-lm"], check=True)
    function = ctypes.CDLL(str(folder / "c.so")).many_arms
    number, integer, array = ctypes.c_double, ctypes.c_int64, np.ctypeslib.ndpointer(np.float64)
    function.argtypes = [
        integer, integer, integer, number, number, array, array,
        ctypes.c_int, number, ctypes.c_uint64, np.ctypeslib.ndpointer(np.uint64),
    ]  # fmt: skip
    function.restype = number
    return function


class Game:
    """A learner against an adversary, dense or lazy, with the simulator's compiled loop."""

    def __init__(
        self, n: int, adversary: Adversary, rounds: int, *, lazy: bool, cls: Any = SCB,
        **settings: Any,
    ) -> None:  # fmt: skip
        module = tsallis_arms if cls is SCB else signed_arms
        saved = module.MANY_ARMS
        module.MANY_ARMS = 1 if lazy else n + 1
        _interpret._mirrors.clear()  # learners begin in Python, where kernels see copies of names
        learner = cls(n, **({"profile": "paper"} if cls is SCB else {}), **settings)
        self.buffer = learner._fresh()
        module.MANY_ARMS = saved
        _interpret._mirrors.clear()
        self.params = learner._params
        self.packing = learner.spec.packing
        self.run_on_demand = loops(learner._variant).run_on_demand
        self.loss_of = adversary.loss_of()()
        self.losses_of, self.state = adversary.begin(n, rounds, KEY)
        self.comparators = np.zeros(0, dtype=np.int64)  # the C loop has no comparator either
        self.losses, self.cumulative, self.book = np.zeros(1), np.zeros(1), new_book()

    def play(self, words: np.ndarray, t: int) -> float:
        """Seconds for one round per word."""
        start = time.process_time()
        self.run_on_demand(
            self.buffer, words, t, self.loss_of, self.losses_of, self.state, self.comparators,
            self.book, self.cumulative, self.losses,
        )  # fmt: skip
        return time.process_time() - start

    @property
    def now(self) -> Any:
        """The learner's state; its vectors are views."""
        return self.packing.python.state(self.buffer)

    @property
    def anchors(self) -> int:
        return int(self.now.arms.picture[lazy.ANCHORS])

    def continue_from(self, other: Game) -> None:
        """Take over the state of a lazy game into this dense one."""
        self.packing.python.pack(self.buffer, other.now)
        if isinstance(self.now.arms, tsallis_arms.Arms):
            self.now.arms.L[:] = other.now.arms.table[lazy.LOSS :: lazy.RECORD]
            return
        state, M = self.now, other.now.arms.M
        state.largest[:], state.smallest[:] = other.now.largest, other.now.smallest
        state.arms.M[:] = M - M.min()
        beta = ada_inf.exploring(self.params, state.t)
        arms = signed_arms.solve(state.arms._replace(S=0.0), state.arms.S, beta)
        self.packing.python.pack(self.buffer, state._replace(arms=arms))


def play_all(
    n: int, adversary: Adversary, rounds: int, *, lazy: bool, **settings: Any
) -> tuple[Game, float]:
    """The same play from the start several times; seconds, block by block those of the fastest."""
    blocks = []
    for _ in range(PLAYS):
        game, bits = Game(n, adversary, rounds, lazy=lazy, **settings), PCG64(1)
        sizes = [min(BLOCK, rounds - t) for t in range(0, rounds, BLOCK)]
        blocks.append(
            [game.play(bits.random_raw(size), 1 + BLOCK * i) for i, size in enumerate(sizes)]
        )
    return game, float(np.min(blocks, axis=0).sum())


def worst(n: int, adversary: Adversary, rounds: int, **settings: Any) -> None:
    """A row of the tables of losses that force anchors."""
    seconds = {}
    for lazily in (False, True):
        Game(n, adversary, rounds, lazy=lazily, **settings).play(PCG64(1).random_raw(2), 1)
        game, seconds[lazily] = play_all(n, adversary, rounds, lazy=lazily, **settings)
    print(
        f"| {type(adversary).__name__} | {n:,} | {rounds:,} "
        f"| {game.anchors:,} | {1e9 * seconds[True] / rounds:,.0f} "
        f"| {1e9 * seconds[False] / rounds:,.0f} | {seconds[True] / seconds[False]:.2f} |",
        flush=True,
    )


def measure(n: int, name: str, adversary: Adversary, kind: int, parameter: float, c: Any) -> dict:
    """One row of the table."""
    rounds = max(n, 1_000_000)
    bits = PCG64(2)
    Game(n, adversary, rounds, lazy=True).play(bits.random_raw(2), 1)  # compiles
    lazily, seconds = play_all(n, adversary, rounds, lazy=True)
    t = rounds + 1
    dense = Game(n, adversary, rounds, lazy=False)
    dense.continue_from(lazily)
    dense.play(bits.random_raw(2), t)
    best = {"dense": np.inf, "c": np.inf}
    per_round = max(2e-7, 3e-9 * n)
    window = max(3, int(WINDOW_SECONDS / per_round))
    saved = dense.buffer.copy()
    arms, e = lazily.now.arms, lazily.now.window.e
    L_saved = arms.table[lazy.LOSS :: lazy.RECORD].copy()
    C = 0.5 * np.ldexp(lazily.now.window.W, e)
    words = bits.random_raw(window)
    for _ in range(WINDOWS):
        dense.buffer[:] = saved
        best["dense"] = min(best["dense"], dense.play(words, t) / window)
        L, q = np.ldexp(L_saved, e), np.empty(n)
        start = time.process_time()
        passes = c(n, window, t, C, np.ldexp(arms.anchor.x, e), L, q, kind, parameter, KEY, words)
        best["c"] = min(best["c"], (time.process_time() - start) / (window + 1))
    return {
        "adversary": name, "n": n, "rounds": rounds, "lazy": 1e9 * seconds / rounds,
        "dense": 1e9 * best["dense"], "c": 1e9 * best["c"], "passes": passes,
        "anchors": lazily.anchors,
        "floats_per_arm": (lazily.buffer.size - dense.buffer.size) / n + 2,
    }  # fmt: skip


def beside_scb(n: int, name: str, adversary: Adversary) -> None:
    """A row of the third table."""
    rounds, bits, seconds = max(n, 1_000_000), PCG64(2), {}
    for cls in (SCB, AdaINF):
        Game(n, adversary, rounds, lazy=True, cls=cls).play(bits.random_raw(2), 1)  # compiles
        lazily, seconds[cls] = play_all(n, adversary, rounds, lazy=True, cls=cls)
    dense = Game(n, adversary, rounds, lazy=False, cls=AdaINF)
    dense.continue_from(lazily)
    dense.play(bits.random_raw(2), rounds + 1)
    window, saved = max(3, int(WINDOW_SECONDS / max(3e-7, 5e-9 * n))), dense.buffer.copy()
    words, best = bits.random_raw(window), np.inf
    for _ in range(WINDOWS):
        dense.buffer[:] = saved
        best = min(best, dense.play(words, rounds + 1) / window)
    scb, ada = (1e9 * seconds[cls] / rounds for cls in (SCB, AdaINF))
    print(
        f"| {name} | {n:,} | {ada:,.0f} | {lazily.anchors:,} | {1e9 * best:,.0f} | {scb:,.0f} "
        f"| {1e9 * best / ada:,.1f} | {ada / scb:.2f} |",
        flush=True,
    )


def adversaries(rounds: int) -> list[tuple[str, Adversary, int, float]]:
    return [
        ("stochastic", StochasticGap(GAP), 0, GAP),
        ("switch", Switch(), 1, 0.5 * rounds),
        ("constant", Constant(), 2, 0.9),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, nargs="+", default=ARMS)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--only", choices=["scb", "ada-inf"], help="one learner's tables")
    arguments = parser.parse_args()
    if arguments.only != "ada-inf":
        tables_of_scb(arguments.arms, arguments.figure)
    if arguments.only != "scb":
        print("\n| adversary | n | lazy ns | anchors | dense ns | SCB ns ", end="")
        print("| dense / lazy | lazy / SCB |")
        print("|---|---|---|---|---|---|---|---|")
        for n in arguments.arms:
            for name, adversary, *_ in adversaries(max(n, 1_000_000)):
                beside_scb(n, name, adversary)
            beside_scb(n, "growth", Growth())
        print("\n| adversary | n | rounds | anchors | lazy ns | dense ns | lazy / dense |")
        print("|---|---|---|---|---|---|---|")
        for n in (128, 10_000):
            worst(n, Exploding(), 1400, cls=AdaINF)
            worst(n, Climbing(), 1400, cls=AdaINF)


def tables_of_scb(arms: list[int], figure: Path | None) -> None:
    """Against a dense solve and C; and the losses that force anchors."""
    c = compile_c()
    rows = []
    print("| adversary | n | lazy ns | anchors | dense ns | C ns | dense / lazy | C / lazy |")
    print("|---|---|---|---|---|---|---|---|")
    for n in arms:
        for name, adversary, kind, parameter in adversaries(max(n, 1_000_000)):
            row = measure(n, name, adversary, kind, parameter, c)
            rows.append(row)
            print(
                f"| {name} | {n:,} | {row['lazy']:,.0f} | {row['anchors']:,} | {row['dense']:,.0f} "
                f"| {row['c']:,.0f} | {row['dense'] / row['lazy']:.2f} "
                f"| {row['c'] / row['lazy']:.1f} |",
                flush=True,
            )
    if figure:
        draw(rows, figure)
    print("\n| adversary | n | rounds | anchors | lazy ns | dense ns | lazy / dense |")
    print("|---|---|---|---|---|---|---|")
    for n in (100, 10_000):
        worst(n, Rising(), 1000 * 100_000 // n, clip="range", rate=2.0)
        worst(n, Exploding(), 1400, clip="range", rate=2.0)


def draw(rows: list[dict], path: Path) -> None:
    """Cost against the number of arms."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "many-arms"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    rows = [row for row in rows if row["adversary"] == "stochastic"]
    n = [row["n"] for row in rows]
    axes.loglog(n, [row["dense"] for row in rows], "s--", color="0.55", label="dense solve")
    axes.loglog(n, [row["c"] for row in rows], "o--", color="tab:orange", label="C loop")
    axes.loglog(n, [row["lazy"] for row in rows], "o-", color="tab:blue", label="lazy sampler")
    axes.axvline(tsallis_arms.MANY_ARMS, color="0.8", lw=1, zorder=0)
    axes.text(tsallis_arms.MANY_ARMS * 1.1, 5e5, "lazy from here on", color="0.4", size="small")
    axes.set_xlabel("arms")
    axes.set_ylabel("nanoseconds per round")
    axes.set_title("SCB, stochastic losses: cost of an exact round")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
