"""Which server to send a request to, among six that slow down, hang, fail, leave and come back.

    python examples/routing.py            # needs no network
    python examples/routing.py --quick    # two replicates of the first 2,500 requests

What six HTTP servers on loopback answered to 20,000 requests was recorded once
(`routing_record.py`). All policies play 20 replicates of that trace in virtual time: blocks of 50
requests drawn anew within each phase, the same for all. A policy is told seconds, when the answer
comes; in a second table seconds and dollars, a dollar being worth 50 seconds. LiteLLM's routers
play if LiteLLM 1.106 is installed in .venv/litellm, or for the Python of --litellm.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from csv import DictReader
from pathlib import Path
from typing import NamedTuple

import gallery
import matplotlib.pyplot as plt
import numpy as np
from gallery import bars, command, finish, said, table
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress
from routing_record import BACK, CHANGES, FAST, LIVE, ROUNDS
from routing_replay import (
    CAPPED,
    FREE,
    OURS,
    RECOMMENDED,
    THEIRS,
    Make,
    best,
    played,
    recorded,
    replicate,
)

REPLICATES, TUNING = 20, (1000, 1001)  # seeds; settings are chosen on other replicates
RATE = 50.0  # seconds that a dollar is worth, in the second table
HALF_LIFE = 1000
WINDOW = 100  # requests
ORACLE = "the best server of each phase"
LITELLM = Path(__file__).resolve().parents[1] / ".venv" / "litellm" / "bin" / "python"


class Seen(NamedTuple):
    """What was measured of a policy, for each replicate."""

    wait: np.ndarray  # mean, ms; time-outs and failures count two seconds
    tail: np.ndarray  # 99% quantile
    lost: np.ndarray  # time-outs and failures, of a thousand
    dollars: np.ndarray  # of a thousand requests
    best: np.ndarray  # share of the requests to the best server, in percent
    back: np.ndarray  # requests until a server that recovered gets half of them
    backs: np.ndarray  # (replicates, recoveries)
    cost: np.ndarray  # seconds and dollars, in ms


def recoveries(arms: np.ndarray, servers: np.ndarray) -> list[int]:
    """Return after how many requests the fast server, back, got half of the last 100.

    If it never does, how many requests there are until another one is best.
    """
    found = []
    for back in (b for b in BACK if b < len(arms)):
        other = np.flatnonzero(servers[back:] != FAST)
        until = int(other[0]) if other.size else len(arms) - back
        hits = np.cumsum(arms[back : back + until] == FAST)
        hits[WINDOW:] -= hits[:-WINDOW].copy()
        half = np.flatnonzero(hits >= WINDOW // 2)
        found.append(int(half[0]) + 1 if half.size else until)
    return found


def seen(chosen: np.ndarray, rate: float) -> Seen:
    """Measure what a policy chose in the replicates (replicates, rounds)."""
    rows = []
    for seed, arms in enumerate(chosen):
        draw = replicate(recorded(), seed, chosen.shape[1])
        t, costs = np.arange(len(arms)), draw.costs(rate)
        waits, servers = draw.waits[t, arms], best(rate)[: arms.size]
        backs = recoveries(arms, servers)
        rows.append(
            (
                1e3 * waits.mean(), 1e3 * np.quantile(waits, 0.99),
                1e3 * (~draw.ok[t, arms]).mean(), 1e3 * draw.dollars[t, arms].mean(),
                100.0 * (arms == servers).mean(), np.mean(backs) if backs else np.nan, backs,
                1e3 * costs[t, arms].mean(),
            )
        )  # fmt: skip
    return Seen(*(np.array(column) for column in zip(*rows, strict=True)))


def litellm(python: Path, replicates: int, rounds: int) -> dict[str, np.ndarray]:
    """Return what LiteLLM's policies choose, in its own environment."""
    program = Path(__file__).with_name("routing_replay.py")
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "chosen.npy"
        subprocess.run(
            [python, program, into, f"--seeds={replicates}", f"--rounds={rounds}"], check=True
        )
        return dict(zip(THEIRS, np.load(into), strict=True))


