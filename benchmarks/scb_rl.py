"""SCB-RL: episodes a second and where the time goes, beside the same loop with cvxpy.

    python benchmarks/scb_rl.py             # (3,3,2), (5,5,4), (5,10,4), (8,20,8)
    python benchmarks/scb_rl.py --quick     # the first two, fewer episodes

One process, one thread, CPU time of the thread. *solver* is the time of a run minus that of the
same run with a solver that returns at once; *simulation* is that of uniform play on the same MDP
(transitions, losses, occupancy); *bounds* is the rest: upper occupancy bounds, counts, clipping.
The cvxpy column multiplies the time of one cached (DPP) Clarabel solve by the solves of the run.
"""

import argparse
import os
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

# One thread each, set before NumPy loads; the reference programs are among the tests. Hence imports
# that are not at the top.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np  # noqa: E402

from occupancy_reference import Program, cvxpy_problem  # noqa: E402
from unbounded import worlds  # noqa: E402
from unbounded._jit import Compiled, kernel  # noqa: E402
from unbounded.mdps import programs  # noqa: E402
from unbounded.mdps.adversaries import MDPAdversary  # noqa: E402
from unbounded.mdps.baselines import UniformPolicy  # noqa: E402
from unbounded.mdps.scb_rl import SCBRL  # noqa: E402
from unbounded.mdps.simulate import simulate_mdp  # noqa: E402

SIZES = [(3, 3, 2), (5, 5, 4), (5, 10, 4), (8, 20, 8)]


@kernel
def at_once(lay, lo, hi, boxes, L, w, tol, memory, buffer, q, pi, info):
    """A solver that does nothing."""
    return True


class WithoutSolver(SCBRL):
    """SCB-RL whose solver returns at once."""

    spec = replace(SCBRL.spec, program=cache(lambda: Compiled(at_once, programs.FTRL_TYPE)))


def seconds(learner, mdp, T):
    """CPU time of one simulated run, compiled code assumed."""
    start = time.process_time()
    result = simulate_mdp(learner, mdp, MDPAdversary(), T, seed=1, checkpoints=[T], workers=1)
    return time.process_time() - start, result


def cvxpy_milliseconds(learner, mdp):
    """One warm cvxpy solve of a late program of this learner."""
    state = learner._state
    problem, L, w, _ = cvxpy_problem(program := Program(mdp.layers, state.lo, state.hi))
    weights = program.pair_weights(state.w)
    L.value, w.value = state.L_hat[1:] / weights.max(), weights / weights.max()
    problem.solve(solver="CLARABEL")
    start = time.process_time()
    problem.solve(solver="CLARABEL")
    return 1e3 * (time.process_time() - start)


def late_learner(sizes, A, mdp, T):
    """A learner after 400 episodes of its main phase, through ask and tell."""
    from mdp_play import play, random_losses

    learner = SCBRL(sizes, A, T, explorer="oracle", transitions=mdp.P, seed=2)
    play(learner, mdp, random_losses(mdp.layers, 400, seed=3), seed=4)
    return learner


def row(H, n, A, T, skip):
    sizes = [n] * H
    mdp = worlds.dirichlet(sizes, A, np.random.default_rng(H * 100 + n))
    learner = SCBRL(sizes, A, T, skip=skip)
    whole, result = seconds(learner, mdp, T)
    bare, _ = seconds(WithoutSolver(sizes, A, T, skip=skip), mdp, T)
    simulation, _ = seconds(UniformPolicy(sizes, A), mdp, T)
    us = [1e6 * x / T for x in (whole - bare, bare - simulation, simulation)]
    one = cvxpy_milliseconds(late_learner(sizes, A, mdp, T), mdp) if n <= 10 else float("nan")
    with_cvxpy = bare + 1e-3 * one * result.solves[0]
    print(
        f"| {H},{n},{A} | {skip:g} | {T / whole:,.0f} | {us[0]:.1f} / {us[1]:.1f} / {us[2]:.1f} | "
        f"{result.solves[0] / T:.2f} | {result.explored[0] / T:.3f} | {result.fallbacks[0]} | "
        f"{result.worst_gap[0]:.1e} | {T / with_cvxpy:,.0f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(
        "| H,n,A | skip | episodes/s | us: solver / bounds / simulation | solves an episode | "
        "explored | fallbacks | worst gap | with cvxpy, episodes/s |\n" + "|---" * 9 + "|"
    )
    small = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    for kind in (SCBRL, WithoutSolver):  # compile
        seconds(kind([2, 2], 2, 100), small, 100)
    seconds(UniformPolicy([2, 2], 2), small, 100)
    for H, n, A in SIZES[:2] if quick else SIZES:
        T = (4_000 if quick else 20_000) if n < 20 else 2_000
        for skip in (0.0, 0.2):
            row(H, n, A, T, skip)


if __name__ == "__main__":
    main()
