"""Tsallis-INF with importance weighting (Zimmert & Seldin 2021, Algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, restricted, tsallis, unit


def play(n: int) -> Player:
    L, t = np.zeros(n), 1
    while True:
        p = tsallis(L, 2.0 / math.sqrt(t))
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x = unit(losses[arm])
        L += np.where(asleep, x, np.eye(n)[arm] * x / q[arm])
        t += 1
