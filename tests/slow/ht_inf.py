"""HTINF: heavy-tailed losses of known tail (Huang, Dai & Huang 2022, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from slow.formulas import Player, bisect


def play(n: int, sigma: float = 1.0, order: float = 2.0) -> Player:
    a, L, t = order, np.zeros(n), 1
    theta = 1.0 - 2.0 ** (-(a - 1.0) / (2.0 * a - 1.0))
    if a < 2.0:
        theta = min(theta, (2.0 - 2.0 / a) ** (1.0 / (2.0 - a)))
    b = a / (a - 1.0)
    while True:
        eta = 1.0 / (sigma * t ** (1.0 / a))
        scaled = eta * (L - L.min())
        low, high = 1.0, n ** (1.0 / b)
        c = bisect(lambda c, scaled=scaled: 1.0 - ((scaled + c) ** -b).sum(), low, high)
        p = (scaled + c) ** -b
        p /= p.sum()
        arm, losses = yield p
        if abs(losses[arm]) <= theta / eta * p[arm] ** (1.0 / a):
            L[arm] += losses[arm] / p[arm]
        t += 1
