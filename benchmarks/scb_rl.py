"""SCB-RL: episodes a second and where the time goes, beside the same loop with cvxpy.

    python benchmarks/scb_rl.py      # memory; (3,3,2), (5,5,4), (5,10,4), (8,20,8); growth; cvxpy
    python benchmarks/scb_rl.py --quick      # the first two sizes, fewer episodes

One process, one thread, CPU time. *solver* is the time of a run minus that of the same run with a
solver that returns at once; *simulation* is that of uniform play on the same MDP (transitions,
losses, occupancy); *exploration* is that of the exploration phase by itself, less its simulation;
*bounds* is the rest: upper occupancy bounds, boxes, counts, clipping. The least of some runs each.

The loop with cvxpy is the same compiled loop, which calls back into Python for each solve: one
problem compiled beforehand, with losses, weights and boxes as parameters (DPP), and Clarabel. Both
solvers play the same episodes with explorers that are given, so that every episode may solve.
"""

import argparse
import os
import resource
import time
import warnings
from dataclasses import replace
from functools import cache

# One thread each, set before NumPy loads. Hence imports that are not at the top.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numba  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

from unbounded import worlds  # noqa: E402
from unbounded.adversaries.mdps import Stochastic  # noqa: E402
from unbounded.core.occupancy.layout import (  # noqa: E402
    ACTIONS,
    PAIR,
    SIZE,
    STATE,
    TRIPLE,
    condition,
)
from unbounded.core.occupancy.solver import (  # noqa: E402
    SOLVED,
    WARM,
    Outcome,
    ftrl,
)
from unbounded.jit.kernel import counting_kernel as kernel  # noqa: E402
from unbounded.jit.kernel import pointer  # noqa: E402
from unbounded.mdps.baselines.uniform_policy import UniformPolicy  # noqa: E402
from unbounded.mdps.scb_rl import SCBRL  # noqa: E402
from unbounded.mdps.steps.profiles import PRACTICAL  # noqa: E402
from unbounded.simulation.mdp import simulate_mdp  # noqa: E402

SIZES = [(3, 3, 2), (5, 5, 4), (5, 10, 4), (8, 20, 8)]


@kernel
def at_once(lay, lo, hi, boxes, L, w, tol, memory, buffer, q, pi):
    """A solver that does nothing."""
    return Outcome(0.0, 0.0, 0.0, 0, 0, 0, WARM, SOLVED, 0.0, 0.0)


class WithoutSolver(SCBRL):
    """SCB-RL whose solver returns at once."""

    spec = replace(SCBRL.spec, solver=cache(lambda: pointer(at_once, ftrl.TYPE)))


