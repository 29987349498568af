"""The full-information algorithms once more, as in slow_bandits.py."""

from __future__ import annotations

import math

import numpy as np

from slow_bandits import Player, softmax


def ada_ftrl(n: int, strength: float = 1.0) -> Player:
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


def ada_hedge(n: int) -> Player:
    """De Rooij et al. 2014, figure 1."""
    L, D = np.zeros(n), 0.0
    while True:
        eta = math.log(n) / D if D > 0.0 else math.inf
        if D > 0.0:
            w = softmax(-eta * L)
        else:
            w = (L.min() == L) / (L.min() == L).sum()

        def mix(values: np.ndarray, eta: float = eta) -> float:
            if math.isinf(eta):
                return values.min()
            low = values.min()
            return low - math.log(np.exp(-eta * (values - low)).sum() / n) / eta

        _, losses = yield w
        D += max(0.0, w @ losses - (mix(L + losses) - mix(L)))
        L = L + losses


def solo_ftrl(n: int) -> Player:
    L, squares = np.zeros(n), 0.0
    c = math.sqrt(2.75 / math.log(n))
    while True:
        w = softmax(-L / (c * math.sqrt(squares))) if squares > 0.0 else np.full(n, 1.0 / n)
        _, losses = yield w
        L = L + losses
        squares += np.abs(losses).max() ** 2


SLOW = {"AdaFTRL": ada_ftrl, "AdaHedge": ada_hedge, "SOLOFTRL": solo_ftrl}
