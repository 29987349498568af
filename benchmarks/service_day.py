"""Mean wait on service days: incidents, an outage, and time-outs whose losses are delayed.

    python benchmarks/service_day.py                # plays what is missing, then writes the tables
    python benchmarks/service_day.py --write-only   # docs/results/tables/service-day-1.csv, -2.csv

The first table is one day of 20,000 requests to six services (`ServiceDay`, and its best service is
absent from 16,000 to 18,000); the second has random days, which nothing was tuned on. Each line of
docs/results/data/service_day.csv is one policy on one day. Replicates are
paired: in each, all policies meet the same waits. A time-out is observed 17 requests later. All
policies choose among the services present; two rows show learners without masks, whose choice of an
absent service is forgotten, and who are asked again. Waits are in ms.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from result_tables import write_tables

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from routing_policies import Averages, Ours, RoundRobin, SlidingWindow

from unbounded import AdaINF, CostSCB, ScaleWarning, settings

ROUNDS, DELAY, SIGMA, SEEDS, DAYS = 20_000, 17, 0.35, 20, 40
FIRST_DAY = 7000  # the seed of the first random day
ORACLE, RANDOM = "oracle", "random choice"
DATA = Path(__file__).resolve().parents[1] / "docs" / "results" / "data" / "service_day.csv"


class Day(NamedTuple):
    """What holds in each round; ``back`` are the rounds in which the best service recovers."""

    medians: np.ndarray  # (rounds, services)
    rates: np.ndarray  # of time-outs
    present: np.ndarray
    timeout: float
    back: tuple[int, ...]

    @property
    def means(self) -> np.ndarray:
        """Return expected waits; infinite where a service is absent."""
        usual = self.medians * math.exp(0.5 * SIGMA * SIGMA)
        found = usual + self.rates * (self.timeout - usual)
        return np.where(self.present, found, np.inf)

    def waits(self, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        usual = self.medians * np.exp(SIGMA * rng.standard_normal(self.medians.shape))
        return np.where(rng.random(usual.shape) < self.rates, self.timeout, usual)


def service_day() -> Day:
    """Return the day of `unbounded.adversaries.ServiceDay`, and the best service is absent once."""
    medians = np.tile([120.0, 80.0, 150.0, 60.0, 200.0, 95.0], (ROUNDS, 1))
    rates, present = np.full(medians.shape, 0.001), np.ones(medians.shape, bool)
    medians[3000:6000, 3] *= 6.0
    rates[3000:6000, 3] = 0.05
    medians[9000:10_500, 1] *= 4.0
    rates[12_000:15_000, 3] = 0.03
    present[16_000:18_000, 3] = False
    return Day(medians, rates, present, 30_000.0, (6000, 15_000, 18_000))


def random_day(seed: int) -> Day:
    """Draw 4 to 12 services, time-outs of 1 to 100 s, and 1 to 8 incidents of three kinds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    medians = np.tile(np.exp(rng.uniform(np.log(30.0), np.log(300.0), n)), (ROUNDS, 1))
    rates = np.full(medians.shape, 10.0 ** rng.uniform(-4.0, -2.5))
    present = np.ones(medians.shape, bool)
    order, back = np.argsort(medians[0]), []
    for _ in range(int(rng.integers(1, 9))):
        begin = int(rng.integers(0, 18_000))
        hit = slice(begin, begin + int(rng.integers(500, 4000)))
        service = order[int(rng.integers(0, 3))]  # one of the three fastest
        kind = rng.random()
        if kind < 0.5:
            medians[hit, service] *= rng.uniform(2.0, 8.0)
        if 0.3 < kind < 0.85:
            rates[hit, service] = 10.0 ** rng.uniform(-2.0, -1.0)
        if kind >= 0.85:
            present[hit, service] = present[hit].sum(axis=1) < 3  # at least two remain
        back += [hit.stop] if service == order[0] and hit.stop < ROUNDS - 1000 else []
    return Day(medians, rates, present, float(10.0 ** rng.uniform(3.0, 5.0)), tuple(back))


class AskAgain(Ours):
    """A choice of an absent service is forgotten; after 100 of them, chance decides."""

    rng = np.random.default_rng(0)

    def ask(self, present: Sequence[bool]) -> Any:
        for _ in range(100):
            choice = self.learner.ask()
            if present[choice.arm]:
                return choice
            self.learner.forget(choice)
        return int(self.rng.choice(np.flatnonzero(present)))

    def tell(self, choice: Any, wait: float, answered: Any = None) -> None:
        if not isinstance(choice, int):
            self.learner.tell(choice, wait)


Policy = Callable[[int, int], Any]  # from the number of services and the seed


