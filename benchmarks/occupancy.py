"""The occupancy solver against cvxpy + Clarabel, in one process and one thread.

    python benchmarks/occupancy.py             # everything, about half an hour
    python benchmarks/occupancy.py --quick     # small sizes, a few minutes
    python benchmarks/occupancy.py --json out.json

Sequences are recorded from the algorithm's own loop (FTRL, sampled trajectories, upper occupancy
bounds, implicit exploration) and replayed; only performed solves are counted. Times are CPU time
of this thread. *loose*: counts 300-6k, T = 1e5; *tight*: counts 3e4-6e5, T = 1e6; *tight x10*: the
same with losses ten times as large at the same weights. Needs cvxpy, clarabel and scipy.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

# One thread each, set before NumPy loads; the reference programs are among the tests. Hence imports
# that are not at the top.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np  # noqa: E402

from occupancy_facades import ConfidenceSet, OccupancyFTRL, episode, u_visited  # noqa: E402
from occupancy_reference import (  # noqa: E402
    Program,
    clarabel_problem,
    cvxpy_problem,
    fill_counts,
    objective,
    random_instance,
)
from unbounded import worlds  # noqa: E402
from unbounded.core.occupancy.layout import ACTIONS, PAIR, Layers, horizon  # noqa: E402
from unbounded.core.occupancy.solver import FALLBACK, SOLVED  # noqa: E402
from unbounded.core.occupancy.solver.ftrl import EMPTY, KIND, new_memory, solve  # noqa: E402
from unbounded.core.occupancy.solver.work import work_size  # noqa: E402
from unbounded.core.occupancy.upper import scratch, spare_mass  # noqa: E402
from unbounded.jit.kernel import counting_kernel as kernel  # noqa: E402

SIZES = [(2, 3, 2), (3, 5, 4), (5, 5, 4), (5, 10, 4), (8, 10, 5), (8, 20, 8), (5, 50, 4)]
REGIMES = {
    "loose": (300, 6e3, 1e5, 1.0),
    "tight": (3e4, 6e5, 1e6, 1.0),
    "tight x10": (3e4, 6e5, 1e6, 10.0),
}
TUNING_SEEDS = {0, 3}  # constants were looked at on these; nothing below uses them
TOLERANCE = 1e-8
GAP, STEPS, METHOD, STATUS = range(4)  # columns of what is kept of every solve
clock = time.thread_time


@kernel
def keep(outcome, row):
    row[GAP] = outcome.gap_over_least
    row[STEPS] = outcome.steps
    row[METHOD] = outcome.method
    row[STATUS] = outcome.status


@kernel
def record(
    lay, P, lo, hi, room, losses, words, eta, w, memory, buffer, work, order, Ls, states, kept
):
    """Play the algorithm's loop and keep every L that was solved, and where it led."""
    T, X = Ls.shape
    H = horizon(lay)
    L = np.zeros(X)
    q = np.zeros(X)
    pi = np.zeros(X)
    actions = np.zeros(H, np.int64)
    u = np.zeros(H)
    for t in range(T):
        Ls[t] = L
        keep(solve(lay, lo, hi, 1, L, w, 1e-8, memory, buffer, q, pi), kept[t])
        episode(lay, P, pi, words[t], states[t], actions)
        u_visited(lay, lo, hi, room, pi, states[t], u, work, order)
        for h in range(H):
            p = lay[PAIR, h + 1] + states[t, h] * lay[ACTIONS, h + 1] + actions[h]
            L[p] += losses[t, p] / (u[h] * pi[p] + eta)
    return pi


@kernel
def replay(lay, lo, hi, Ls, w, cold, memory, buffer, q, pi, kept):
    for t in range(Ls.shape[0]):
        if cold:
            memory.head[KIND] = EMPTY
        keep(solve(lay, lo, hi, 1, Ls[t], w, 1e-8, memory, buffer, q, pi), kept[t])


@kernel
def bounds_only(lay, lo, hi, room, pi, states, u, work, order):
    for t in range(states.shape[0]):
        u_visited(lay, lo, hi, room, pi, states[t], u, work, order)


