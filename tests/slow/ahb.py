"""AHB: AdaHedge for bandits with extra exploration (Hadiji & Stoltz 2023, Algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, mixed, softmax


def play(n: int, exploration: float = 2.5) -> Player:
    C = 0.0
    for arm in range(n):
        arm, losses = yield np.eye(n)[arm]
        C -= losses[arm] / n
    Y, S, q, t = np.zeros(n), 0.0, np.full(n, 1.0 / n), n + 1
    while True:
        p = mixed(q, min(0.5, math.sqrt(exploration * n * math.log(n) / t)))
        arm, losses = yield p
        y_hat = np.eye(n)[arm] * (-losses[arm] - C) / p[arm] + C
        if S == 0.0:
            gap = -q @ y_hat + y_hat.max()
        else:
            eta = math.log(n) / S
            top = y_hat.max()
            gap = -q @ y_hat + top + math.log(q @ np.exp(eta * (y_hat - top))) / eta
        S += max(0.0, gap)
        Y += y_hat
        q = softmax(math.log(n) / S * Y) if S > 0.0 else q
        t += 1
