"""The pictures of docs/guide/concepts.md, from simulations: about two minutes on two cores.

    python benchmarks/concepts.py [--into docs/guide/concepts]

Prints the numbers that the page quotes.
"""

from __future__ import annotations

import argparse
import warnings
from collections import deque
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unbounded import (
    SCB,
    AdaINF,
    CostSCB,
    Exp3,
    Learner,
    ScaleWarning,
    TsallisINF,
    Uniform,
    simulate,
)
from unbounded.adversaries import Adversary, Changing, Latencies, StochasticGap

N, T, REPLICATES = 10, 50_000, 16
# color, dash and marker of each learner: distinct without colors too
LOOKS = {
    "CostSCB": ("#0072B2", "-", "o"),
    'CostSCB(outliers="sqrt")': ("#00735A", "-", "s"),
    "AdaINF": ("#A8407A", "-.", "D"),
    "SCB": ("#8C6D00", "--", "^"),
    'SCB(profile="paper")': ("#E69F00", "--", "v"),
    "Exp3, range [0, 10]": ("#C24E00", ":", "X"),
    "Tsallis-INF, range [0, 10]": ("#7A4A00", ":", "P"),
    "uniform": ("#555555", (0, (1, 3)), ""),
}
LEARNERS: dict[str, Learner] = {
    "CostSCB": CostSCB(N),
    'CostSCB(outliers="sqrt")': CostSCB(N, outliers="sqrt"),
    "AdaINF": AdaINF(N),
    "SCB": SCB(N),
    'SCB(profile="paper")': SCB(N, profile="paper"),
    "Exp3, range [0, 10]": Exp3(N, loss_range=(0.0, 10.0)),
    "Tsallis-INF, range [0, 10]": TsallisINF(N, loss_range=(0.0, 10.0)),
    "uniform": Uniform(N),
}


def curves(name: str, adversary: Adversary) -> tuple[np.ndarray, np.ndarray]:
    """Checkpoints, and mean pseudo-regret at each of them."""
    result = simulate(LEARNERS[name], adversary, T, REPLICATES, seed=1)
    return result.checkpoints, result.pseudo_regret.mean(axis=0)


def share(name: str, adversary: Adversary) -> float:
    """Regret at the end, in percent of the uniform learner's."""
    last, uniform = (curves(who, adversary)[1][-1] for who in (name, "uniform"))
    return 100.0 * float(last / uniform)


def bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def regrets(axes: Axes, names: list[str], adversary: Adversary, unit: float, title: str) -> None:
    """Regret over time, with the names at the ends of the curves."""
    ends = []
    for name in names:
        t, mean = curves(name, adversary)
        color, dash, marker = LOOKS[name]
        axes.plot(t, mean / unit, ls=dash, marker=marker, markevery=9, ms=4, color=color)
        ends.append((float(mean[-1] / unit), name, color))
        print(f"{title}: {name}: {mean[-1] / unit:,.0f}")
    axes.set(title=title, xlabel="round", xlim=(0, T))
    labels(axes, ends)
    bare(axes)