def ours(cls: Any, **given: Any) -> Policy:
    return lambda n, seed: Ours(cls(n, **given, seed=seed))


def asked_again(cls: Any, **given: Any) -> Policy:
    return lambda n, seed: AskAgain(cls(n, **given, seed=seed))


def theirs(cls: type[Averages] = Averages, **given: Any) -> Policy:
    return lambda n, seed: cls(n, np.random.default_rng(seed), **given)


TUNED = {  # given a cut in ms, which is its range; the best of the eight is chosen afterwards
    f"discounted UCB, half-life {h}, cut {cut:g}, width {width:g}": theirs(
        half_life=h, cut=cut, width=width
    )
    for h in (300, 1000)
    for cut in (3000.0, 6000.0)
    for width in (0.0003, 0.003)
}
LEARNERS: dict[str, Policy] = {
    "CostSCB()": ours(CostSCB),
    **{f"CostSCB(half_life={h})": ours(CostSCB, half_life=h) for h in (300, 1000, 3000)},
    **{
        f"CostSCB(half_life={h}, cap={cap})": ours(CostSCB, half_life=h, cap=float(cap))
        for h, cap in ((1000, 30), (1000, 100), (1000, 300), (3000, 100))
    },
    'CostSCB(half_life=1000, outliers="sqrt")': ours(CostSCB, half_life=1000, outliers="sqrt"),
    "AdaINF()": ours(AdaINF),
    **{f"AdaINF(half_life={h})": ours(AdaINF, half_life=h) for h in (300, 1000, 3000)},
    "AdaINF(robust=False)": ours(AdaINF, robust=False),
    **{
        f"AdaINF(half_life={h}, robust=False)": ours(AdaINF, half_life=h, robust=False)
        for h in (300, 1000, 3000)
    },
}
WITHOUT_MASKS: dict[str, Policy] = {
    "asked again: CostSCB(half_life=1000, cap=100)": asked_again(
        CostSCB, half_life=1000, cap=100.0
    ),
    "asked again: AdaINF(half_life=1000, robust=False)": asked_again(
        AdaINF, half_life=1000, robust=False
    ),
}
RIVALS: dict[str, Policy] = {
    **TUNED,
    "sliding-window UCB, window 1000, cut 3000, width 0.0003": theirs(
        SlidingWindow, window=1000, cut=3000.0, width=0.0003
    ),
    "epsilon-greedy 0.05, half-life 300, cut 3000": theirs(half_life=300, cut=3000.0, explore=0.05),
    "epsilon-greedy 0.05, half-life 300": theirs(half_life=300, explore=0.05),
    "power of two, half-life 100, cut 1000": theirs(half_life=100, cut=1000.0, two=True),
    "round-robin": lambda n, seed: RoundRobin(),
}
POLICIES = LEARNERS | WITHOUT_MASKS | RIVALS


def play(policy: Any, day: Day, waits: np.ndarray) -> np.ndarray:
    """Return the services chosen; a time-out is observed DELAY requests later."""
    arms, late = [], deque[tuple[int, Any, float]]()
    everything, all_present = day.present.tolist(), day.present.all(axis=1).tolist()
    usual, rows = [True] * day.present.shape[1], waits.tolist()
    for t, row in enumerate(rows):
        while late and late[0][0] <= t:
            _, ticket, wait = late.popleft()
            policy.tell(ticket, wait)
        ticket = policy.ask(usual if all_present[t] else everything[t])
        arm = int(ticket)
        arms.append(arm)
        if row[arm] < day.timeout:
            policy.tell(ticket, row[arm])
        else:
            late.append((t + DELAY, ticket, row[arm]))
    return np.array(arms)


class Seen(NamedTuple):
    wait: float  # realized mean, ms
    expected: float  # mean of the expected waits
    best: float  # share of the requests that went to the best service, in percent
    recovery: float  # the same, in the 1,000 requests after the best service recovered


def seen(arms: np.ndarray, day: Day, waits: np.ndarray) -> Seen:
    t, means = np.arange(ROUNDS), day.means
    best = 100.0 * (arms == means.argmin(axis=1))
    after = [best[at : at + 1000].mean() for at in day.back]
    recovery = float(np.mean(after)) if after else math.nan
    return Seen(waits[t, arms].mean(), means[t, arms].mean(), best.mean(), recovery)


def days(kind: str) -> Iterator[tuple[int, Day, int]]:
    """Yield numbers of the days, the days, and the seeds of their waits."""
    if kind == "one":
        for seed in range(SEEDS):
            yield seed, service_day(), seed
    else:
        for i in range(DAYS):
            yield i, random_day(FIRST_DAY + i), i


