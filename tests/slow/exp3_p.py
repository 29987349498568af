"""Exp3.P: Exp3 with optimistic gain estimates, for regret bounds with high probability."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, mixed, softmax, unit


def play(n: int, rounds: int, form: str, delta: float = 0.05) -> Player:
    T, G = rounds, np.zeros(n)
    if form == "auer":
        alpha = 2.0 * math.sqrt(math.log(n * T / delta))
        gamma = min(3 / 5, 2.0 * math.sqrt(3 / 5 * n * math.log(n) / T))
        w = np.full(n, math.exp(alpha * gamma / 3.0 * math.sqrt(T / n)))
        while True:
            p = (1.0 - gamma) * w / w.sum() + gamma / n
            arm, losses = yield p
            x_hat = np.eye(n)[arm] * (1.0 - unit(losses[arm])) / p[arm]
            w *= np.exp(gamma / (3.0 * n) * (x_hat + alpha / (p * math.sqrt(n * T))))
    if form == "bubeck":
        b = min(1.0, math.sqrt(math.log(n / delta) / (n * T)))
        eta = 0.95 * math.sqrt(math.log(n) / (n * T))
        gamma = min(1.0, 1.05 * math.sqrt(n * math.log(n) / T))
        while True:
            p = mixed(softmax(eta * G), gamma)
            arm, losses = yield p
            G += (np.eye(n)[arm] * (1.0 - unit(losses[arm])) + b) / p
    gamma = min(2 / 3, 2.0 * math.sqrt(n * math.log(3 * n) / T))
    eta = 2.0 * math.sqrt(math.log(3 * n) / (n * T))
    b = math.sqrt(math.log(3 * n) / (2 * n * T))
    while True:
        p = mixed(softmax(eta * G), gamma)
        arm, losses = yield p
        G[arm] -= math.log(1.0 - b * (1.0 - unit(losses[arm])) / p[arm]) / b