def labels(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Names beside the ends of curves, moved apart where they would overlap."""
    top = max(y for y, _, _ in ends)
    axes.set_ylim(min(0.0, min(y for y, _, _ in ends)) * 1.1, 1.12 * top)
    low, high = axes.get_ylim()
    place = low - 1.0
    for y, name, color in sorted(ends):
        place = max(y, place + 0.075 * (high - low))
        axes.annotate(name, (1.01, (place - low) / (high - low)), xycoords="axes fraction",
                      color=color, fontsize=8, va="center")  # fmt: skip


def unit() -> Figure:
    """Why a unit breaks Exp3: the same latencies in seconds, milliseconds and minutes."""
    units = {"minutes": 1 / 60, "seconds": 1.0, "milliseconds": 1000.0}
    names = ["Exp3, range [0, 10]", "Tsallis-INF, range [0, 10]", "SCB", "AdaINF", "CostSCB"]
    figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    for i, name in enumerate(names):
        values = [share(name, Latencies(fastest=3, scale=scale)) for scale in units.values()]
        print("unit:", name, [f"{value:.1f}" for value in values])
        places = np.arange(3) + 0.16 * (i - 2)
        bars = axes.bar(places, values, 0.15, color=LOOKS[name][0], label=name,
                        hatch="" if "range" not in name else "//", edgecolor="white")  # fmt: skip
        axes.bar_label(bars, fmt="%.0f", fontsize=7)
    axes.axhline(100.0, color="#555555", ls=":")
    axes.set_xticks(range(3), [f"losses in {name}" for name in units])
    axes.set_ylabel("regret, % of choosing at random")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    bare(axes)
    return figure


def clipping() -> Figure:
    """Losses that become six times as large, and the window in which SCB sees them."""
    rounds, learner, rng = 400, SCB(N, seed=3), np.random.default_rng(3)
    losses = np.empty(rounds)
    for t in range(rounds):
        choice = learner.ask()
        losses[t] = (1.0 if t < 200 else 6.0) * (rng.random() - 0.25) + 0.2 * (choice.arm != 4)
        learner.tell(choice, losses[t])
    low, high = np.minimum.accumulate(losses), np.maximum.accumulate(losses)
    below = np.concatenate((losses[:1], low[:-1]))  # the window before each round
    above = np.concatenate((losses[:1], high[:-1]))
    seen = np.clip(losses, below, above)
    cut = seen != losses
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
    t = np.arange(1, rounds + 1)
    left.fill_between(t, below, above, step="mid", color="#dddddd", label="the window so far")
    left.plot(t[~cut], losses[~cut], ".", color="#0072B2", ms=3, label="losses as they were")
    left.plot(t[cut], losses[cut], "x", color="#C24E00", ms=6, label="clipped to the window")
    left.set(xlabel="round", ylabel="loss", title="what clipping does")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    error = np.cumsum(np.abs(losses - seen))
    right.plot(t, high - low, color="#555555", label="the range of the losses so far")
    right.plot(t, error, "--", color="#C24E00", label="cut off by clipping, in sum")
    right.set(xlabel="round", title="what it costs")
    right.legend(frameon=False, fontsize=8)
    print(f"clipping: {cut.sum()} of {rounds} clipped, {error[-1]:.2f} cut off in sum, the range "
          f"is {high[-1] - low[-1]:.2f}; the learner counted {learner.clipped}")  # fmt: skip
    for axes in (left, right):
        bare(axes)
    return figure


def freedoms() -> Figure:
    """Who minds what: the same losses, changed in four ways."""
    changes = {
        "as they are": Latencies(fastest=3),
        "times 1000": Latencies(fastest=3, scale=1000.0),
        "divided by 1000": Latencies(fastest=3, scale=0.001),
        "plus 1000": Latencies(fastest=3, shift=1000.0),
        "minus 1000": Latencies(fastest=3, shift=-1000.0),
    }
    names = ["Exp3, range [0, 10]", "CostSCB", 'SCB(profile="paper")', "SCB", "AdaINF"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a loss below `lower` is what is shown
        table = np.array([[share(who, change) for change in changes.values()] for who in names])
    print("freedoms:", table.round(1).tolist())
    figure, axes = plt.subplots(figsize=(7.5, 2.9), layout="constrained")
    axes.imshow(np.clip(table, 0, 100), cmap="cividis", vmin=0, vmax=100, aspect="auto")
    axes.set_xticks(range(len(changes)), changes)
    axes.set_yticks(range(len(names)), names)
    axes.xaxis.tick_top()
    for (i, j), value in np.ndenumerate(table):
        axes.text(j, i, f"{value:.0f}", ha="center", va="center",
                  color="black" if value > 50 else "white")  # fmt: skip
    axes.set_xlabel("regret in percent of choosing at random: 0 is perfect, 100 is no learning")
    return figure


def outliers() -> Figure:
    """Time-outs that say nothing, and time-outs that say everything."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 3.4), layout="constrained")
    names = ["CostSCB", 'CostSCB(outliers="sqrt")', "AdaINF", "SCB", "uniform"]
    noise = Latencies(rate=0.001, fastest=3)
    matter = Latencies(rate=0.001, fastest_rate=0.01, fastest=3)
    regrets(left, names, noise, 1.0, "time-outs strike every arm alike")
    regrets(right, names, matter, 1.0, "they strike the arm of least median")
    left.set_ylabel("regret, medians of the fastest arm")
    return figure


def play_delayed(make: Learner, delay: int, seed: int) -> float:
    """Mean loss per round above the best arm's, where losses are delayed by so many asks."""
    rng = np.random.default_rng(seed)
    means = np.where(np.arange(N) == 3, 0.3, 0.5)
    waiting: deque[tuple[object, float]] = deque()
    learner, regret, rounds = make, 0.0, 20_000
    coins = rng.random((rounds, N)) < means
    for t in range(rounds):
        choice = learner.ask()
        waiting.append((choice, float(coins[t, choice])))
        regret += means[choice] - means[3]
        if len(waiting) > delay:
            learner.tell(*waiting.popleft())
    return 100.0 * regret / (rounds * (means - means[3]).mean())


def delayed() -> Figure:
    """Losses that arrive some asks later."""
    delays = [0, 10, 100, 1000]
    adaptive = {"delayed": "adaptive", "tune": "scale", "implicit": 0.0, "rate": 1.0}
    makers = {
        "CostSCB": lambda seed: CostSCB(N, seed=seed),
        "AdaINF": lambda seed: AdaINF(N, seed=seed),
        "SCB": lambda seed: SCB(N, seed=seed),
        'CostSCB(delayed="adaptive", ...)': lambda seed: CostSCB(N, seed=seed, **adaptive),
    }
    looks = {**LOOKS, 'CostSCB(delayed="adaptive", ...)': ("#555555", ":", "s")}
    figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    ends = []
    for name, make in makers.items():
        values = [np.mean([play_delayed(make(s), delay, s) for s in range(8)]) for delay in delays]
        print("delayed:", name, [f"{value:.1f}" for value in values])
        color, dash, marker = looks[name]
        axes.plot(range(len(delays)), values, ls=dash, marker=marker, color=color)
        ends.append((float(values[-1]), name, color))
    axes.set_xticks(range(len(delays)), [f"{delay:,}" for delay in delays])
    axes.set_xlim(0, len(delays) - 1)
    axes.set(xlabel="asks between a choice and its loss", ylabel="regret, % of choosing at random")
    labels(axes, ends)
    bare(axes)
    return figure


def changing(seed: int, rounds: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Regret of CostSCB over time: against the best single arm so far, and that of the moment."""
    rng, learner = np.random.default_rng(seed), CostSCB(N, seed=seed)
    means = np.full((rounds, N), 0.5)
    means[:, 3], means[rounds // 2 :, 7] = 0.4, 0.2
    coins = (rng.random((rounds, N)) < means).astype(float)
    paid = np.empty(rounds)
    for t in range(rounds):
        choice = learner.ask()
        paid[t] = coins[t, choice]
        learner.tell(choice, paid[t])
    single = np.cumsum(paid) - np.cumsum(coins, axis=0).min(axis=1)
    best = np.where(np.arange(rounds) < rounds // 2, coins[:, 3], coins[:, 7])
    return single[99::100], np.cumsum(paid - best)[99::100]


def promise() -> Figure:
    """A bound, and what was seen; and what it does not speak of."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.4), layout="constrained")
    learner, adversary = LEARNERS["SCB"], StochasticGap(gap=0.2)
    result = simulate(learner, adversary, T, REPLICATES, seed=1)
    t = result.checkpoints
    bound = [7.0 * np.sqrt(N * s) + 4.0 * N + 1.0 for s in t]
    assert np.isclose(bound[-1], learner.spec.bound(N, T))
    left.plot(t, bound, color="#555555", label="theorem: at most this")
    for row in result.regret:
        left.plot(t, np.maximum(row, 0.3), color="#8C6D00", alpha=0.5, lw=0.8)
    left.plot([], [], color="#8C6D00", label=f"seen: {REPLICATES} runs of SCB")
    left.plot(*curves("uniform", adversary), ls=":", color="black", label="choosing at random")
    left.set(xscale="log", yscale="log", xlabel="round", title="regret against the best arm",
             ylim=(1.0, None))  # fmt: skip
    left.legend(frameon=False, fontsize=8)
    single, moment = np.mean([changing(seed) for seed in range(8)], axis=0)
    t = 100 * np.arange(1, single.size + 1)
    right.plot(t, single, color="#0072B2", label="against the best single arm so far")
    right.plot(t, moment, "--", color="#C24E00", label="against the best arm of the moment")
    print(f"promise: {single[-1]:.0f} against the best single arm, {moment[-1]:.0f} of the moment")
    right.axvline(t[-1] / 2, color="#555555", ls=":", lw=1)
    right.set(xlabel="round", title="CostSCB, where another arm becomes best half-way")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    for axes in (left, right):
        bare(axes)
    return figure


def forgetting() -> Figure:
    """The probability of the best arm: what forgetting costs, and what it is good for."""
    rounds, looks = 20_000, {"CostSCB": ("#0072B2", "o"), "AdaINF": ("#A8407A", "D")}
    figure, panels = plt.subplots(1, 2, figsize=(10.0, 3.4), layout="constrained", sharey=True)
    titles = ("nothing changes", "another arm becomes best half-way")
    for axes, changes, title in zip(panels, (0, 1), titles, strict=True):
        for make in (CostSCB, AdaINF):
            for h, dash in ((None, ":"), (1000, "-")):
                color, marker = looks[make.__name__]
                result = simulate(
                    make(N, half_life=h), Changing(changes=changes), rounds, REPLICATES, seed=1,
                    checkpoints=np.arange(250, rounds + 1, 250), dynamic=True,
                )  # fmt: skip
                mean = result.best_probability.mean(axis=0)
                name = f"{make.__name__}({f'half_life={h}' if h else ''})"
                axes.plot(result.checkpoints, mean, ls=dash, color=color, marker=marker,
                          markevery=9, ms=4, label=name)  # fmt: skip
                print(f"forgetting: {title}: {name}: {mean[39]:.2f} after 10,000, {mean[-1]:.2f} "
                      f"after 20,000")  # fmt: skip
        axes.set(title=title, xlabel="round", xlim=(0, rounds), ylim=(0.0, 1.0),
                 xticks=range(0, rounds + 1, rounds // 4))  # fmt: skip
        bare(axes)
    panels[0].set_ylabel("probability of the best arm")
    panels[0].legend(frameon=False, fontsize=8, loc="lower right")
    panels[1].axvline(rounds / 2, color="#555555", ls=":", lw=1)
    return figure


def main() -> None:
    pictures = (unit, clipping, freedoms, outliers, delayed, promise, forgetting)
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--into", type=Path, default=here / "docs" / "guide" / "concepts")
    parser.add_argument("names", nargs="*", default=[picture.__name__ for picture in pictures])
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ScaleWarning)
    plt.rcParams.update({"svg.hashsalt": "unbounded", "font.size": 9, "svg.fonttype": "path"})
    for picture in pictures:
        if picture.__name__ in options.names:
            path = options.into / f"{picture.__name__}.svg"
            picture().savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