class Sequence:
    """A recorded run: its sets, weights and the losses that were solved."""

    def __init__(self, size, regime, seed, n):
        H, states, A = size
        low, high, T, factor = REGIMES[regime]
        rng = np.random.default_rng([seed, H, states, A])
        mdp = worlds.dirichlet([states] * H, A, rng)
        self.layers = mdp.layers
        lay, S = mdp.layers.table, H * states
        sets = ConfidenceSet(mdp.layers, int(T), 0.05)
        fill_counts(sets, mdp, rng, lambda p: np.exp(rng.uniform(np.log(low), np.log(high))))
        self.lo, self.hi = sets.lo, sets.hi
        eta = np.sqrt(H * np.log(S * A * T / 0.05) / (S * A * T))
        self.w = np.full(H, 1.0 / eta)
        means = rng.random(self.layers.n_pairs)
        losses = 0.5 * factor * (means + rng.random((n, self.layers.n_pairs)))
        words = rng.bit_generator.random_raw(n * 2 * H).reshape(n, 2 * H)
        self.room = np.empty(self.layers.n_pairs)
        spare_mass(lay, self.lo, self.room)
        self.work, self.order = scratch(self.layers)
        self.buffer = np.empty(work_size(lay))
        self.Ls = np.empty((n, self.layers.n_pairs))
        self.states = np.empty((n, H), np.int64)
        self.kept = np.zeros((n, 4))
        self.pi = record(
            lay, mdp.P, self.lo, self.hi, self.room, losses, words, eta, self.w,
            new_memory(self.layers), self.buffer, self.work, self.order, self.Ls, self.states,
            self.kept,
        )  # fmt: skip

    def run(self, Ls, cold=False, repeat=3):
        """Seconds a solve (best of ``repeat`` replays) and the certificates."""
        kept = np.zeros((len(Ls), 4))
        q, pi = np.empty(self.layers.n_pairs), np.empty(self.layers.n_pairs)
        best = np.inf
        for _ in range(repeat):
            memory = new_memory(self.layers)
            start = clock()
            replay(
                self.layers.table, self.lo, self.hi, Ls, self.w, cold, memory, self.buffer, q, pi,
                kept,
            )  # fmt: skip
            best = min(best, clock() - start)
        return best / len(Ls), kept

    def bounds_seconds(self):
        u = np.empty(self.layers.horizon)
        args = (
            self.layers.table,
            self.lo,
            self.hi,
            self.room,
            self.pi,
            self.states,
            u,
            self.work,
            self.order,
        )
        best = np.inf
        for _ in range(20):  # short ones
            start = clock()
            bounds_only(*args)
            best = min(best, clock() - start)
        return best / len(self.states)


def reference_seconds(sequence, Ls, direct, through_cvxpy):
    """Median seconds of Clarabel called directly and of DPP-cached cvxpy, and the worst error."""
    program = Program(sequence.layers, sequence.lo, sequence.hi)
    scale = sequence.w.max()
    times, cached, errors = [], [], []
    solver = OccupancyFTRL(sequence.layers, sequence.lo, sequence.hi)
    for L in Ls[:direct]:
        start = clock()
        result = clarabel_problem(program, L, sequence.w, TOLERANCE).solve()
        times.append(clock() - start)
        F = objective(sequence.layers, L / scale, sequence.w / scale, solver.solve(L, sequence.w).q)
        errors.append((abs(F - result.obj_val), str(result.status)))
    if through_cvxpy:
        problem, L_parameter, w_parameter, _ = cvxpy_problem(program)
        w_parameter.value = program.pair_weights(sequence.w / scale)
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        for k, L in enumerate([Ls[0], *Ls[:through_cvxpy]]):
            L_parameter.value = L[1:] / scale
            start = clock()
            problem.solve(
                solver="CLARABEL", tol_gap_abs=TOLERANCE, tol_gap_rel=TOLERANCE, tol_feas=TOLERANCE,
                max_threads=1,
            )  # fmt: skip
            if k:  # the first one compiles
                cached.append(clock() - start)
    return np.median(times), np.median(cached) if cached else np.nan, errors


