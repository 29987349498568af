"""Exp3 for losses in a known range (Auer et al. 2002; this form: Bubeck & Cesa-Bianchi 2012)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, restricted, softmax, unit


def play(n: int, rounds: int | None = None) -> Player:
    L, t = np.zeros(n), 1
    while True:
        eta = (
            math.sqrt(2 * math.log(n) / (n * rounds)) if rounds else math.sqrt(math.log(n) / n / t)
        )
        p = softmax(-eta * L)
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x = unit(losses[arm])
        L += np.where(asleep, x, np.eye(n)[arm] * x / q[arm])
        t += 1
