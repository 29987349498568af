"""CostSCB: scale-free bandit for costs (docs/theory/one-sided.md, section 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, tsallis


def play(
    n: int,
    lower: float = 0.0,
    best_reward: float | None = None,
    outliers: int | str = 0,
    tune: str = "paid",
    rate: float = 2.0,
    implicit: float = 1.0,
) -> Player:
    b = lower if best_reward is None else -best_reward
    L, told, thresholds, Z, t = np.zeros(n), [], [], 0.0, 1
    while True:
        m = outliers + 1 if outliers != "sqrt" else min(2048, math.ceil(math.sqrt(n * t)))
        C = sorted(told)[-m] if len(told) >= m else 0.0
        thresholds.append(C)
        V, W = sum(c * c for c in thresholds), max(thresholds) ** 2 + Z
        p = np.full(n, 1.0 / n)
        if max(thresholds) > 0.0:
            p = tsallis(L, rate / math.sqrt(V if tune == "scale" else W))
        gamma = implicit / (n + t)
        arm, losses = yield p
        x = max(losses[arm], b) - b
        told.append(x)
        L[arm] += min(x, C) / (p[arm] + gamma)
        Z += min(x, C) ** 2 / math.sqrt(n * (p[arm] + gamma))
        t += 1