class CvxpySolver:
    """The program of one episode in cvxpy, everything that changes being a parameter."""

    def __init__(self, layers):
        import cvxpy as cp

        self.calls = self.failures = 0
        lay, n_x, n_y = layers.table, layers.n_pairs, layers.n_transitions
        H = layers.horizon
        of_pair = np.empty(n_y, dtype=int)  # the pair of each triple, and its next state
        into = np.empty(n_y, dtype=int)
        for h in range(H):
            m, n = lay[SIZE, h] * lay[ACTIONS, h], lay[SIZE, h + 1]
            triples = lay[TRIPLE, h] + np.arange(m * n)
            of_pair[triples] = lay[PAIR, h] + np.tile(np.arange(m), n)
            into[triples] = lay[STATE, h + 1] + np.repeat(np.arange(n), m)
        states = np.concatenate([lay[STATE, h] + np.repeat(np.arange(lay[SIZE, h]), lay[ACTIONS, h])
                                 for h in range(H + 1)])  # fmt: skip
        one = np.ones(n_y)
        E = sp.csr_matrix((one, (np.arange(n_y), of_pair)), shape=(n_y, n_x))
        flow_in = sp.csr_matrix((one, (into, np.arange(n_y))), shape=(lay[STATE, -1], n_y))[1:]
        at = states, np.arange(n_x)
        mass = sp.csr_matrix((np.ones(n_x), at), shape=(lay[STATE, -1], n_x))[1:]
        self.x, y = cp.Variable(n_x), cp.Variable(n_y)
        self.L, self.w = cp.Parameter(n_x), cp.Parameter(n_x, nonneg=True)
        self.lo, self.hi = cp.Parameter(n_y), cp.Parameter(n_y)
        before = lay[PAIR, H]  # pairs of layers 0 .. H - 1
        self.problem = cp.Problem(
            cp.Minimize(self.L @ self.x - cp.sum(cp.multiply(self.w, cp.entr(self.x)))),
            [
                self.x[0] == 1,
                (E.T @ y)[:before] == self.x[:before],
                flow_in @ y == mass @ self.x,
                y >= cp.multiply(self.lo, E @ self.x),
                y <= cp.multiply(self.hi, E @ self.x),
            ],
        )
        assert self.problem.is_dcp(dpp=True)
        self.pairs = np.repeat(np.arange(H), np.array(layers.sizes) * layers.n_actions)
        self.solve(np.zeros(n_y), np.ones(n_y), np.zeros(n_x), np.ones(H), np.empty(n_x))

    def solve(self, lo, hi, L, w, q):
        w = w if w.max() > 0.0 else np.ones_like(w)  # E16: no scale seen yet
        scale = w.max()
        self.L.value, self.lo.value, self.hi.value = L / scale, lo, hi
        self.w.value = np.concatenate([[0.0], w[self.pairs] / scale])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": counted below
            self.problem.solve(solver="CLARABEL", max_threads=1)
        self.failures += self.problem.status != "optimal"
        q[:] = np.maximum(self.x.value, 0.0)
        self.calls += 1


CVXPY = {}  # the solver that the kernel below finds


def call_cvxpy(lo, hi, L, w, q):
    CVXPY["solver"].solve(lo, hi, L, w, q)


def by_cvxpy(lay, lo, hi, boxes, L, w, tol, memory, buffer, q, pi):
    """The solver of SCB-RL, by a call of Python."""
    with numba.objmode():
        call_cvxpy(lo, hi, L, w, q)
    condition(lay, q, pi)
    return Outcome(0.0, 0.0, 0.0, 0, 0, 0, WARM, SOLVED, 0.0, 0.0)


class WithCvxpy(SCBRL):
    """SCB-RL with cvxpy as the solver."""

    spec = replace(
        SCBRL.spec,
        solver=cache(lambda: kernel(by_cvxpy, nogil=False)),
    )


def seconds(learner, mdp, T):
    """CPU time of one simulated run, compiled code assumed."""
    start = time.process_time()
    result = simulate_mdp(learner, mdp, Stochastic(), T, seed=1, checkpoints=[T], workers=1)
    return time.process_time() - start, result


def world(H, n, A):
    return worlds.dirichlet([n] * H, A, np.random.default_rng(H * 100 + n))


def split(H, n, A, T, skip, repeat):
    """Microseconds per episode: whole, solver, bounds, exploration, simulation; and the result."""
    sizes, mdp = [n] * H, world(H, n, A)
    whole = bare = exploring = simulation = np.inf
    for _ in range(repeat):
        taken, result = seconds(SCBRL(sizes, A, T, constants={"skip": skip}), mdp, T)
        whole = min(whole, taken)
        without = WithoutSolver(sizes, A, T, skip=skip)
        bare = min(bare, seconds(without, mdp, T)[0])
        exploring = min(exploring, seconds(without, mdp, int(result.explored[0]))[0])
        simulation = min(simulation, seconds(UniformPolicy(sizes, A), mdp, T)[0])
    exploring -= simulation * result.explored[0] / T
    parts = whole, whole - bare, bare - simulation - exploring, exploring, simulation
    return [1e6 * x / T for x in parts], result


def table(sizes, T, repeat):
    print(
        "| H,n,A | skip | episodes/s | us: solver / bounds / exploration / simulation | "
        "solves an episode | explored | fallbacks | worst gap |\n" + "|---" * 8 + "|"
    )
    for H, n, A in sizes:
        episodes = T if n < 20 else 2_000
        for skip in (0.0, PRACTICAL.skip):
            us, result = split(H, n, A, episodes, skip, repeat if n < 20 else 1)
            print(
                f"| {H},{n},{A} | {skip:g} | {1e6 / us[0]:,.0f} | "
                f"{' / '.join(f'{x:.1f}' for x in us[1:])} | {result.solves[0] / episodes:.2f} | "
                f"{result.explored[0] / episodes:.3f} | {result.fallbacks[0]} | "
                f"{result.worst_gap[0]:.1e} |",
                flush=True,
            )