class Play(NamedTuple):
    chosen: dict[str, np.ndarray]  # (replicates, rounds) of each policy
    settings: dict[str, str]  # that were chosen for those with a cap


def play(pool: Executor, replicates: int, rounds: int, rate: float, names: Sequence[str],
         progress: Progress) -> Play:  # fmt: skip
    """Choose settings on other replicates, then play the replicates."""
    grids = {name: grid for name, grid in CAPPED.items() if name in names}
    tuning = TUNING if rounds == ROUNDS else TUNING[:1]
    task = progress.add_task("tuning", total=sum(map(len, grids.values())))
    tried = {
        (name, setting): pool.submit(played, make, tuning, rounds, rate)
        for name, grid in grids.items()
        for setting, make in grid.items()
    }
    draws = [replicate(recorded(), seed, rounds) for seed in tuning]
    costs = [draw.costs(rate) for draw in draws]
    paid: dict[tuple[str, str], float] = {}
    for key, future in tried.items():
        arms = future.result()
        paid[key] = sum(c[np.arange(rounds), a].mean() for c, a in zip(costs, arms, strict=True))
        progress.advance(task)
    settings = {name: min(grid, key=lambda s: paid[name, s]) for name, grid in grids.items()}
    makes: dict[str, Make] = {n: make for n, make in (OURS | FREE).items() if n in names}
    makes |= {name: grids[name][setting] for name, setting in settings.items()}
    parts = [range(k, min(k + 5, replicates)) for k in range(0, replicates, 5)]
    task = progress.add_task("playing", total=len(makes) * len(parts))
    futures = {
        name: [pool.submit(played, make, part, rounds, rate) for part in parts]
        for name, make in makes.items()
    }
    chosen = {}
    for name, several in futures.items():
        found = []
        for future in several:
            found.append(future.result())
            progress.advance(task)
        chosen[name] = np.concatenate(found)
    return Play(chosen, settings)


HEADER = ("", "mean wait, ms", "p99", "lost, ‰", "dollars", "best server, %", "back after")
BY_DOLLARS = [*OURS, "epsilon-greedy", "discounted Thompson, logs", "discounted UCB, cap 0.6 s"]


def row(name: str, of: Seen) -> list[str]:
    return [
        name, said(of.wait), said(of.tail, ".0f"), said(of.lost), said(of.dollars, ".3f"),
        said(of.best, ".0f"), said(of.back, ",.0f"),
    ]  # fmt: skip


def text_of(results: dict[str, Seen], by_dollars: dict[str, Seen], notes: Sequence[str]) -> str:
    """Return the tables in Markdown."""
    order = sorted(results, key=lambda name: results[name].wait.mean())
    parts = [table(HEADER, [row(name, results[name]) for name in order])]
    header = ("a dollar is worth 50 seconds", "cost, ms", "mean wait, ms", "dollars", "cheapest, %")
    order = sorted(by_dollars, key=lambda name: by_dollars[name].cost.mean())
    rows = [
        [name, said(x.cost), said(x.wait), said(x.dollars, ".3f"), said(x.best, ".0f")]
        for name, x in ((name, by_dollars[name]) for name in order)
    ]
    parts.append(table(header, rows))
    if LIVE.exists():
        with LIVE.open(newline="") as file:
            live = list(DictReader(file))
        header = ("one live run", *list(live[0])[1:])
        parts.append(table(header, [list(x.values()) for x in live]))
    return "\n\n".join([*parts, *notes])


