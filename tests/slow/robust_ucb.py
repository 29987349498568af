"""Robust UCB with medians of means (Bubeck, Cesa-Bianchi & Lugosi 2013)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player


def play(n: int, rounds: int, moment: float, order: float = 2.0) -> Player:
    told: list[list[float]] = [[] for _ in range(n)]
    most = int(8.0 * math.log(math.exp(0.125) * rounds**2))

    def bound(losses: list[float]) -> float:
        s = len(losses)
        k = min(most, s // 2)
        blocks = [
            [x for i, x in enumerate(losses) if (i % (2 * most)) // 2 == j] for j in range(k)
        ] or [losses]
        radius = (16.0 * math.log(math.exp(0.125) * rounds**2) / s) ** (1.0 - 1.0 / order)
        median = np.median([sum(block) / len(block) for block in blocks])
        return median - (12.0 * moment) ** (1.0 / order) * radius

    while True:
        unplayed = [i for i in range(n) if not told[i]]
        best = unplayed[0] if unplayed else int(np.argmin([bound(x) for x in told]))
        arm, losses = yield np.eye(n)[best]
        told[arm].append(losses[arm])
