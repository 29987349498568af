"""Selling an order within four hours, as a layered MDP with losses in dollars.

    python examples/order_execution.py
    python examples/order_execution.py --market googl

A million euros are to be sold in four hours, in units of 250,000: nothing, one unit or all that
is left in each hour; what is left in the last hour is sold then. Prices and volumes are those of
EUR/USD in 2017, by the hour (gym-anytrading). A loss is the shortfall against the price at
arrival, plus an assumed cost of impact: 100 dollars times the square of the units, over the
square root of the hour's volume (in units of the median). The state is what is left and whether
the hour before was a busy one. An episode begins at an hour drawn at random, so that 6,221
overlapping windows make 10,000 episodes; all policies get the same ones.

The other market is GOOGL from 2009 to 2018, by the day: a thousand shares within four days, in
units of 250, from 2,331 overlapping windows. An hour is then a day.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from gallery import bars, command, data_file, finish, interval, table
from joblib import Parallel, delayed

from unbounded import SCBRL, UOBREPS, MDPLearner, warm

HOURS, UNITS, EUROS, IMPACT = 4, 4, 250_000.0, 100.0
EPISODES, REPLICATES = 10_000, 20
FILES = {"eurusd": "FOREX_EURUSD_1H_ASK.csv", "googl": "STOCKS_GOOGL.csv"}
SIZES = {"eurusd": EUROS, "googl": 250.0}  # of a unit, in euros or shares
RANGES = {"eurusd": 4_000.0, "googl": 25_000.0}  # dollars: 99% of the losses are within ± that
TITLES = {"eurusd": "a million euros in four hours", "googl": "1,000 GOOGL shares in four days"}
LEFT = ((4,), (4, 3, 0), (4, 3, 2, 0), (4, 3, 2, 1, 0))  # what can be left before each hour
LAYERS = [2 * len(left) for left in LEFT]
NOTHING, ONE, ALL = range(3)


class Market(NamedTuple):
    price: np.ndarray  # in dollars, at the end of each hour
    cost: np.ndarray  # of the impact of one unit, in dollars
    busy: np.ndarray  # whether the volume of the hour was above the median
    size: float = EUROS  # of a unit


def market(name: str) -> Market:
    path = data_file("gym_anytrading", "datasets", "data", FILES[name])
    with path.open(encoding="utf-8") as file:
        rows = [(float(row["Close"]), float(row["Volume"])) for row in csv.DictReader(file)]
    price, volume = np.array(rows).T
    usual = np.median(volume)
    return Market(price, IMPACT * np.sqrt(usual / volume), volume > usual, SIZES[name])


def sold(hour: int, left: int, action: int) -> int:
    return left if action == ALL or hour == HOURS - 1 else min(left, int(action == ONE))


def state(hour: int, left: int, busy: bool) -> int:
    return 2 * LEFT[hour].index(left) + int(busy)


def support() -> np.ndarray:
    """Which transitions are possible: what is left is known, how busy the market will be is not."""
    possible = [np.ones(LAYERS[0], dtype=bool)]
    for hour in range(HOURS - 1):
        table_ = np.zeros((LAYERS[hour], 3, LAYERS[hour + 1]), dtype=bool)
        for s, left in enumerate(np.repeat(LEFT[hour], 2)):
            for action in range(3):
                after = state(hour + 1, int(left) - sold(hour, int(left), action), False)
                table_[s, action, after : after + 2] = True
        possible.append(table_.ravel())
    return np.concatenate(possible)


def episode(data: Market, first: int, act: Callable[[int, int], int]) -> tuple[list, list, list]:
    """States, actions and losses of an order that arrives at the end of hour ``first``."""
    left, states, actions, losses = UNITS, [], [], []
    for hour in range(HOURS):
        now = first + 1 + hour
        s = state(hour, left, bool(data.busy[now - 1]))
        a = act(hour, s)
        units = sold(hour, left, a)
        shortfall = units * data.size * (data.price[first] - data.price[now])
        states.append(s)
        actions.append(a)
        losses.append(float(shortfall + data.cost[now] * units**2))
        left -= units
    return states, actions, losses


def windows(data: Market, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(len(data.price) - HOURS, size=EPISODES)


def learned(name: str, make: Callable[[int], MDPLearner], seed: int) -> np.ndarray:
    """What each order cost."""
    data, learner, costs = market(name), make(seed), np.empty(EPISODES)
    for t, first in enumerate(windows(data, seed)):
        plan = learner.ask()
        states, actions, losses = episode(data, int(first), plan.act)
        learner.tell(plan, states, actions, losses)
        costs[t] = sum(losses)
    return costs


def followed(name: str, rule: Callable[[int, int], int], seed: int) -> np.ndarray:
    data = market(name)
    return np.array([sum(episode(data, int(f), rule)[2]) for f in windows(data, seed)])


def hindsight(data: Market) -> Callable[[int, int], int]:
    """The best rule for all windows of the data: what is left, and how busy it is, decide."""
    hours = np.arange(len(data.price) - HOURS)
    value = {(0, busy): 0.0 for busy in (False, True)} | dict.fromkeys(
        [(left, busy) for left in range(1, UNITS + 1) for busy in (False, True)], 0.0
    )
    rule: dict[tuple[int, int], int] = {}
    for hour in reversed(range(HOURS)):
        fresh = dict(value)
        for left in LEFT[hour]:
            for busy in (False, True):
                at = hours[data.busy[hours + hour] == busy]
                move = data.price[at] - data.price[at + 1 + hour]
                next_busy = float(data.busy[at + 1 + hour].mean())
                prices = []
                for action in range(3):
                    units = sold(hour, left, action)
                    rest = left - units
                    paid = (units * data.size * move + data.cost[at + 1 + hour] * units**2).mean()
                    later = next_busy * value[rest, True] + (1 - next_busy) * value[rest, False]
                    prices.append(paid + (later if hour < HOURS - 1 else 0.0))
                rule[hour, state(hour, left, busy)] = int(np.argmin(prices))
                fresh[left, busy] = min(prices)
        value = fresh
    return lambda hour, s: rule[hour, s]


def uob(width: float, rate: float) -> Callable[[int], MDPLearner]:
    """UOB-REPS, told that losses are within ± ``width``."""
    return lambda seed: UOBREPS(
        LAYERS,
        3,
        episodes=EPISODES,
        loss_range=(-width, width),
        rate=rate,
        support=support(),
        seed=seed,
    )


def scb_rl(seed: int) -> MDPLearner:
    return SCBRL(LAYERS, 3, episodes=EPISODES, known={"support": support()}, seed=seed)


def at_random(seed: int) -> Callable[[int, int], int]:
    chance = random.Random(seed)
    return lambda hour, s: chance.randrange(3)


def main() -> None:
    parser = command("order_execution")
    parser.add_argument("--market", choices=[*FILES], default="eurusd")
    options = parser.parse_args()
    where = options.market
    warm("SCBRL", "UOBREPS", progress=print)  # else each worker would begin interpreted
    width, best = RANGES[where], hindsight(market(where))
    rules = {
        "one unit every hour (TWAP)": lambda seed: lambda hour, s: ONE,
        "all at once": lambda seed: lambda hour, s: ALL,
        "at random": at_random,
        "best rule in hindsight": lambda seed: best,
    }
    rates = (1.0, 8.0, 64.0)
    with Parallel(n_jobs=2) as workers:
        tries = workers(delayed(learned)(where, uob(width, rate), 900) for rate in rates)
        rate = rates[int(np.argmin([costs.mean() for costs in tries]))]
        makers = {
            "SCB-RL, no range": scb_rl,
            f"UOB-REPS, known range, rate {rate:g}": uob(width, rate),
            "UOB-REPS, range 100 times too small": uob(0.01 * width, rate),
            "UOB-REPS, range 100 times too large": uob(100.0 * width, rate),
        }
        seeds = range(REPLICATES)
        jobs = [delayed(learned)(where, make, seed) for make in makers.values() for seed in seeds]
        jobs += [
            delayed(followed)(where, rule(seed), seed) for rule in rules.values() for seed in seeds
        ]
        done = np.reshape(workers(jobs), (len(makers) + len(rules), REPLICATES, EPISODES))
    costs = dict(zip([*makers, *rules], done, strict=True))
    reference = costs["best rule in hindsight"]  # paired: what luck did to all is taken out

    def over(name: str, part: slice) -> np.ndarray:
        return (costs[name][:, part] - reference[:, part]).mean(axis=1)

    whole, last = slice(None), slice(EPISODES * 4 // 5, None)
    rows = []
    for name in sorted(costs, key=lambda name: over(name, whole).mean()):
        cells = [interval(over(name, part)) for part in (whole, last)]
        rows.append(
            [name, f"{costs[name].mean():,.0f}", *(f"{m:,.0f} ± {h:,.0f}" for m, h in cells)]
        )
    shown = {name: over(name, last) for name in costs if name != "best rule in hindsight"}
    figure, axes = plt.subplots(figsize=(8.0, 3.0), layout="constrained")
    tuned = [name for name in makers if "rate" in name]
    bars(axes, shown, ["SCB-RL, no range"], tuned)
    what = "dollars per order above the best rule in hindsight, last fifth of the orders"
    figure.supxlabel(what, size=10)
    figure.suptitle(f"Selling {TITLES[where]}: 20 replicates of 10,000 orders", size=11)
    header = ["dollars per order", "mean cost", "above best rule, all orders", "last fifth"]
    names = {"eurusd": "order_execution", "googl": "order_execution_googl"}
    finish(names[where], figure, table(header, rows), options.into)


if __name__ == "__main__":
    main()
