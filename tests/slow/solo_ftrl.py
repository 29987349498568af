"""SOLO FTRL, full information (Orabona & Pal 2018), on the simplex with the entropy."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, softmax


def play(n: int) -> Player:
    L, squares = np.zeros(n), 0.0
    c = math.sqrt(2.75 / math.log(n))
    while True:
        w = softmax(-L / (c * math.sqrt(squares))) if squares > 0.0 else np.full(n, 1.0 / n)
        _, losses = yield w
        L = L + losses
        squares += np.abs(losses).max() ** 2
