"""Tsallis-INF with importance weighting (Zimmert & Seldin 2021, Algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, tsallis, unit


def play(n: int) -> Player:
    L, t = np.zeros(n), 1
    while True:
        p = tsallis(L, 2.0 / math.sqrt(t))
        arm, losses = yield p
        L[arm] += unit(losses[arm]) / p[arm]
        t += 1