def play_days(kind: str, part: int, parts: int) -> None:
    """Play what is missing; every ``parts``-th day."""
    played = load(kind)
    for i, day, seed in days(kind):
        if i % parts != part:
            continue
        waits, n, means = day.waits(seed), day.medians.shape[1], day.means
        policies = POLICIES if kind == "one" else LEARNERS | RIVALS
        arms = {ORACLE: lambda: means.argmin(axis=1)} | {  # noqa: B023
            name: lambda make=make: play(make(n, seed), day, waits)  # noqa: B023
            for name, make in policies.items()
        }
        for name, choose in arms.items():
            if (i, name) not in played:
                append(kind, i, name, seen(choose(), day, waits))
        if kind == "random" and (i, RANDOM) not in played:
            mean = np.mean(means, axis=1, where=day.present).mean()
            append(kind, i, RANDOM, Seen(math.nan, float(mean), math.nan, math.nan))


def load(kind: str) -> dict[tuple[int, str], Seen]:
    if not DATA.exists():
        return {}
    with DATA.open(newline="") as file:
        return {
            (int(row["day"]), row["policy"]): Seen(*(float(row[x]) for x in Seen._fields))
            for row in csv.DictReader(file)
            if row["kind"] == kind
        }


def append(kind: str, day: int, policy: str, found: Seen) -> None:
    new = not DATA.exists()
    with DATA.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["kind", "day", "policy", *Seen._fields])
        writer.writerow([kind, day, policy, *(f"{x:.5g}" for x in found)])


def by_policy(kind: str) -> dict[str, list[Seen]]:
    """Return what was seen of each policy, on the days that all of them have played."""
    played = load(kind)
    names = list(dict.fromkeys(name for _, name in played))
    numbers = sorted({i for i, _ in played})
    complete = [i for i in numbers if all((i, name) in played for name in names)]
    return {name: [played[i, name] for i in complete] for name in names}


def around(values: Sequence[float], digits: int = 0) -> str:
    """Mean and half a 95% confidence interval."""
    found = np.array([x for x in values if not math.isnan(x)])
    error = round(1.96 * found.std(ddof=1) / math.sqrt(found.size), 9)
    return f"{found.mean():.{digits}f} ± {error:.2g}"


def one_day() -> list[str]:
    rows = by_policy("one")
    if not rows:
        return []
    tuned = min(TUNED, key=lambda name: np.mean([x.expected for x in rows[name]]))
    lines = [f"# One service day, {len(rows[tuned])} replicates", "",
             "| policy | mean wait | expected wait | share of the best, % | after recovery, % "
             "| expected wait above the best tuned, % |", "|---|---|---|---|---|---|"]  # fmt: skip
    for name, found in rows.items():
        ratio = [
            100.0 * (x.expected / y.expected - 1.0) for x, y in zip(found, rows[tuned], strict=True)
        ]
        lines.append(
            f"| {name} | {around([x.wait for x in found], 1)} | "
            f"{around([x.expected for x in found], 1)} | "
            f"{around([x.best for x in found])} | {around([x.recovery for x in found])} | "
            f"{around(ratio, 1) if name != tuned else ''} |"
        )
    return lines


def many_days() -> list[str]:
    """Expected wait above that of the best service, in percent of random choice's."""
    rows = by_policy("random")
    if not rows:
        return []
    oracle, chance = (np.array([x.expected for x in rows.pop(name)]) for name in (ORACLE, RANDOM))
    shares = {
        name: 100.0 * (np.array([x.expected for x in found]) - oracle) / (chance - oracle)
        for name, found in rows.items()
    }
    best = np.min([shares[name] for name in TUNED], axis=0)
    shares["discounted UCB, best of the eight on each day"] = best
    lines = ["", f"# {oracle.size} random days", "",
             "| policy | mean | 90% quantile | worst | mean above the best of the eight |",
             "|---|---|---|---|---|"]  # fmt: skip
    for name, share in shares.items():
        lines.append(
            f"| {name} | {around(share, 1)} | {np.quantile(share, 0.9):.0f} | "
            f"{share.max():.0f} | {around(share - best, 1)} |"
        )
    return lines


def page() -> str:
    return "\n".join(one_day() + many_days())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-only", action="store_true", help="play nothing")
    parser.add_argument("--kind", choices=("one", "random"))
    parser.add_argument("--part", type=int, default=0, help="of the days, with --parts")
    parser.add_argument("--parts", type=int, default=1)
    given = parser.parse_args()
    settings.jit = "always"
    warnings.simplefilter("ignore", ScaleWarning)
    if not given.write_only:
        for kind in ("one", "random") if given.kind is None else (given.kind,):
            play_days(kind, given.part, given.parts)
    write_tables("service-day", page())


if __name__ == "__main__":
    main()
