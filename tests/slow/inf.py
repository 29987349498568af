"""INF with a polynomial potential (Audibert & Bubeck 2010, theorem 11)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, bisect, unit


def play(n: int, rounds: int) -> Player:
    eta, gamma = math.sqrt(5.0 * rounds), min(0.5, math.sqrt(3.0 * n / rounds))
    V = np.zeros(n)

    def psi(x: np.ndarray) -> np.ndarray:
        return (eta / -x) ** 2 + gamma / n

    while True:
        low, high = eta, 2.0 * eta * math.sqrt(n)  # C - max V
        C = V.max() + bisect(lambda c: 1.0 - psi(V - V.max() - c).sum(), low, high)
        p = psi(V - C)
        p /= p.sum()
        arm, losses = yield p
        V[arm] += (1.0 - unit(losses[arm])) / p[arm]
