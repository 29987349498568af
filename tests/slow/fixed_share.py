"""Fixed share on clipped costs (docs/theory/forgetting.md, Theorem F9)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, mixed


def play(
    n: int,
    window: int,
    lower: float = 0.0,
    best_reward: float | None = None,
    outliers: int = 0,
    rate: float = 1.0,
) -> Player:
    b = lower if best_reward is None else -best_reward
    eta = rate * math.sqrt(2.0 * (math.log(n * window) + 1.4) / (n * window))
    p, told = np.full(n, 1.0 / n), []
    while True:
        begin = len(told) - len(told) % window
        blocks = told[begin:], told[:begin][-window:]
        C = max(sorted([0.0] * (outliers + 1) + block)[-outliers - 1] for block in blocks)
        arm, losses = yield p
        x = max(losses[arm], b) - b
        told.append(x)
        estimate = np.zeros(n)
        estimate[arm] = min(x, C) / p[arm]
        if C > 0.0:
            p = p * np.exp(-eta * estimate / C)
        p = mixed(p / p.sum(), 1.0 / window)
