"""Scale-free Banker-OMD with a log barrier (Huang, Dai & Huang 2023, Algorithm 4), no delays."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, log_barrier


def play(n: int, rounds: int) -> Player:
    """In the vault's own terms, mirror descent from the point where the last round ended."""
    kept, B = [], 1.0
    gradient = np.full(n, -1.0 * n)  # of Psi = -sum ln x at z_s, up to a constant
    before = 0.0
    uniform_gradient = np.full(n, -1.0 * n)
    while True:
        D = B**2 + sum(x * x for x in kept)
        sigma = 1.0 / (
            math.sqrt(math.log(3.0 + D / B**2) / (3.0 + D)) * math.sqrt(n * math.log(rounds))
        )
        sigma = max(sigma, 2.0 * B)
        # withdraw all that is saved, and the rest from the uniform point
        gradient = (before * gradient + (sigma - before) * uniform_gradient) / sigma
        x = log_barrier(-gradient, 1.0)
        arm, losses = yield x
        loss = losses[arm]
        if not (abs(loss) > B or loss < -sigma / 2.0):
            gradient = gradient - np.eye(n)[arm] * loss / x[arm] / sigma
            kept.append(loss)
        B = max(B, 2.0 * abs(loss))
        before = sigma
