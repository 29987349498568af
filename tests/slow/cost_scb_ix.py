"""CostSCB-IX: costs, with a high-probability bound (docs/theory/one-sided.md, Theorem O5)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, softmax


def play(
    n: int,
    lower: float = 0.0,
    best_reward: float | None = None,
    outliers: int = 0,
    delta: float | None = None,
) -> Player:
    b = lower if best_reward is None else -best_reward
    iota = math.log(n) if delta is None else math.log(n / delta)
    L, told, t = np.zeros(n), [], 1
    while True:
        C = sorted(told)[-outliers - 1] if len(told) > outliers else 0.0
        eta = math.sqrt(iota / (n * t)) / C if C > 0.0 else 0.0
        gamma = 0.5 * math.sqrt(iota / (n * t))
        p = softmax(-eta * L)
        arm, losses = yield p
        x = max(losses[arm], b) - b
        L[arm] += min(x, C) / (p[arm] + gamma)
        told.append(x)
        t += 1
