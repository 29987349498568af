"""Learners with and without a half-life on recorded traces.

    python benchmarks/traces.py [--write]     # docs/results/tables/traces-1.csv
    python benchmarks/traces.py --record 75   # records loopback latencies again, for 75 seconds

- loopback: latencies in ms of four HTTP servers on this machine, which were all asked the same at
  the same time (docs/results/data/loopback.csv). At 60% the fastest becomes the slowest; 0.3% of
  the requests hang, and cost 500 ms.
- stocks: dollars lost per day with a hundred shares of one of twenty stocks, 1990 to 2022
  (skfolio's prices of the S&P 500). A day's move grows thirtyfold.
- EUR/USD: dollars lost per hour by holding -2, -1, 0, 1 or 2 times 100,000 EUR, 2017
  (gym-anytrading's prices).

Prices are read from the installed packages. Trading costs are left out. Losses are fixed, so
replicates differ by the learner's draws only.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import importlib.util
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from result_tables import write_tables

import unbounded
from unbounded import ScaleWarning, settings, simulate
from unbounded.adversaries import Replay

ROOT = Path(__file__).resolve().parents[1]
LOOPBACK = ROOT / "docs" / "results" / "data" / "loopback.csv"
SEEDS, SWITCHES = 20, 5


def packaged(package: str, *parts: str) -> Path:
    """Return the path of a file of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"python -m pip install {package.replace('_', '-')}")
    return Path(found.submodule_search_locations[0]).joinpath(*parts)


def loopback() -> np.ndarray:
    return np.loadtxt(LOOPBACK, delimiter=",", skiprows=1)


def stocks() -> np.ndarray:
    path = packaged("skfolio", "datasets", "data", "sp500_dataset.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        next(lines := csv.reader(file))
        prices = np.array([[float(price) for price in line[1:]] for line in lines])
    return -100.0 * np.diff(prices, axis=0)


def euros() -> np.ndarray:
    path = packaged("gym_anytrading", "datasets", "data", "FOREX_EURUSD_1H_ASK.csv")
    with path.open(encoding="utf-8") as file:
        prices = np.array([float(row["Close"]) for row in csv.DictReader(file)])
    return -100_000.0 * np.diff(prices)[:, None] * np.arange(-2, 3)


async def _clients(ports: list[int], until: float, at_once: int) -> list[list[float]]:
    from routing_servers import Client

    rows: list[list[float]] = []

    async def one() -> None:
        client = Client(ports, timeout=0.5)
        while time.monotonic() < until:
            got = await asyncio.gather(*(client.get(k) for k in range(len(ports))))
            rows.append([1000.0 * answer.seconds for answer in got if answer is not None])
        await client.close()

    await asyncio.gather(*(one() for _ in range(at_once)))
    return rows


def record(seconds: float) -> None:
    """Ask four servers of examples/routing_servers.py for the same, by five clients."""
    sys.path.insert(0, str(ROOT / "examples"))
    from routing_servers import Servers, State

    before, after = (
        [State(median, hangs=0.003) for median in medians]
        for medians in ((0.012, 0.016, 0.020, 0.028), (0.036, 0.016, 0.020, 0.028))
    )
    with Servers([(0.0, before), (0.6 * seconds, after)]) as servers:
        until = servers.began + seconds
        rows = asyncio.run(_clients(servers.ports, until, 5))
    with LOOPBACK.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f"server {k}" for k in range(len(rows[0]))])
        writer.writerows([f"{x:.1f}" for x in row] for row in rows)
    print(f"wrote {LOOPBACK}: {len(rows)} rows")


TRACES = {"loopback, ms": loopback, "stocks, dollars": stocks, "EUR/USD, dollars": euros}
COSTS = ("CostSCB", "RestartingCostSCB")
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Uniform", {}),
    ("SCB", {}),
    *(("AdaINF", {"half_life": h} if h else {}) for h in (None, 300, 1000, 3000)),
    ("AdaINF", {"robust": False}),
    *(("AdaINF", {"half_life": h, "robust": False}) for h in (300, 1000, 3000)),
    *(("CostSCB", {"half_life": h} if h else {}) for h in (None, 300, 1000, 3000)),
    ("CostSCB", {"half_life": 1000, "cap": 100.0}),
    ("CostSCB", {"half_life": 1000, "outliers": "sqrt"}),
    ("RestartingCostSCB", {"every": 1000}),
    *(("DiscountedUCB", {"half_life": h, "width": 0.03}) for h in (300, 1000)),
    *(("EpsilonGreedy", {"step": x}) for x in (0.1, 0.03)),
]


def name_of(case: tuple[str, dict[str, Any]]) -> str:
    return f"{case[0]}({', '.join(f'{k}={v}' for k, v in case[1].items())})"


def page() -> str:
    lines = []
    for title, load in TRACES.items():
        losses = load()
        rounds, n = losses.shape
        span = float(losses.min()), float(losses.max())
        lines += ["", f"# {title}: {rounds} rounds, {n} arms", "",
                  "| learner | mean loss |", "|---|---|"]  # fmt: skip
        best = losses.mean(axis=0).min()
        lines.append(f"| best fixed arm | {best:.2f} |")
        for case in CASES:
            if case[0] in COSTS and span[0] < 0.0:
                continue
            given = {"loss_range": span} if case[0] == "DiscountedUCB" else {}
            play = simulate(
                getattr(unbounded, case[0])(n, **case[1], **given), Replay(losses), rounds, SEEDS,
                seed=1, checkpoints=[rounds], dynamic=True, switches=SWITCHES, workers=1,
            )  # fmt: skip
            paid = best + play.regret[:, -1] / rounds
            if case[0] == "Uniform":
                least = float((paid - play.switching_regret[:, -1] / rounds).mean())
                lines.append(f"| best sequence with {SWITCHES} switches | {least:.2f} |")
            error = round(1.96 * paid.std(ddof=1) / math.sqrt(SEEDS), 9)
            lines.append(f"| {name_of(case)} | {paid.mean():.2f} ± {error:.2g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--record", type=float, metavar="SECONDS")
    given = parser.parse_args()
    if given.record:
        return record(given.record)
    settings.jit = "always"
    warnings.simplefilter("ignore", ScaleWarning)
    text = page()
    print(text)
    if given.write:
        write_tables("traces", text)
    return None


if __name__ == "__main__":
    main()
