"""SCB: minimax-optimal scale-free bandit (Chen & Zhang 2024, Algorithm 1 and Theorem 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, mixed, tsallis


def play(
    n: int,
    profile: str = "practical",
    clip: str | None = None,
    threshold: str = "lazy",
    rate: float | None = None,
    mixing: float | None = None,
    ablation: bool = False,
) -> Player:
    paper = profile == "paper"
    clip = clip or ("scale" if paper else "range")
    rate = rate or (1.0 if paper else 2.0)
    mixing = (1.0 if paper else 0.5) if mixing is None else mixing
    L, C, told, t = np.zeros(n), 0.0, [], 1
    while True:
        width = 2.0 * C if clip != "range" else (max(told) - min(told) if told else 0.0)
        p = tsallis(L, rate / (width * math.sqrt(t))) if width > 0.0 else np.full(n, 1.0 / n)
        q = mixed(p, mixing * n / (2.0 * n + math.sqrt(n * t)) if width > 0.0 else 0.0)
        arm, losses = yield q
        loss = losses[arm]
        if clip != "range":
            L[arm] += ((min(C, max(-C, loss)) if clip == "scale" else loss) + C) / q[arm]
            if abs(loss) > C or (threshold == "largest" and 2.0 * abs(loss) > C):
                C = 2.0 * abs(loss)
        elif told:
            L[arm] += (min(max(told), max(min(told), loss)) - min(told)) / q[arm]
        told.append(loss)
        t += 1
