"""UMAB-G: bandit for losses of any sign and size (Chen & Zhang 2023)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, log_barrier


def play(n: int, exploration: str = "adaptive", rounds: int = 0) -> Player:
    L, C, Q, weight = np.zeros(n), 1.0, 0.0, 0.5
    G = float(n * rounds) if exploration == "fixed" else 0.0
    while True:
        p = log_barrier(L, 1.0 / weight)
        rho = 2.0 * n**2 + math.sqrt(G)
        lifted = p < 1.0 / rho
        q = p + lifted / rho
        q[p.argmax()] -= lifted.sum() / rho
        arm, losses = yield q
        clipped = max(losses[arm], -2.0 * C)
        C = max(C, -clipped)
        l_hat = clipped / q[arm]
        L[arm] += l_hat
        Q += clipped**2
        weight = math.sqrt(C**2 + Q / n) / 4.0
        if exploration != "fixed":
            G += 2.0 * abs(l_hat * (q[arm] - p[arm]) * rho)
        if exploration == "capped":
            G = min(G, n * rounds)
