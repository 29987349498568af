"""Exp3.S (Auer, Cesa-Bianchi, Freund & Schapire 2002, section 8)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, mixed, unit


def play(n: int, rounds: int, switches: int = 0, loss_range=(0.0, 1.0)) -> Player:
    alpha, S = 1.0 / rounds, switches + 1
    gamma = min(1.0, math.sqrt(n * (S * math.log(n * rounds) + math.e) / ((math.e - 1) * rounds)))
    w = np.ones(n)
    while True:
        p = mixed(w / w.sum(), gamma)
        arm, losses = yield p
        x = np.zeros(n)
        x[arm] = (1.0 - unit(losses[arm], loss_range)) / p[arm]
        w = w * np.exp(gamma * x / n) + math.e * alpha / n * w.sum()
