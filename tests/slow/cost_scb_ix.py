"""CostSCB-IX: costs, with a high-probability bound (docs/theory/one-sided.md, Theorem O5)."""

from __future__ import annotations

import math

import numpy as np

from slow.cost_scb import charges
from slow.discounted import Clock
from slow.formulas import Player, restricted, softmax


def play(
    n: int,
    lower: float = 0.0,
    best_reward: float | None = None,
    outliers: int = 0,
    delta: float | None = None,
    half_life: int | None = None,
) -> Player:
    b = lower if best_reward is None else -best_reward
    iota = math.log(n) if delta is None else math.log(n / delta)
    if half_life is not None:
        yield from discounted(n, b, outliers, iota, half_life)
    L, told, t = np.zeros(n), [], 1
    while True:
        C = sorted(told)[-outliers - 1] if len(told) > outliers else 0.0
        eta = math.sqrt(iota / (n * t)) / C if C > 0.0 else 0.0
        gamma = 0.5 * math.sqrt(iota / (n * t))
        p = softmax(-eta * L)
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x = max(losses[arm], b) - b
        L += charges(min(x, C), arm, asleep, q[arm] + gamma)
        told.append(x)
        t += 1


def discounted(n: int, b: float, outliers: int, iota: float, h: int) -> Player:
    """The same with a half-life (docs/theory/forgetting.md, Theorem F5)."""
    clock, C, estimates = Clock(h), [], []
    while True:
        C.append(clock.threshold(outliers + 1, follow=False))
        w = clock.weights()
        L = sum((v * e for v, e in zip(w, estimates, strict=False)), np.zeros(n))
        top, root = max(v * c for v, c in zip(w, C, strict=True)), math.sqrt(iota / (n * sum(w)))
        p = softmax(-(root / top if top > 0.0 else 0.0) * L)
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x = max(losses[arm], b) - b
        clock.tell(x)
        estimates.append(charges(min(x, C[-1]), arm, asleep, q[arm] + 0.5 * root))
