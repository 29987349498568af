"""Tsallis-INF with reduced-variance loss estimates (Zimmert & Seldin 2021, Algorithm 1, RV)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, restricted, tsallis, unit


def play(n: int) -> Player:
    L, t = np.zeros(n), 1
    while True:
        eta = 4.0 / math.sqrt(t)
        w = tsallis(L, eta)
        arm, losses, *masks = yield w
        asleep, q = restricted(w, masks)
        B = 0.5 * (w >= eta**2)
        played = np.eye(n)[arm]
        x = unit(losses[arm])
        L += np.where(asleep, x, played * (x - B) / q[arm] + B)
        t += 1
