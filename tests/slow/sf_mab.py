"""SF-MAB: scale-free bandit with a log barrier (Putta & Agrawal 2022, Algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, log_barrier, mixed


def play(n: int, exploration: str = "fixed") -> Player:
    L, M, Gam, gamma, t = np.zeros(n), 0.0, 0.0, 0.5, 1
    while True:
        eta = n / (1.0 + M)
        p = log_barrier(L, eta)
        q = mixed(p, gamma)
        arm, losses = yield q
        l_hat = np.eye(n)[arm] * losses[arm] / q[arm]
        # sup_r <l_hat, p - r> - Breg(r, p) / eta: its maximiser is a log-barrier solution
        r = log_barrier(l_hat + 1.0 / (eta * p), eta)
        M += l_hat @ (p - r) - (r / p - 1.0 - np.log(r / p)).sum() / eta
        Gam += gamma * abs(losses[arm]) / ((1.0 - gamma) * p[arm] + gamma / n)
        gamma = n / (2.0 * n + Gam) if exploration == "adaptive" else min(0.5, math.sqrt(n / t))
        L += l_hat
        t += 1
