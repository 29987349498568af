"""Thompson sampling on logarithms, with the discounting of Raj & Kalyani (2017)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player
from slow.log_thompson import uniform


def play(n: int, half_life: int, stream: int = 0) -> Player:
    told: list[tuple[int, float | None]] = []  # arm and log2(loss), None for a loss of at most 0
    while True:
        t = len(told) + 1
        seen: list[float] = []
        y = np.zeros(t - 1)
        for r, (_, log) in enumerate(told):
            if log is not None:
                seen.append(log)
                y[:r] = log if len(seen) == 1 else y[:r]  # what came before counts as this one
            y[r] = log if log is not None else min(seen, default=0.0)
        arms = np.array([arm for arm, _ in told], int)
        weight = 2.0 ** ((np.arange(1, t) - (t - 1)) / half_life)
        draws = []
        for i in range(n):
            mine = arms == i
            s = weight[mine].sum()
            if mine.sum() < 5 or s < 1.0:
                draws = list(-np.eye(n)[i])
                break
            x, w = y[mine] - y[mine][0], weight[mine] / s
            variance = (w * (x - w @ x) ** 2).sum()
            f, nu = (s - 3.0, s - 3.0) if s >= 4.0 else (s / 4.0, 1.0)
            u, v = uniform(stream, t, 2 * i), uniform(stream, t, 2 * i + 1)
            z = math.sqrt(nu * ((1.0 - u) ** (-2.0 / nu) - 1.0)) * math.cos(2.0 * math.pi * v)
            draws.append(y[mine][0] + w @ x + z * math.sqrt(variance / f))
        arm, losses = yield np.eye(n)[int(np.argmin(draws))]
        told.append((arm, math.log2(losses[arm]) if losses[arm] > 0.0 else None))
