"""UCB1 for losses in a known range (Auer, Cesa-Bianchi & Fischer 2002)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, unit


def play(n: int) -> Player:
    gains: list[list[float]] = [[] for _ in range(n)]
    t = 0
    while True:
        if t < n:
            arm = t
        else:
            arm = int(
                np.argmax([np.mean(g) + math.sqrt(2.0 * math.log(t) / len(g)) for g in gains])
            )
        arm, losses = yield np.eye(n)[arm]
        gains[arm].append(1.0 - unit(losses[arm]))
        t += 1
