"""Discounted UCB (Garivier & Moulines 2011), with B = 1 and xi = 1/2."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, unit


def play(n: int, half_life: int, width: float = 1.0, loss_range=(0.0, 1.0)) -> Player:
    told: list[tuple[int, float]] = []
    while True:
        t = len(told)
        arm = t
        if t >= n:
            N, X = np.zeros(n), np.zeros(n)
            for s, (k, reward) in enumerate(told):
                N[k] += 2.0 ** ((s + 1 - t) / half_life)
                X[k] += 2.0 ** ((s + 1 - t) / half_life) * reward
            arm = int(np.argmax(X / N + width * 2.0 * np.sqrt(0.5 * math.log(N.sum()) / N)))
        arm, losses = yield np.eye(n)[arm]
        told.append((arm, 1.0 - unit(losses[arm], loss_range)))
