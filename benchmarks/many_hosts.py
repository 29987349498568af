"""Durable learners in PostgreSQL: calls per second beside Optuna's, and what staleness costs.

    python benchmarks/many_hosts.py [SECONDS]   # calls per second, without and with a delay
    python benchmarks/many_hosts.py --regret    # against staleness; of shared and separate learners

The server is one of its own. The delay is that of a proxy: 2.5 ms each way, as between two data
centers. Every way is played twice, in turn, so that none has the quiet half.

A learner whose asks lack the last s tells is one whose feedback comes s rounds late; ``--regret``
plays that in memory, and learners that exchange what they were told now and then. Losses are
uniform in [0, 1] times 1 for nine arms and .8 for one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "durable"))

os.environ.setdefault("UNBOUNDED_JIT", "always")  # or it would compile meanwhile
ROUND_TRIP = 0.005
CLIENTS = 1, 4, 16, 64
HALVES = 2
STALENESS = [0, 1, 4, 16, 64, 256, 1024]


def proxy(listener: socket.socket, target: str, delay: float) -> None:
    """Pass bytes on, each after a delay."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(1 << 16):
            loop.call_later(delay, writer.write, data)
        loop.call_later(delay, writer.close)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        others = await asyncio.open_unix_connection(target)
        await asyncio.gather(pump(reader, others[1]), pump(others[0], writer))

    async def main() -> None:
        await (await asyncio.start_server(serve, sock=listener)).serve_forever()

    asyncio.run(main())


def stored(path: Path, url: str, staleness: int) -> Any:
    import durable
    from unbounded import SCB
    from unbounded.durable import Durable

    options: dict[str, Any] = {"name": path.name, "staleness": staleness, "timeout": 60.0}
    arms = Durable(url, SCB(n_arms=durable.ARMS), **options)

    def step() -> None:
        choice = arms.ask()
        arms.tell(choice.id, loss=1.0 + choice.arm)

    return step


def optuna_stored(path: Path, url: str) -> Any:
    import optuna

    import durable

    schema = url.replace("postgresql://", "postgresql+psycopg://")
    return durable.optuna_step(optuna.storages.RDBStorage(schema))


def tasks(path: Path, url: str) -> Any:
    """All clients are tasks of one event loop, and share a connection."""
    from unbounded import SCB
    from unbounded.durable import Durable

    arms = Durable(url, SCB(n_arms=8), name=path.name, staleness=16, timeout=60.0)

    async def step() -> None:
        choice = await arms.aask()
        await arms.atell(choice.id, loss=1.0 + choice.arm)

    return step


def measured_tasks(
    path: Path, clients: int, seconds: float, make: Any
) -> tuple[float, list[float]]:
    """`durable.measured` for tasks, in a process of their own."""

    async def client(step: Any, until: float) -> list[float]:
        times = []
        while (now := time.perf_counter()) < until:
            await step()
            times.append(time.perf_counter() - now)
        return times

    async def main() -> tuple[float, list[float]]:
        step = make(path)
        await asyncio.gather(*(step() for _ in range(clients)))
        cpu, until = time.process_time(), time.perf_counter() + seconds
        found = await asyncio.gather(*(client(step, until) for _ in range(clients)))
        return (time.process_time() - cpu) / seconds, [one for times in found for one in times]

    context = multiprocessing.get_context("fork")
    results: Any = context.Queue()
    worker = context.Process(target=lambda: results.put(asyncio.run(main())))
    worker.start()
    found: tuple[float, list[float]] = results.get()
    worker.join()
    return found


