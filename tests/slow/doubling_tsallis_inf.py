"""Tsallis-INF with doubling restarts: the obvious way to deal with an unknown scale."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, tsallis


def play(n: int) -> Player:
    R, L, t = 0.0, np.zeros(n), 1
    while True:
        p = tsallis(L, 2.0 / math.sqrt(t))
        arm, losses = yield p
        loss = losses[arm]
        if abs(loss) > R:
            R, L, t = 2.0 * abs(loss), np.zeros(n), 1
        elif R > 0.0:
            L[arm] += (loss + R) / (2.0 * R) / p[arm]
            t += 1
