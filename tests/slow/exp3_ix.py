"""Exp3-IX for losses in a known range (Neu 2015)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, restricted, softmax, unit


def play(n: int, rounds: int | None = None, delta: float | None = None) -> Player:
    L, t = np.zeros(n), 1
    while True:
        if rounds is None:
            eta = math.sqrt(math.log(n) / (n * t))
        elif delta is None:
            eta = math.sqrt(2.0 * math.log(n) / (n * rounds))
        else:
            eta = math.sqrt((math.log(n) + math.log((n + 1) / delta)) / (n * rounds))
        p = softmax(-eta * L)
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x = unit(losses[arm])
        L += np.where(asleep, x, np.eye(n)[arm] * x / (q[arm] + eta / 2.0))
        t += 1
