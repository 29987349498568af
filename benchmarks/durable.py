"""ask + tell of a durable learner beside Optuna's storages, in the same run.

    python benchmarks/durable.py [SECONDS] [DIRECTORY]

One process, and then eight, ask and tell for some seconds, on a file in a new directory in
DIRECTORY (the current one by default: what is measured is that disk). All take turns, so that a
busy machine is busy for all of them. Optuna draws at random, which is the cheapest that it can do:
what is compared is the storage.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from unbounded import SCB
from unbounded.durable import Durable

ARMS = 8
Step = Callable[[], None]


def durable(path: Path, synchronous: str) -> Step:
    arms = Durable(path / "arms.db", SCB(n_arms=ARMS), synchronous=synchronous, timeout=60.0)

    def step() -> None:
        choice = arms.ask()
        arms.tell(choice.id, loss=1.0 + choice.arm)

    return step


def optuna_step(storage: Any) -> Step:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=storage,
        study_name="arms",
        sampler=optuna.samplers.RandomSampler(),
        load_if_exists=True,
    )
    space = {"arm": optuna.distributions.CategoricalDistribution(list(range(ARMS)))}

    def step() -> None:
        trial = study.ask(space)
        study.tell(trial, 1.0 + trial.params["arm"])

    return step


def optuna_sqlite(path: Path) -> Step:
    options = {"connect_args": {"timeout": 60.0}}
    return optuna_step(
        optuna.storages.RDBStorage(f"sqlite:///{path}/optuna.db", engine_kwargs=options)
    )


def optuna_journal(path: Path) -> Step:
    backend = optuna.storages.journal.JournalFileBackend(str(path / "journal.log"))
    return optuna_step(optuna.storages.JournalStorage(backend))


WAYS: dict[str, Callable[[Path], Step]] = {
    "unbounded, survives kill -9": partial(durable, synchronous="normal"),
    "unbounded, survives power loss": partial(durable, synchronous="full"),
    "Optuna, SQLite": optuna_sqlite,
    "Optuna, journal file": optuna_journal,
}


def work(way: str, path: Path, seconds: float, barrier: Any, results: Any) -> None:
    step = WAYS[way](path)
    for _ in range(3):
        step()
    barrier.wait()
    times, began, cpu = [], time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) - began < seconds:
        step()
        times.append(time.perf_counter() - now)
    results.put((times, time.process_time() - cpu))


def make(way: str, path: Path) -> None:
    """The file is there before the processes begin."""
    WAYS[way](path)()


def measured(way: str, processes: int, seconds: float, root: Path) -> tuple[float, list[float]]:
    """CPU seconds of all processes for each second, and how long each call took."""
    path = Path(tempfile.mkdtemp(dir=root))
    context = multiprocessing.get_context("fork")
    maker = context.Process(target=make, args=(way, path))  # nothing of it is inherited
    maker.start()
    maker.join()
    barrier, results = context.Barrier(processes), context.Queue()
    arguments = (way, path, seconds, barrier, results)
    workers = [context.Process(target=work, args=arguments) for _ in range(processes)]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    cpu = sum(one[1] for one in found) / seconds
    return cpu, [one for times, _ in found for one in times]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else ".") as root:
        times: dict[tuple[str, int], list[float]] = {}
        halves = 2  # all of them twice, so that none has the quiet half
        for _ in range(halves):
            for processes in (1, 8):
                for way in WAYS:
                    _, found = measured(way, processes, seconds / halves, Path(root))
                    times.setdefault((way, processes), []).extend(found)
    rates = {key: len(found) / seconds for key, found in times.items()}
    first = next(iter(WAYS))
    print("| ask + tell | processes | per second | p50 | p99 | ours is faster by |")
    print("|---|---|---|---|---|---|")
    for (way, processes), rate in rates.items():
        middle, late = 1e3 * np.quantile(times[way, processes], [0.5, 0.99])
        ratio = "" if way == first else f"{rates[first, processes] / rate:.1f}x"
        print(f"| {way} | {processes} | {rate:.0f} | {middle:.3g} ms | {late:.3g} ms | {ratio} |")


if __name__ == "__main__":
    main()
