"""AdaFTRL, full information (Orabona & Pal 2018), on the simplex with the entropy."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, softmax


def play(n: int, strength: float = 1.0) -> Player:
    """With f = strength (ln n + sum w ln w), f* = strength (ln sum exp(. / strength) - ln n)."""
    c, L, D = strength, np.zeros(n), 0.0

    def f_star(theta: np.ndarray) -> float:
        top = theta.max()
        return c * (math.log(np.exp((theta - top) / c).sum()) - math.log(n)) + top

    while True:
        if D > 0.0:
            w = softmax(-L / (c * D))
        else:
            leaders = L.min() == L
            w = leaders / leaders.sum()
        _, losses = yield w
        if D > 0.0:
            D += D * (f_star(-(L + losses) / D) - f_star(-L / D)) + w @ losses
        else:
            D += max(0.0, w @ losses - ((L + losses).min() - L.min()))
        L = L + losses