def memory(lengths):
    """Speed and peak memory at (5,5,4): a longer run must not take more."""
    before = 0
    for T in lengths:
        taken, _ = seconds(SCBRL([5] * 5, 4, T), world(5, 5, 4), T)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        grown = f", {peak - before:+.1f} MB" if before else ""
        print(f"(5,5,4), T = {T:,}: {T / taken:,.0f} episodes/s, peak {peak:.1f} MB{grown}")
        before = peak
    print(flush=True)


def growth(T, repeat):
    """Exponents of the time of an episode, with the practical skip."""
    print("\nTime an episode ~ size^exponent, with the solver's part and the rest:\n")
    for name, sizes, axis in (
        ("n", [(5, k, 4) for k in (3, 5, 8, 12)], 1),
        ("A", [(5, 5, k) for k in (2, 4, 8, 12)], 2),
        ("H", [(k, 5, 4) for k in (2, 4, 6, 9)], 0),
    ):
        us = np.array([split(*size, T, PRACTICAL.skip, repeat)[0] for size in sizes])
        parts = np.column_stack([us[:, 0], us[:, 1], us[:, 0] - us[:, 1]])
        x = np.log([size[axis] for size in sizes])
        whole, solver, rest = np.polyfit(x, np.log(parts), 1)[0]
        each = ", ".join(
            f"{size[axis]}: {u:.0f} us" for size, u in zip(sizes, us[:, 0], strict=True)
        )
        print(f"- {name}: {whole:.2f} (solver {solver:.2f}, rest {rest:.2f}); {each}", flush=True)


def beside_cvxpy(sizes, episodes):
    print(
        "\n| H,n,A | skip | episodes | solves | ours, episodes/s | cvxpy, episodes/s | ratio | "
        "regret: ours / cvxpy | not optimal |\n" + "|---" * 9 + "|"
    )
    for (H, n, A), E in zip(sizes, episodes, strict=True):
        mdp = world(H, n, A)
        for skip in (0.0, PRACTICAL.skip):
            given = {
                "explorer": "oracle", "known": {"transitions": mdp.P}, "constants": {"skip": skip},
            }  # fmt: skip
            CVXPY["solver"] = solver = CvxpySolver(mdp.layers)
            learner = WithCvxpy([n] * H, A, 20_000, **given)
            solver.calls = solver.failures = 0
            slow, theirs = seconds(learner, mdp, E)
            # The first solve, before any loss, is the library's; an exception would be lost.
            assert solver.calls == theirs.solves[0] - 1
            learner = SCBRL([n] * H, A, 20_000, **given)
            runs = [seconds(learner, mdp, E) for _ in range(3)]
            fast, ours = min(runs, key=lambda run: run[0])
            print(
                f"| {H},{n},{A} | {skip:g} | {E} | {theirs.solves[0]} | {E / fast:,.0f} | "
                f"{E / slow:,.1f} | {slow / fast:,.0f}x | {ours.pseudo_regret[0, -1]:.4f} / "
                f"{theirs.pseudo_regret[0, -1]:.4f} | {solver.failures} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    small = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    for kind in (SCBRL, WithoutSolver, WithCvxpy):  # compile
        CVXPY["solver"] = CvxpySolver(small.layers)
        seconds(kind([2, 2], 2, 100), small, 100)
    seconds(UniformPolicy([2, 2], 2), small, 100)
    memory([1_000, 10_000] if quick else [10_000, 100_000, 1_000_000])
    sizes = SIZES[:2] if quick else SIZES
    table(sizes, 4_000 if quick else 20_000, 1 if quick else 2)
    growth(1_000 if quick else 4_000, 1 if quick else 2)
    beside_cvxpy(sizes[:3], [40, 20] if quick else [2000, 1000, 400])


if __name__ == "__main__":
    main()
