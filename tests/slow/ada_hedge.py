"""AdaHedge, full information (de Rooij, van Erven, Grunwald & Koolen 2014, figure 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, softmax


def play(n: int) -> Player:
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