def table(sizes, samples, n, seed=1):
    print(
        "\n## Warm and cold solves against Clarabel (medians; one thread; certified 1e-8 w_min)\n"
    )
    print(
        "| H,n,A | regime | jump/w | cvxpy ms | Clarabel ms | cold ms | warm us | Newton steps | "
        "warm vs cvxpy | warm vs Clarabel | cold vs Clarabel | Comp-UOB/warm |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for size, (k_direct, k_cvxpy) in zip(sizes, samples, strict=True):
        for regime in REGIMES if k_cvxpy > 1 else ("loose", "tight x10"):
            sequence = Sequence(size, regime, seed, n if size[1] < 50 else n // 4)
            warm, kept = sequence.run(sequence.Ls)
            picks = sequence.Ls[
                np.linspace(len(sequence.Ls) // 4, len(sequence.Ls) - 1, 12).astype(int)
            ]
            cold, cold_kept = sequence.run(picks, cold=True)
            direct, cached, errors = reference_seconds(sequence, picks[::-1], k_direct, k_cvxpy)
            uob = sequence.bounds_seconds()
            jump = np.diff(sequence.Ls, axis=0).max() / sequence.w[0]
            row = {
                "size": size, "regime": regime, "jump": jump, "cvxpy": cached, "clarabel": direct,
                "cold": cold, "warm": warm, "steps": kept[1:, STEPS].mean(), "uob": uob / warm,
                "fallbacks": int(np.sum(kept[:, METHOD] == FALLBACK)),
                "worst_gap": kept[:, GAP].max(), "cold_gap": cold_kept[:, GAP].max(),
                "error": max((e for e, s in errors if s == "Solved"), default=np.nan),
                "solves": len(kept), "solved": sum(s == "Solved" for _, s in errors),
            }  # fmt: skip
            rows.append(row)
            print(
                f"| {','.join(map(str, size))} | {regime} | {jump:.2f} | {cached * 1e3:.1f} | "
                f"{direct * 1e3:.2f} | {cold * 1e3:.3f} | {warm * 1e6:.1f} | {row['steps']:.1f} | "
                f"{cached / warm:.0f} | {direct / warm:.0f} | {direct / cold:.0f} | "
                f"{100 * row['uob']:.1f}% |",
                flush=True,
            )
    ratios = np.array([r["cvxpy"] / r["warm"] for r in rows])
    print(
        f"\nwarm vs cvxpy: least {np.nanmin(ratios):.0f}x, median {np.nanmedian(ratios):.0f}x; "
        f"cold vs Clarabel: least {min(r['clarabel'] / r['cold'] for r in rows):.0f}x"
    )
    print(
        f"worst certified gap / w_min: {max(r['worst_gap'] for r in rows):.1e}; "
        f"largest |F - Clarabel|/w_max where Solved: {np.nanmax([r['error'] for r in rows]):.1e}; "
        f"fallbacks {sum(r['fallbacks'] for r in rows)} of {sum(r['solves'] for r in rows)}"
    )
    return rows


def reliability(sizes, seeds, n):
    assert not TUNING_SEEDS & set(seeds)
    print("\n## Fallbacks to the interior point method (seeds not used for tuning)\n")
    total = fallbacks = unsolved = 0
    for size in sizes:
        for regime in REGIMES:
            for seed in seeds:
                kept = Sequence(size, regime, seed, n).kept[1:]
                total += len(kept)
                fallbacks += int(np.sum(kept[:, METHOD] == FALLBACK))
                unsolved += int(np.sum(kept[:, STATUS] < SOLVED))
    print(
        f"sequences: {fallbacks} of {total} ({100 * fallbacks / total:.3f}%), unsolved {unsolved}",
        flush=True,
    )
    hard_total = hard_fallbacks = hard_unsolved = 0
    spreads = []
    for seed in seeds:
        rng = np.random.default_rng([seed, 77])
        for _ in range(60):
            mdp, lo, hi, L, w = random_instance(rng, max_states=15, max_actions=6)
            L *= 10 ** rng.uniform(0, 1)
            spreads.append(L.max() / w.max())
            solver = OccupancyFTRL(mdp.layers, lo, hi)
            solver.solve(L, w)
            for _ in range(15):
                for h in range(1, mdp.layers.horizon + 1):
                    s = rng.integers(mdp.layers.sizes[h - 1])
                    a = rng.integers(mdp.layers.n_actions)
                    L[mdp.layers.index(h, s, a)] += rng.exponential(0.1) * w[h - 1]
                certificate = solver.solve(L, w).certificate
                if certificate.method == "closed form":
                    continue
                hard_total += 1
                hard_fallbacks += certificate.method == "fallback"
                hard_unsolved += not certificate.solved
    print(
        f"hard set: {hard_fallbacks} of {hard_total} ({100 * hard_fallbacks / hard_total:.2f}%), "
        f"unsolved {hard_unsolved}; L/w up to {np.median(spreads):.0f} (median), {max(spreads):.0f}"
    )
    return {
        "sequences": [fallbacks, total, unsolved],
        "hard": [hard_fallbacks, hard_total, hard_unsolved],
    }


def growth(n):
    print("\n## Growth of a warm solve, time ~ size^exponent (geometric mean over 3 seeds)\n")
    out = {}
    for regime in ("loose", "tight"):
        for name, sizes, axis in (
            ("n", [(5, k, 4) for k in (5, 10, 20, 40)], 1),
            ("A", [(5, 10, k) for k in (2, 4, 8, 16)], 2),
            ("H", [(k, 10, 4) for k in (2, 4, 8, 16)], 0),
        ):
            times, steps = np.zeros(4), np.zeros(4)
            for k, size in enumerate(sizes):
                for seed in (1, 2, 4):
                    sequence = Sequence(size, regime, seed, n)
                    seconds, kept = sequence.run(sequence.Ls)
                    times[k] += np.log(seconds) / 3
                    steps[k] += np.log(max(kept[1:, STEPS].mean(), 0.1)) / 3
            x = np.log([s[axis] for s in sizes])
            whole = np.polyfit(x, times, 1)[0]
            step = np.polyfit(x, times - steps, 1)[0]
            out[f"{regime} {name}"] = [whole, step]
            each = ", ".join(f"{1e6 * t:.0f} us" for t in np.exp(times))
            print(
                f"- {regime}, {name}: {whole:.2f} a solve, {step:.2f} a Newton step ({each})",
                flush=True,
            )
    return out


def peak_megabytes():
    """High-water mark of this process (ru_maxrss would count the parent's, before exec)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def one_big_solve(H=10, n=100, A=4):
    print(f"\n## One solve at H = {H}, {n} states per layer, A = {A}\n")
    rng = np.random.default_rng(5)
    mdp = worlds.dirichlet([n] * H, A, rng)
    sets = ConfidenceSet(mdp.layers, 10**6, 0.05)
    fill_counts(sets, mdp, rng, lambda p: 10**4)
    L = rng.gamma(0.5, size=mdp.layers.n_pairs) * 5
    tiny = worlds.dirichlet([2, 2], 2, rng)  # load the compiled code first
    OccupancyFTRL(tiny.layers, tiny.P / 2, (1 + tiny.P) / 2).solve(np.ones(9), np.ones(2))
    before = peak_megabytes()
    solver = OccupancyFTRL(mdp.layers, sets.lo, sets.hi)
    start = clock()
    first = solver.solve(L, np.ones(H)).certificate
    cold = clock() - start
    warm = []
    for _ in range(5):
        for h in range(1, H + 1):
            L[mdp.layers.index(h, rng.integers(n), rng.integers(A))] += 0.1
        start = clock()
        certificate = solver.solve(L, np.ones(H)).certificate
        warm.append(clock() - start)
    peak = peak_megabytes() - before
    print(
        f"{mdp.layers.n_pairs} pairs, {mdp.layers.n_transitions} transitions: cold {cold:.2f} s "
        f"({first.interior_iterations} iterations, gap {first.relative_gap:.1e} w), warm "
        f"{np.mean(warm):.3f} s ({certificate.newton_steps} Newton steps, gap "
        f"{certificate.relative_gap:.1e} w), memory +{peak:.0f} MB"
    )


def call_overhead():
    layers = Layers([3, 3], 2)
    solver = OccupancyFTRL(layers, np.zeros(layers.n_transitions), np.ones(layers.n_transitions))
    L, w = np.zeros(layers.n_pairs), np.ones(2)
    start = clock()
    for _ in range(2000):
        solver.solve(L, w)
    print(f"\nA call from Python (closed form, 2,3,2): {(clock() - start) / 2000 * 1e6:.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--big", action="store_true", help="only the one big solve")
    options = parser.parse_args()
    if options.big:
        one_big_solve()
        return
    sizes = SIZES[:4] if options.quick else SIZES
    samples = [(12, 12), (10, 10), (8, 8), (6, 6), (3, 3), (1, 1), (1, 1)][: len(sizes)]
    Sequence((2, 3, 2), "loose", 1, 3).run(np.zeros((1, 13)), cold=True)  # compile
    result = {"table": table(sizes, samples, 100 if options.quick else 200)}
    result["reliability"] = reliability(
        SIZES[:5], range(100, 102 if options.quick else 112), 60 if options.quick else 120
    )
    result["growth"] = growth(50 if options.quick else 150)
    call_overhead()
    if not options.quick:
        # its own process: peak memory is a process's
        subprocess.run([sys.executable, __file__, "--big"], check=True)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1, default=float))


if __name__ == "__main__":
    main()