def figure_of(results: dict[str, Seen], chosen: dict[str, np.ndarray]) -> Figure:
    """Draw mean waits, and the share of the fast server over time."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.0, 4.4), width_ratios=(2, 3), layout="constrained"
    )
    bars(left, {name: x.wait for name, x in results.items()}, list(OURS), list(CAPPED))
    left.set_xlabel("mean wait, milliseconds")
    left.set_title("blue: ours, untuned; orange: given a cap, tuned", loc="right", fontsize=9)
    capped = min(CAPPED, key=lambda name: results[name].wait.mean())
    lines = {
        RECOMMENDED: gallery.OURS, capped: gallery.TUNED, "LiteLLM lowest latency": "black",
        "two choices, least busy": gallery.OTHER,
    }  # fmt: skip
    for name in (name for name in lines if name in chosen):
        hits = (chosen[name] == FAST).mean(axis=0)
        share = np.convolve(hits, np.ones(WINDOW)) / np.minimum(
            np.arange(1, hits.size + WINDOW), WINDOW
        )
        t = np.arange(0, hits.size, 25)
        right.plot(t, 100.0 * share[t], color=lines[name], lw=1.4, label=name)
    trouble = {"median": "slow", "hangs": "hangs", "fails": "fails", "out": "out"}
    for begin, end, server, what in CHANGES:
        if server == FAST and "price" not in what and begin < hits.size:
            right.axvspan(begin, min(end, hits.size), color="#eeeeee", lw=0)
            where = 0.5 * (begin + min(end, hits.size))
            right.text(where, 103, trouble[next(iter(what))], ha="center", fontsize=9)
    right.set(ylim=(0, 112), xlim=(0, hits.size), xlabel="request")
    right.set_ylabel("% of the requests to the fastest server")
    right.set_yticks(range(0, 101, 25))
    right.locator_params(axis="x", nbins=5)
    right.xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2,
                  frameon=False)  # fmt: skip
    right.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command("routing")
    parser.add_argument("--quick", action="store_true", help="two replicates of 2,500 requests")
    parser.add_argument("--litellm", type=Path, default=LITELLM, help="a Python that has LiteLLM")
    given = parser.parse_args(arguments)
    replicates, rounds = (2, 2500) if given.quick else (REPLICATES, ROUNDS)
    console, notes, chosen = Console(stderr=True), [], dict[str, np.ndarray]()
    workers = ThreadPoolExecutor(1) if given.quick else ProcessPoolExecutor(2)
    with workers as pool, ThreadPoolExecutor(1) as other, Progress(console=console) as progress:
        theirs = other.submit(litellm, given.litellm, replicates, rounds)
        names = [*OURS, *FREE, *CAPPED]
        plain = play(pool, replicates, rounds, 0.0, names, progress)
        priced = play(pool, replicates, rounds, RATE, BY_DOLLARS, progress)
        try:
            chosen |= theirs.result()
        except (OSError, subprocess.CalledProcessError) as error:
            notes.append(f"LiteLLM's routers are left out: {error}. See --litellm.")
    chosen |= plain.chosen
    results = {name: seen(arms, 0.0) for name, arms in chosen.items()}
    results[ORACLE] = seen(np.tile(best()[:rounds], (replicates, 1)), 0.0)
    same = {name: arms for name, arms in chosen.items() if name not in (OURS | FREE | CAPPED)}
    same |= {name: chosen[name] for name in ("two choices, least busy", "round-robin")}
    by_dollars = {name: seen(arms, RATE) for name, arms in (priced.chosen | same).items()}
    by_dollars[ORACLE] = seen(np.tile(best(RATE)[:rounds], (replicates, 1)), RATE)
    notes.append("\n".join(f"- {name}: {setting}" for name, setting in plain.settings.items()))
    notes.append(verdict(results))
    finish("routing", figure_of(results, chosen), text_of(results, by_dollars, notes), given.into)


def verdict(results: dict[str, Seen]) -> str:
    """Compare the recommended learner with the best of each kind, replicate by replicate."""
    ours, lines = results[RECOMMENDED], []
    for kind, names in (("without a cap", [*THEIRS, *FREE]), ("with a cap", list(CAPPED))):
        there = [name for name in names if name in results]
        rival = min(there, key=lambda name: results[name].wait.mean())
        ratio = said(100.0 * (ours.wait / results[rival].wait - 1.0))
        lines.append(f"{RECOMMENDED} waits {ratio} % longer than the best {kind}, {rival}.")
    for recovery, backs in enumerate(ours.backs.T, start=1):
        within = 100.0 * (backs <= 1.5 * HALF_LIFE).mean()
        lines.append(
            f"Recovery {recovery}: half of the requests after {said(backs, ',.0f')}, "
            f"in {within:.0f}% of the replicates within 1.5 half-lives."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
