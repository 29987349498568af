"""Which model of a stream to trust, when each prediction has its price and no unit is known.

    python examples/model_selection.py

Five regressors learn three of River's bundled streams. In each round one of them is asked for its
prediction, and only the error of that one is seen. The streams are short and are played three
times. The targets come in three units: as they are, a millionth and a million of that. The errors
of the models are computed once: only the selectors can differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from gallery import OTHER, OURS, TUNED, command, finish, interval, said, table
from river import (
    bandit,
    datasets,
    dummy,
    linear_model,
    neighbors,
    optim,
    preprocessing,
    proba,
    stats,
    tree,
)

from unbounded import CostSCB
from unbounded.adapters.river import ScaleFree

SEEDS, PASSES = 20, 3
SCALES = (1.0, 1e-6, 1e6)


def trump() -> Any:
    return datasets.TrumpApproval()


def chicks() -> Any:
    return datasets.ChickWeights()


def water() -> Any:
    """The hour, and the flow of an hour and of a day ago: what a forecast may know."""
    past: list[float] = []
    for x, y in datasets.WaterFlow():
        if len(past) >= 24:
            angle = 2.0 * math.pi * x["Time"].hour / 24.0
            yield {"sin": math.sin(angle), "cos": math.cos(angle), "h": past[-1], "d": past[-24]}, y
        past.append(y)


def errors(stream: Callable[[], Any]) -> np.ndarray:
    """Absolute errors of every model, (rounds, models); all of them learn every sample."""
    models = [
        dummy.StatisticRegressor(stats.Mean()),
        linear_model.LinearRegression(optim.SGD(0.001)),
        linear_model.LinearRegression(optim.SGD(0.01)),
        neighbors.KNNRegressor(5, neighbors.SWINN(seed=1)),
        tree.HoeffdingTreeRegressor(),
    ]
    scaler, rows = preprocessing.StandardScaler(), []
    for x, y in stream():
        scaler.learn_one(x)
        z = scaler.transform_one(x)
        rows.append([abs(y - (model.predict_one(z) or 0.0)) for model in models])
        for model in models:
            model.learn_one(z, y)
    return np.array(rows)


def played(policy: bandit.base.Policy, paid: np.ndarray) -> float:
    """The mean error of the predictions that were used; infinite if the policy breaks."""
    total, arms = 0.0, range(paid.shape[1])
    for row in paid.tolist():
        try:
            arm = policy.pull(arms)
            policy.update(arm, -row[arm])
        except (OverflowError, ZeroDivisionError, ValueError):
            return math.inf
        total += row[arm]
    return total / len(paid)


def fields() -> dict[str, list[Callable[[int], bandit.base.Policy]]]:
    """Each family of rivals, with the settings among which the best is taken in hindsight."""
    return {
        "CostSCB, untuned": [lambda s: ScaleFree(CostSCB, {"best_reward": 0.0}, seed=s)],
        "SCB, untuned": [lambda s: ScaleFree(seed=s)],
        "epsilon-greedy": [
            lambda s, e=e, d=d: bandit.EpsilonGreedy(e, decay=d, seed=s)
            for e, d in product((0.02, 0.1, 0.3), (0.0, 0.01))
        ],
        "UCB": [lambda s, d=d: bandit.UCB(d, seed=s) for d in (0.01, 0.1, 1.0, 10.0)],
        "Exp3": [lambda s, g=g: bandit.Exp3(g, seed=s) for g in (0.01, 0.1, 0.5)],
        "Thompson (Gaussian)": [lambda s: bandit.ThompsonSampling(proba.Gaussian(), seed=s)],
        "random": [lambda s: bandit.RandomPolicy(seed=s)],
    }


def main() -> None:
    into = command("model_selection").parse_args().into
    streams = {"TrumpApproval": trump, "ChickWeights": chicks, "WaterFlow": water}
    families, rows, drawn = fields(), [], {}
    for stream_name, stream in streams.items():
        paid = np.tile(errors(stream), (PASSES, 1))
        best = paid.mean(axis=0).min()
        for family, settings in families.items():
            few = [np.mean([played(make(s), paid) for s in range(100, 103)]) for make in settings]
            make = settings[int(np.argmin(few))]  # in the unit 1
            cells = []
            for scale in SCALES:
                ratio = [played(make(s), paid * scale) / (best * scale) for s in range(SEEDS)]
                drawn[stream_name, family, scale] = np.array(ratio)
                cells.append(said(ratio, ".2f") if np.isfinite(ratio).all() else "breaks")
            tuned = " (best setting at x1)" if len(settings) > 1 else ""
            rows.append([f"{stream_name}: {family}{tuned}", *cells])

    figure, all_axes = plt.subplots(1, 3, figsize=(10.0, 3.8), sharey=True, layout="constrained")
    looks = dict(
        zip(families, [OURS, "#56B4E9", TUNED, "#E69F00", "#CC79A7", "#009E73", OTHER], strict=True)
    )
    for axes, stream_name in zip(all_axes, streams, strict=True):
        for k, (family, color) in enumerate(looks.items()):
            for j, scale in enumerate(SCALES):
                ratio = drawn[stream_name, family, scale]
                x = j + (k - 3) * 0.11
                if np.isfinite(ratio).all():
                    mean, half = interval(ratio)
                    label = family if j == 0 else None
                    axes.errorbar(x, mean, half, fmt="o", color=color, ms=5, label=label)
                else:
                    axes.plot(x, 1.0, "x", color=color, ms=8, mew=2)
        axes.set_xticks(range(3), ["x 1", "x 1e-6", "x 1e6"])
        axes.set_title(stream_name)
        axes.set_xlabel("unit of the target (x: breaks)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.axhline(1.0, color="black", lw=0.8, ls=":")
    all_axes[0].set_ylabel("mean error / that of the best model")
    figure.legend(
        *all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    finish(
        "model_selection",
        figure,
        table(["error / best model's", "x 1", "x 1e-6", "x 1e6"], rows),
        into,
    )


if __name__ == "__main__":
    main()
