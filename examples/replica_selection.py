"""Which replica to send a request to: learning from raw seconds, told late and out of order.

    python examples/replica_selection.py

Four HTTP servers on loopback answer after 12 to 28 milliseconds, until the fastest of them
becomes the slowest. Of a thousand requests 10 (or 1) hang on every server, and cost 0.5 s. First
all policies play at once on the live servers, while a recorder notes what each server answers.
Then each plays 20 replicates of the recorded traces: blocks of them drawn anew, before and after
the change, the same for all policies.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import time
from collections.abc import Callable
from itertools import product
from typing import Any, Protocol

import matplotlib.pyplot as plt
import numpy as np
from gallery import OTHER, OURS, TUNED, command, finish, interval, said, table
from replica_servers import CHANGE, TIMEOUT, Client, Servers

from unbounded import SCB, CostSCB, EpsilonGreedy, Learner, LogThompson

N = 4
LIVE, TICK, PER_POLICY = 40.0, 0.02, 3  # seconds; of the recorder; requests at a time
ROUNDS, BETWEEN, BLOCK, REPLICATES = 10_000, 0.005, 25, 20


class Policy(Protocol):
    def choose(self) -> tuple[int, Any]: ...
    def told(self, server: int, ticket: Any, seconds: float) -> None: ...


class Learning:
    """A learner of this package: no settings, no unit."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner

    def choose(self) -> tuple[int, Any]:
        choice = self._learner.ask()
        return choice.arm, choice

    def told(self, server: int, ticket: Any, seconds: float) -> None:
        self._learner.tell(ticket, seconds)


class RoundRobin:
    def __init__(self, seed: int) -> None:
        self._next = seed

    def choose(self) -> tuple[int, Any]:
        self._next += 1
        return self._next % N, None

    def told(self, server: int, ticket: Any, seconds: float) -> None:
        pass


class LeastLatency:
    """The server whose moving average is least, and now and then any."""

    def __init__(self, seed: int, weight: float, explore: float) -> None:
        self._rng, self._weight, self._explore = random.Random(seed), weight, explore
        self._average = [0.0] * N  # so that each is tried

    def choose(self) -> tuple[int, Any]:
        if self._rng.random() < self._explore:
            return self._rng.randrange(N), None
        return min(range(N), key=lambda k: (self._average[k], self._rng.random())), None

    def told(self, server: int, ticket: Any, seconds: float) -> None:
        old = self._average[server]
        self._average[server] = old + self._weight * (seconds - old) if old else seconds


class TwoChoices:
    """Of two servers at random, the one that is busy with fewer of our requests."""

    def __init__(self, seed: int) -> None:
        self._rng, self._busy = random.Random(seed), [0] * N

    def choose(self) -> tuple[int, Any]:
        server = min(self._rng.sample(range(N), 2), key=lambda k: self._busy[k])
        self._busy[server] += 1
        return server, None

    def told(self, server: int, ticket: Any, seconds: float) -> None:
        self._busy[server] -= 1


OURS_NAMES = ("CostSCB", 'CostSCB(outliers="sqrt")', "SCB")
GRID = list(product((0.02, 0.1, 0.3), (0.01, 0.05, 0.2)))


def policies(weight: float, explore: float) -> dict[str, Callable[[int], Policy]]:
    return {
        "CostSCB": lambda s: Learning(CostSCB(N, seed=s)),
        'CostSCB(outliers="sqrt")': lambda s: Learning(CostSCB(N, outliers="sqrt", seed=s)),
        "SCB": lambda s: Learning(SCB(N, seed=s)),
        "epsilon-greedy": lambda s: Learning(EpsilonGreedy(N, seed=s)),
        "Thompson, log-seconds": lambda s: Learning(LogThompson(N, stream=s)),
        "least latency, tuned": lambda s: LeastLatency(s, weight, explore),
        "power of two choices": TwoChoices,
        "round-robin": RoundRobin,
    }


async def live(servers: Servers) -> tuple[dict[str, list[float]], dict[int, np.ndarray]]:
    """All policies at once on the servers, and the recorder: seconds, and traces (ticks, N)."""
    end = servers.began + servers.duration
    waited: dict[str, list[float]] = {}
    trace: dict[int, list[list[float]]] = {1: [], 10: []}

    async def play(name: str, policy: Policy) -> None:
        client = Client(servers.ports)
        while time.monotonic() < end:
            server, ticket = policy.choose()
            seconds = await client.get(server, 10)
            policy.told(server, ticket, seconds)
            waited[name].append(seconds)
        client.close()

    async def record(per_mille: int, offset: int) -> None:
        clients = [Client(servers.ports) for _ in range(N)]
        first = servers.began + offset * TICK
        for tick in range(int((end - first) / (4 * TICK))):
            await asyncio.sleep(max(0.0, first + tick * 4 * TICK - time.monotonic()))
            seconds = await asyncio.gather(*(c.get(k, per_mille) for k, c in enumerate(clients)))
            trace[per_mille].append([servers.began, time.monotonic(), *seconds])
        for client in clients:
            client.close()

    await asyncio.sleep(max(0.0, servers.began - time.monotonic()))
    tasks = [record(per_mille, offset) for per_mille in (1, 10) for offset in range(4)]
    for name, make in policies(0.1, 0.05).items():
        waited[name], policy = [], make(1)
        tasks += [play(name, policy) for _ in range(PER_POLICY)]
    await asyncio.gather(*tasks)
    return waited, {key: np.array(rows) for key, rows in trace.items()}