def spent(process: int) -> float:
    """CPU seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def rates(seconds: float) -> None:
    from postgres_server import server

    import durable
    from unbounded.durable import postgres as _  # before the processes are forked

    with server() as found, tempfile.TemporaryDirectory() as root:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        target = f"{found.directory}/.s.PGSQL.5432"
        fork = multiprocessing.get_context("fork")
        between = fork.Process(target=proxy, args=(listener, target, ROUND_TRIP / 2), daemon=True)
        between.start()
        near, far = found.url(), f"postgresql://postgres@127.0.0.1:{port}/postgres"
        ways: dict[str, Any] = {
            "SQLite, a file": partial(durable.durable, synchronous="normal"),
            "Optuna": partial(optuna_stored, url=near),
            "turns": partial(stored, url=near, staleness=0),
            "staleness 16": partial(stored, url=near, staleness=16),
            "staleness 16, tasks": partial(tasks, url=near),
            "5 ms away: Optuna": partial(optuna_stored, url=far),
            "5 ms away: turns": partial(stored, url=far, staleness=0),
            "5 ms away: staleness 16": partial(stored, url=far, staleness=16),
            "5 ms away: staleness 64": partial(stored, url=far, staleness=64),
            "5 ms away: staleness 16, tasks": partial(tasks, url=far),
        }
        durable.WAYS |= ways
        print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
        print("| clients | ask + tell | per second | beside Optuna | p50 | p99 | CPU (+ server) |")
        print("|---|---|---|---|---|---|---|")
        rate: dict[tuple[int, str], float] = {}
        for clients in CLIENTS:
            times: dict[str, list[float]] = {way: [] for way in ways}
            used: dict[str, list[float]] = {way: [0.0, 0.0] for way in ways}
            for _ in range(HALVES):
                for way, make in ways.items():
                    before = spent(found.process)
                    if way.endswith("tasks"):
                        path = Path(tempfile.mkdtemp(dir=root))
                        cpu, each = measured_tasks(path, clients, seconds / HALVES, make)
                    else:
                        cpu, each = durable.measured(way, clients, seconds / HALVES, Path(root))
                    times[way] += each
                    used[way][0] += cpu / HALVES
                    used[way][1] += (spent(found.process) - before) / seconds
            for way, each in times.items():
                middle, late = 1e3 * np.quantile(each, [0.5, 0.99])
                rate[clients, way] = len(each) / seconds
                place = way.rpartition(": ")[0]
                factor = rate[clients, way] / rate.get(
                    (clients, f"{place}: Optuna" if place else "Optuna"), np.nan
                )
                shown = [
                    clients, way, f"{rate[clients, way]:.0f}", f"{factor:.1f}x", f"{middle:.3g} ms",
                    f"{late:.3g} ms", "{:.2f} + {:.2f}".format(*used[way]),
                ]  # fmt: skip
                print("|", " | ".join(map(str, shown)), "|", flush=True)
        for way in ("staleness 16", "staleness 64", "staleness 16, tasks"):
            factor = rate[16, f"5 ms away: {way}"] / rate[16, "5 ms away: turns"]
            print(f"5 ms away, 16 clients: {way} makes {factor:.1f} times the calls of turns")
        print(f"load {os.getloadavg()[0]:.1f}")
        between.terminate()


def regret(learner: Any, rounds: int, delay: int, rng: np.random.Generator) -> float:
    """Pseudo-regret of a play whose feedback comes ``delay`` rounds late."""
    waiting: deque[tuple[Any, float]] = deque()
    noise, paid = rng.random(rounds), 0.0
    for u in noise:
        choice = learner.ask()
        mean = 0.8 if choice.arm == 3 else 1.0
        paid += 0.5 * mean - 0.4
        waiting.append((choice, u * mean))
        if len(waiting) > delay:
            learner.tell(*waiting.popleft())
    return paid


def merged(hosts: int, every: int, rounds: int, seed: int) -> float:
    """Pseudo-regret of hosts in turn, each with a learner of its own, which every so many rounds
    learns what the others have asked and were told, with the probabilities that they had.
    """
    from unbounded import CostSCB

    learners = [CostSCB(10, seed=1000 * seed + host) for host in range(hosts)]
    rng, paid = np.random.default_rng(seed), 0.0
    noise = rng.random(rounds)
    words = rng.integers(2**64, size=rounds, dtype=np.uint64).tolist()
    fresh: list[tuple[Any, list[Any], float]] = []

    def learn(learner: Any, kept: list[Any], loss: float) -> None:
        learner.tell(learner.outstanding[learner._admit(kept)], loss)

    for t, (u, word) in enumerate(zip(noise, words, strict=True), 1):
        learner = learners[t % hosts]
        kept = learner._kept(learner._drawn(word))
        mean = 0.8 if kept[0] == 3 else 1.0
        paid += 0.5 * mean - 0.4
        learn(learner, kept, u * mean)
        fresh.append((learner, kept, u * mean))
        if t % every == 0:
            for other in learners:
                for source, kept, loss in fresh:
                    if source is not other:
                        learn(other, kept, loss)
            fresh.clear()
    return paid


def regrets(rounds: int = 10_000, seeds: int = 40) -> None:
    from unbounded import AdaINF, CostSCB

    def played(make: Any, rounds: int, delay: int) -> np.ndarray[Any, Any]:
        each = range(seeds)
        return np.array(
            [
                regret(make(10, seed=seed), rounds, delay, np.random.default_rng(seed))
                for seed in each
            ]
        )

    def shown(values: Any) -> str:
        return f"{values.mean():.0f} ± {1.96 * values.std(ddof=1) / len(values) ** 0.5:.0f}"

    print(f"| staleness | CostSCB | AdaINF |\n|---|---|---|\n| (T = {rounds}, {seeds} seeds) | | |")
    for staleness in STALENESS:
        found = [shown(played(make, rounds, staleness)) for make in (CostSCB, AdaINF)]
        print(f"| {staleness} | {' | '.join(found)} |", flush=True)
    print("\n| hosts | separate | shared, delay 0 | 10 | 100 | 1000 |\n|---|---|---|---|---|---|")
    shared = [shown(played(CostSCB, rounds, delay)) for delay in (0, 10, 100, 1000)]
    for hosts in (1, 4, 16):
        apart = hosts * played(CostSCB, rounds // hosts, 0)
        print(f"| {hosts} | {shown(apart)} | {' | '.join(shared)} |", flush=True)
    print("\n| hosts | merged every 10 rounds | 100 | 1000 |\n|---|---|---|---|")
    for hosts in (1, 4, 16):
        each = [
            np.array([merged(hosts, every, rounds, seed) for seed in range(seeds)])
            for every in (10, 100, 1000)
        ]
        print(f"| {hosts} | {' | '.join(map(shown, each))} |", flush=True)


if __name__ == "__main__":
    if "--regret" in sys.argv:
        regrets()
    else:
        rates(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0)
