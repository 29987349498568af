"""Record what six HTTP servers on loopback answer, for routing.py: 400 seconds each.

    python examples/routing_record.py trace    # examples/data/routing.csv.gz
    .venv/litellm/bin/python examples/routing_record.py live    # examples/data/routing_live.csv

The trace asks every server for the same at the same time, every 20 ms. The live run is one run of
every policy, all at once, each with a request every 20 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from routing_servers import Answer, Client, Servers, State

DATA = Path(__file__).parent / "data"
TRACE, LIVE = DATA / "routing.csv.gz", DATA / "routing_live.csv"
ROUNDS, BETWEEN, TIMEOUT = 20_000, 0.02, 2.0  # requests; seconds from one to the next
USUAL = (
    State(0.060, 100), State(0.040, 400), State(0.075, 50), State(0.030, 300), State(0.100, 25),
    State(0.048, 200),
)  # fmt: skip
FAST, SECOND = 3, 1
CHANGES = (  # from one request to another: how a server differs
    (2000, 4500, FAST, {"median": 6 * 0.030, "hangs": 0.05}),
    (5500, ROUNDS, FAST, {"price": 1000}),
    (6500, 8000, SECOND, {"median": 4 * 0.040}),
    (8500, 11_000, FAST, {"hangs": 0.03}),  # the median stays
    (12_500, ROUNDS, SECOND, {"price": 50}),
    (13_500, 14_500, FAST, {"fails": 0.2}),
    (17_000, 18_000, FAST, {"out": True}),
)
PHASES = sorted({0, *(edge for change in CHANGES for edge in change[:2])})[:-1]
BACK = tuple(end for _, end, server, what in CHANGES if server == FAST and "price" not in what)


def states(t: int) -> Sequence[State]:
    """Return how all servers answer request ``t``."""
    found = list(USUAL)
    for begin, end, server, what in CHANGES:
        if begin <= t < end:
            found[server] = found[server]._replace(**what)
    return found


SCRIPT = [(begin * BETWEEN, states(begin)) for begin in PHASES]


async def trace(servers: Servers) -> list[list[int]]:
    """Ask all servers for every request: what each answers, and its price."""
    client = Client(servers.ports, TIMEOUT)

    async def ask(row: list[int]) -> None:
        answers = await asyncio.gather(*(client.get(k) for k in range(len(USUAL))))
        for answer in answers:  # in 0.1 ms; failures are negative, and 0 is out of rotation
            found = 0 if answer is None else max(1, round(1e4 * answer.seconds))
            row.append(found if answer is None or answer.ok else -found)
        row += [0 if answer is None else answer.price for answer in answers]

    rows: list[list[int]] = []
    asked = []
    for t in range(ROUNDS):
        await asyncio.sleep(max(0.0, servers.began + t * BETWEEN - time.monotonic()))
        rows.append([])
        asked.append(asyncio.create_task(ask(rows[-1])))
        if t % 1000 == 0:
            print(f"{t:,} of {ROUNDS:,} requests", flush=True)
    await asyncio.gather(*asked)
    await client.close()
    return rows


def write(rows: list[list[int]]) -> None:
    DATA.mkdir(exist_ok=True)
    text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    TRACE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{TRACE}: {TRACE.stat().st_size:,} bytes")


async def live(servers: Servers) -> dict[str, list[tuple[int, int, Answer]]]:
    """Let every policy route requests of its own; what it chose, and the answers."""
    from routing_policies import Answered
    from routing_replay import FAILURE, live_policies

    async def play(name: str, policy: Any) -> list[tuple[int, int, Answer]]:
        client, found = Client(servers.ports, TIMEOUT), list[tuple[int, int, Answer]]()

        async def request(t: int) -> None:
            arm = int(ticket := policy.ask([not state.out for state in states(t)]))
            began = time.monotonic() - servers.began
            answer = await client.get(arm) or Answer(0.0, 0, ok=False)  # it has just left
            wait = answer.seconds if answer.ok else FAILURE
            late = answer.seconds >= TIMEOUT
            policy.tell(ticket, wait, Answered(began, answer.seconds, answer.ok, late))
            found.append((t, arm, answer))

        asked = []
        for t in range(ROUNDS):
            await asyncio.sleep(max(0.0, servers.began + t * BETWEEN - time.monotonic()))
            asked.append(asyncio.create_task(request(t)))
            if t % 1000 == 0 and name == "round-robin":
                print(f"{t:,} of {ROUNDS:,} requests", flush=True)
        await asyncio.gather(*asked)
        await client.close()
        return found

    playing = {name: make(0) for name, make in live_policies().items()}
    results = await asyncio.gather(*(play(*item) for item in playing.items()))
    return dict(zip(playing, results, strict=True))


def write_live(played: dict[str, list[tuple[int, int, Answer]]]) -> None:
    from routing_replay import FAILURE, best

    rows, servers = [], best()
    for name, found in played.items():
        waits = np.array([x.seconds if x.ok else FAILURE for _, _, x in found])
        share = np.mean([arm == servers[t] for t, arm, _ in found])
        rows.append(
            {
                "policy": name, "mean wait, ms": f"{1e3 * waits.mean():.1f}",
                "p99": f"{1e3 * np.quantile(waits, 0.99):.0f}",
                "lost, ‰": f"{1e3 * np.mean([not x.ok for _, _, x in found]):.1f}",
                "dollars": f"{1e-3 * np.mean([x.price * x.ok for _, _, x in found]):.3f}",
                "best server, %": f"{100 * share:.0f}",
            }
        )  # fmt: skip
    rows.sort(key=lambda row: float(row["mean wait, ms"]))
    with LIVE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(LIVE.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("trace", "live"))
    what = parser.parse_args().what
    with Servers(SCRIPT) as servers:
        if what == "trace":
            write(asyncio.run(trace(servers)))
        else:
            write_live(asyncio.run(live(servers)))


if __name__ == "__main__":
    main()
