"""The recorded trace, replicates of it, and how policies play one in virtual time.

.venv/litellm/bin/python examples/routing_replay.py FILE.npy    # what LiteLLM's policies choose
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from routing_policies import (
    Adaptive,
    Answered,
    Averages,
    LeastBusyOfTwo,
    LowestLatency,
    Ours,
    RoundRobin,
    SlidingWindow,
    Thompson,
)
from routing_record import BETWEEN, PHASES, ROUNDS, TIMEOUT, TRACE, USUAL, states
from routing_servers import SPREAD

from unbounded import AdaINF, CostSCB, ScaleWarning, recommend

N = len(USUAL)
FAILURE = TIMEOUT  # what a request costs that is answered by an error, in seconds
BLOCK = 50  # requests that stay together


class Draw(NamedTuple):
    """What every server would answer to every request."""

    seconds: np.ndarray  # (rounds, N), until the answer
    ok: np.ndarray
    present: np.ndarray
    dollars: np.ndarray
    phase: np.ndarray  # (rounds,)

    @property
    def waits(self) -> np.ndarray:
        """Return seconds; time-outs and failures have a price."""
        return np.where(self.ok, self.seconds, FAILURE)

    def costs(self, rate: float = 0.0) -> np.ndarray:
        """Return waits, and a dollar is worth ``rate`` seconds."""
        return self.waits + rate * self.dollars


def best(rate: float = 0.0) -> np.ndarray:
    """Return the server with the least expected cost, by the script, for each request."""
    usual = math.exp(0.5 * SPREAD**2)  # the mean over the median
    servers = []
    for begin in PHASES:
        costs = []
        for one in states(begin):
            answer = one.hangs * TIMEOUT + (1.0 - one.hangs) * (
                usual * one.median + 1e-6 * rate * one.price
            )
            cost = one.fails * FAILURE + (1.0 - one.fails) * answer
            costs.append(math.inf if one.out else cost)
        servers.append(int(np.argmin(costs)))
    return np.repeat(servers, np.diff([*PHASES, ROUNDS]))


@cache
def recorded() -> Draw:
    """Return what was recorded."""
    with gzip.open(TRACE, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=int)
    phase = np.searchsorted(PHASES, np.arange(len(rows)), side="right") - 1
    out = np.array([[state.out for state in states(begin)] for begin in PHASES])[phase]
    answers, prices = rows[:, :N], rows[:, N:]
    ok = answers > 0
    dollars = 1e-6 * np.where(ok, prices, 0)  # failures are free
    return Draw(1e-4 * np.abs(answers), ok, ~out & (answers != 0), dollars, phase)


def replicate(trace: Draw, seed: int, rounds: int = ROUNDS) -> Draw:
    """Draw blocks of the trace anew, within each phase."""
    rng, rows = np.random.default_rng(seed), []
    for phase in np.unique(trace.phase):
        there = np.flatnonzero(trace.phase == phase)
        first = rng.integers(there.size, size=-(-there.size // BLOCK))
        places = (first[:, None] + np.arange(BLOCK)).ravel()[: there.size] % there.size
        rows.append(there[places])
    return Draw(*(field[np.concatenate(rows)[:rounds]] for field in trace))


def replay(policy: Any, draw: Draw, costs: np.ndarray) -> np.ndarray:
    """Return the servers chosen; what a request cost is known when its answer comes."""
    arms, coming = np.empty(len(costs), np.int8), list[tuple[float, int, int, Any]]()
    rows, seconds, ok = costs.tolist(), draw.seconds.tolist(), draw.ok.tolist()
    present = draw.present.tolist()
    for t in range(len(rows)):
        now = t * BETWEEN
        while coming and coming[0][0] <= now:
            _, asked, arm, ticket = heapq.heappop(coming)
            took = seconds[asked][arm]
            answered = Answered(asked * BETWEEN, took, ok[asked][arm], took >= TIMEOUT)
            policy.tell(ticket, rows[asked][arm], answered)
        ticket = policy.ask(present[t])
        arm = arms[t] = int(ticket)
        heapq.heappush(coming, (now + seconds[t][arm], t, arm, ticket))
    return arms


Make = Callable[[int], Any]  # of a policy, from a seed


def _recommended(seed: int) -> Ours:
    return Ours(recommend(lower=0.0, changing=True, delayed=True).learner(n_arms=N, seed=seed))


def _ours(cls: Any, seed: int, **given: Any) -> Ours:
    return Ours(cls(N, **given, seed=seed))


def _round_robin(seed: int) -> RoundRobin:
    return RoundRobin()


def _averages(cls: type[Averages], seed: int, **given: Any) -> Averages:
    return cls(N, np.random.default_rng(seed), **given)


def _averaging(cls: type[Averages] = Averages, **given: Any) -> Make:
    return partial(_averages, cls, **given)


RECOMMENDED = "recommend(lower=0, changing=True)"
OURS: dict[str, Make] = {
    RECOMMENDED: _recommended,
    "AdaINF(half_life=1000)": partial(_ours, AdaINF, half_life=1000),
    "CostSCB()": partial(_ours, CostSCB),
}
THEIRS: dict[str, Make] = {
    "LiteLLM lowest latency": partial(LowestLatency, N),
    "LiteLLM adaptive router": partial(Adaptive, N, prices=[state.price for state in USUAL]),
}
FREE: dict[str, Make] = {  # given no cap and no range
    "epsilon-greedy": _averaging(half_life=300, explore=0.05),
    "epsilon-greedy, half-life 1000": _averaging(half_life=1000, explore=0.05),
    "discounted Thompson, logs": partial(Thompson, N, half_life=1000),
    "two choices, least average": _averaging(half_life=100, two=True),
    "two choices, least busy": partial(LeastBusyOfTwo, N),
    "round-robin": _round_robin,
}
WIDTHS = (0.0003, 0.003, 0.03)
CAPPED: dict[str, dict[str, Make]] = {  # settings of each, of which one is chosen
    **{
        f"discounted UCB, cap {cap:g} s": {
            f"half-life {h}, width {width:g}": _averaging(half_life=h, cut=cap, width=width)
            for h in (300, 1000)
            for width in WIDTHS
        }
        for cap in (0.2, 0.6, 2.0)
    },
    **{
        f"sliding-window UCB, cap {cap:g} s": {
            f"window {window}, width {width:g}": _averaging(
                SlidingWindow, window=window, cut=cap, width=width
            )
            for window in (500, 1500)
            for width in WIDTHS
        }
        for cap in (0.2, 0.6, 2.0)
    },
    "epsilon-greedy, cap": {
        f"cap {cap:g} s, half-life {h}": _averaging(half_life=h, cut=cap, explore=0.05)
        for cap in (0.2, 0.6)
        for h in (100, 300)
    },
}


def live_policies() -> dict[str, Make]:
    """Return one policy of each kind, those with a cap as they were tuned on the trace."""
    capped = {
        "discounted UCB, cap 2 s": "half-life 1000, width 0.0003",
        "sliding-window UCB, cap 2 s": "window 1500, width 0.0003",
    }
    tuned = {name: CAPPED[name][setting] for name, setting in capped.items()}
    return {**OURS, **THEIRS, **FREE, **tuned}


def played(make: Make, seeds: Sequence[int], rounds: int, rate: float) -> np.ndarray:
    """Return what a policy chose in replicates: (seeds, rounds)."""
    warnings.simplefilter("ignore", ScaleWarning)  # time-outs set scales: that is the problem
    trace = recorded()
    return np.array(
        [
            replay(make(seed), draw, draw.costs(rate))
            for seed in seeds
            for draw in [replicate(trace, seed, rounds)]
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("into", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    found = [played(make, range(given.seeds), given.rounds, 0.0) for make in THEIRS.values()]
    np.save(given.into, np.array(found))


if __name__ == "__main__":
    main()
