"""Stock picking in dollars: hold a hundred shares of one of twenty stocks each day, 1990-2022.

    python examples/stock_picking.py

Prices are skfolio's (20 stocks of the S&P 500). A day's move in dollars grows thirtyfold in these
years, so nobody could have said in 1990 what the range of the losses would be. Costs of trading are
left out.
"""

from __future__ import annotations

import csv
import gzip

import matplotlib.pyplot as plt
import numpy as np
from gallery import OTHER, OURS, TUNED, command, data_file, finish, said, table

from unbounded import AHB, SCB, AdaINF, EpsilonGreedy, Exp3, Learner, Uniform

SHARES, SEEDS = 100, 30
RANGES = (100.0, 1_000.0, 10_000.0)  # dollars; what the learners that must know a range are told


def gains() -> tuple[list[str], np.ndarray]:
    """Dollars that each stock gains each day, for a hundred shares."""
    path = data_file("skfolio", "datasets", "data", "sp500_dataset.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        _, *names = next(lines := csv.reader(file))
        prices = np.array([[float(price) for price in line[1:]] for line in lines])
    return names, SHARES * np.diff(prices, axis=0)


def played(learner: Learner, dollars: np.ndarray) -> np.ndarray:
    """What the learner has earned, day by day."""
    earned = np.empty(len(dollars))
    for t, day in enumerate(dollars):
        choice = learner.ask()
        earned[t] = day[choice.arm]
        learner.tell(choice, reward=float(earned[t]))
    return earned.cumsum()


def main() -> None:
    into = command("stock_picking").parse_args().into
    names, dollars = gains()
    n = len(names)
    makers = {
        "SCB": lambda seed: SCB(n, seed=seed),
        "AdaINF": lambda seed: AdaINF(n, seed=seed),
        "AHB": lambda seed: AHB(n, seed=seed),
        "epsilon-greedy": lambda seed: EpsilonGreedy(n, seed=seed),
        "a new stock at random each day": lambda seed: Uniform(n, seed=seed),
    }
    for width in RANGES:
        told = (-width, width)
        makers[f"Exp3, range ±{width:,.0f}"] = lambda seed, told=told: Exp3(
            n, loss_range=told, seed=seed
        )
    curves = {
        name: np.array([played(make(seed), dollars) for seed in range(SEEDS)])
        for name, make in makers.items()
    }
    best = max((name for name in curves if name.startswith("Exp3")), key=_earned(curves))
    fixed = dollars.sum(axis=0)
    rows = [[f"all the time {names[fixed.argmax()]}, chosen in 2022", f"{fixed.max():,.0f}"]]
    rows += [
        [name + " (best in hindsight)" * (name == best), said(curves[name][:, -1], ",.0f")]
        for name in sorted(curves, key=_earned(curves), reverse=True)
    ]
    rows.append(["the median stock, all the time", f"{np.median(fixed):,.0f}"])

    figure, axes = plt.subplots(figsize=(8.0, 4.2), layout="constrained")
    every = slice(None, None, 40)  # days: a figure needs no more
    years = (1990 + np.arange(len(dollars)) / 252.0)[every]
    shown = {
        "AdaINF": OURS, "SCB": "#56B4E9", "epsilon-greedy": "#009E73", best: TUNED,
        "a new stock at random each day": OTHER,
    }  # fmt: skip
    for name, color in shown.items():
        low, middle, high = np.quantile(curves[name][:, every], [0.1, 0.5, 0.9], axis=0) / 1e3
        axes.plot(years, middle, color=color, label=name)
        axes.fill_between(years, low, high, color=color, alpha=0.15, lw=0)
    axes.set(xlabel="year", ylabel="earned, thousands of dollars")
    axes.set_title("Stock picking: nobody beats chance (median of 30 seeds, 80% band)")
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    finish(
        "stock_picking", figure, table(["", f"dollars earned, mean of {SEEDS} seeds"], rows), into
    )


def _earned(curves: dict[str, np.ndarray]):
    return lambda name: curves[name][:, -1].mean()


if __name__ == "__main__":
    main()
