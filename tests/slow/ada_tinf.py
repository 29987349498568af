"""AdaTINF: heavy-tailed losses of unknown tail (Huang, Dai & Huang 2022, Algorithm 3)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, tsallis


def play(n: int, rounds: int) -> Player:
    L, lam, S, t = np.zeros(n), 1.0, 0.0, 1
    budget = math.sqrt(n * (rounds + 1))
    while True:
        p = tsallis(L, 2.0 / (lam * math.sqrt(t)))  # Psi = -2 sum sqrt(p): half of ours
        arm, losses = yield p
        loss, eta = losses[arm], 1.0 / (lam * math.sqrt(t))
        if abs(loss) > (1.0 - 0.5 ** (1.0 / 3.0)) / eta * math.sqrt(p[arm]):
            c = abs(loss)
        else:
            c = 2.0 * eta * loss**2 / math.sqrt(p[arm])
            L[arm] += loss / p[arm]
        S += c
        if lam * budget < S:
            S, lam = c, 2.0 * lam
            while lam < 2.0 * c / budget:
                lam *= 2.0
        t += 1