def replicate(trace: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Seconds (ROUNDS, N): blocks of the trace drawn anew, for each server, in both phases."""
    late = trace[:, 1] - trace[:, 0] > CHANGE * LIVE
    parts = []
    for phase, rounds in ((trace[~late, 2:], int(CHANGE * ROUNDS)), (trace[late, 2:], None)):
        wanted = ROUNDS - int(CHANGE * ROUNDS) if rounds is None else rounds
        first = rng.integers(len(phase) - BLOCK, size=(-(-wanted // BLOCK), N))
        rows = (first[:, None, :] + np.arange(BLOCK)[None, :, None]).reshape(-1, N)[:wanted]
        parts.append(np.take_along_axis(phase, rows, axis=0))
    return np.concatenate(parts)


def replay(policy: Policy, seconds: np.ndarray) -> np.ndarray:
    """What each request waited; answers come when they come."""
    waited, coming = np.empty(len(seconds)), []
    for t, row in enumerate(seconds.tolist()):
        while coming and coming[0][0] <= t * BETWEEN:
            policy.told(*heapq.heappop(coming)[2:])
        server, ticket = policy.choose()
        waited[t] = row[server]
        heapq.heappush(coming, (t * BETWEEN + row[server], t, server, ticket, row[server]))
    return waited


def main() -> None:
    into = command("replica_selection").parse_args().into
    with Servers(LIVE) as servers:
        on_live, traces = asyncio.run(live(servers))
    means: dict[tuple[str, int], np.ndarray] = {}
    tails: dict[tuple[str, int], np.ndarray] = {}
    fixed, settings = {}, {}
    for per_mille, trace in traces.items():
        draws = [replicate(trace, np.random.default_rng(r)) for r in range(REPLICATES)]
        other = [replicate(trace, np.random.default_rng(1000 + r)) for r in range(2)]
        settings[per_mille] = min(
            GRID, key=lambda g: sum(replay(LeastLatency(7, *g), draw).sum() for draw in other)
        )
        for name, make in policies(*settings[per_mille]).items():
            runs = [replay(make(r), draw) for r, draw in enumerate(draws)]
            means[name, per_mille] = np.array([1e3 * run.mean() for run in runs])
            tails[name, per_mille] = np.array([1e3 * np.quantile(run, 0.99) for run in runs])
        fixed[per_mille] = np.array([1e3 * draw.mean(axis=0).min() for draw in draws])

    names = sorted(on_live, key=lambda name: means[name, 10].mean())
    rows = [
        [
            name,
            *(
                cell
                for pm in (1, 10)
                for cell in (said(means[name, pm]), said(tails[name, pm], ".0f"))
            ),
            f"{1e3 * np.mean(on_live[name]):.1f}",
            f"{len(on_live[name]):,}",
        ]
        for name in names
    ]
    rows.append(["best server in hindsight", said(fixed[1]), "", said(fixed[10]), "", "", ""])
    header = [
        "milliseconds",
        "0.1% hang: mean",
        "p99",
        "1% hang: mean",
        "p99",
        "live: mean",
        "requests",
    ]
    figure, all_axes = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
    for axes, per_mille in zip(all_axes, (1, 10), strict=True):
        for y, name in enumerate(reversed(names)):
            mean, half = interval(means[name, per_mille])
            color = OURS if name in OURS_NAMES else TUNED if "tuned" in name else OTHER
            axes.barh(y, mean, xerr=half, color=color, height=0.7, error_kw={"lw": 1.0})
        axes.axvline(fixed[per_mille].mean(), color="black", lw=1.0, ls=":")
        axes.set_title(f"{per_mille / 10:g}% of requests hang for {TIMEOUT:g} s")
        axes.set_xlabel("mean wait, milliseconds (dots: best server)")
        axes.set_yticks(range(len(names)), list(reversed(names)))
        axes.spines[["top", "right"]].set_visible(False)
    tuned = ", ".join(f"{pm / 10:g}%: weight {w}, explore {e}" for pm, (w, e) in settings.items())
    text = f"{table(header, rows)}\n\nLeast latency was tuned on other replicates ({tuned})."
    finish("replica_selection", figure, text, into)


if __name__ == "__main__":
    main()
