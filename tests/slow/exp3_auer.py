"""Exp3 in its original form (Auer, Cesa-Bianchi, Freund & Schapire 2002, section 3)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, unit


def play(n: int, rounds: int | None = None, gamma: float | None = None) -> Player:
    if gamma is None:
        gamma = min(1.0, math.sqrt(n * math.log(n) / ((math.e - 1.0) * rounds)))
    w = np.ones(n)
    while True:
        p = (1.0 - gamma) * w / w.sum() + gamma / n
        arm, losses = yield p
        w[arm] *= math.exp(gamma * (1.0 - unit(losses[arm])) / p[arm] / n)
