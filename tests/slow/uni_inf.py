"""uniINF: parameter-free bandit for heavy-tailed losses (ICLR 2025), reconstructed."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, log_barrier


def play(n: int, rounds: int) -> Player:
    L, S = np.zeros(n), 4.0
    while True:
        x = log_barrier(L, 1.0 / S)
        arm, losses = yield x
        C = S / (4.0 * (1.0 - x[arm]))
        if abs(losses[arm]) < C:
            L[arm] += losses[arm] / x[arm]
        clipped = min(C, max(-C, losses[arm]))
        S = math.sqrt(S**2 + clipped**2 * (1.0 - x[arm]) ** 2 / (n * math.log(rounds)))
