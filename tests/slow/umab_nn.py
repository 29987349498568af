"""UMAB-NN: bandit for non-negative losses of any size (Chen & Zhang 2023), reconstructed."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, log_barrier


def play(n: int) -> Player:
    L, told = np.zeros(n), [0.0]
    while True:
        weight = math.sqrt(max(told) ** 2 + sum(x * x for x in told) / n) / 4.0
        p = log_barrier(L, 1.0 / weight) if weight > 0.0 else np.full(n, 1.0 / n)
        arm, losses = yield p
        loss = max(0.0, losses[arm])
        told.append(loss)
        L[arm] += loss / p[arm]
