"""Epsilon-greedy: the smallest mean loss so far, and uniform exploration that fades."""

from __future__ import annotations

import numpy as np

from slow.formulas import Player, mixed


def average(losses: list[float], step: float | None) -> float:
    mean = 0.0
    for s, loss in enumerate(losses, 1):
        weight = max(step or 0.0, 1.0 / s)
        mean += weight * (loss - mean)
    return mean if step else float(np.mean(losses))


def play(n: int, epsilon: float | None = None, step: float | None = None) -> Player:
    told: list[list[float]] = [[] for _ in range(n)]
    t = 1
    while True:
        unpulled = np.array([not losses for losses in told])
        if unpulled.any():
            q = unpulled / unpulled.sum()
        else:
            greedy = np.eye(n)[np.argmin([average(losses, step) for losses in told])]
            q = mixed(greedy, epsilon or min(1.0, (n / t) ** (1.0 / 3.0)))
        arm, losses = yield q
        told[arm].append(losses[arm])
        t += 1
