"""Sliding-window UCB (Garivier & Moulines 2011), with B = 1 and xi = 1/2."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, unit


def play(n: int, window: int, width: float = 1.0, loss_range=(0.0, 1.0)) -> Player:
    told: list[tuple[int, float]] = []
    while True:
        lately = [[reward for k, reward in told[-window:] if k == i] for i in range(n)]
        forgotten = [i for i in range(n) if not lately[i]]
        arm = forgotten[0] if forgotten else 0
        if not forgotten:
            xi_ln = 0.5 * math.log(min(len(told), window))
            arm = int(np.argmax([np.mean(x) + width * math.sqrt(xi_ln / len(x)) for x in lately]))
        arm, losses = yield np.eye(n)[arm]
        told.append((arm, 1.0 - unit(losses[arm], loss_range)))
