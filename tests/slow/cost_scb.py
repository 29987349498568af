"""CostSCB: scale-free bandit for costs (docs/theory/one-sided.md, section 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.discounted import Clock
from slow.formulas import Player, restricted, tsallis


def play(
    n: int,
    lower: float = 0.0,
    best_reward: float | None = None,
    outliers: int | str = 0,
    tune: str = "paid",
    rate: float = 2.0,
    implicit: float = 1.0,
    half_life: int | None = None,
    cap: float = math.inf,
) -> Player:
    b = lower if best_reward is None else -best_reward
    if half_life is not None:
        yield from discounted(n, b, outliers, tune, rate, implicit, half_life, cap)
    L, told, thresholds, Z, t = np.zeros(n), [], [], 0.0, 1
    while True:
        m = outliers + 1 if outliers != "sqrt" else min(2048, math.ceil(math.sqrt(n * t)))
        C = sorted(told)[-m] if len(told) >= m else 0.0
        thresholds.append(C)
        V, W = sum(c * c for c in thresholds), max(thresholds) ** 2 + Z
        p = np.full(n, 1.0 / n)
        if max(thresholds) > 0.0:
            p = tsallis(L, rate / math.sqrt(V if tune == "scale" else W))
        gamma = implicit / (n + t)
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x = max(losses[arm], b) - b
        told.append(x)
        L += charges(min(x, C), arm, asleep, q[arm] + gamma)
        Z += square(min(x, C), p, asleep, q[arm] + gamma)
        t += 1


def charges(l: float, arm: int, asleep: np.ndarray, q: float) -> np.ndarray:
    """The estimates of a round: sleepers are charged what was paid."""
    return np.where(asleep, l, np.eye(asleep.size)[arm] * l / q)


def square(l: float, p: np.ndarray, asleep: np.ndarray, q: float) -> float:
    """Z of tuning B (docs/theory/sleeping.md)."""
    total = p[~asleep].sum() ** 1.5 / math.sqrt(q) + (p[asleep] ** 1.5).sum()
    return l * l * total / math.sqrt(p.size)


def discounted(
    n: int, b: float, outliers: int | str, tune: str, rate: float, implicit: float, h: int,
    cap: float,
) -> Player:  # fmt: skip
    """The same with a half-life (docs/theory/forgetting.md, section 1)."""
    clock, C, squares, estimates, raw = Clock(h), [], [], [], []
    while True:
        ranks = min(2048, h, math.ceil(math.sqrt(n * clock.rounds())))
        C.append(clock.threshold(ranks if outliers == "sqrt" else outliers + 1))
        w = clock.weights()
        L = sum((v * e for v, e in zip(w, estimates, strict=False)), np.zeros(n))
        if tune == "scale":
            W = sum((v * c) ** 2 for v, c in zip(w, C, strict=True))
        else:
            W = max(v * c for v, c in zip(w, C, strict=True)) ** 2
            W += sum(v * v * z for v, z in zip(w, squares, strict=False))
        p = tsallis(L, rate / math.sqrt(W)) if W > 0.0 else np.full(n, 1.0 / n)
        arm, losses, *masks = yield p
        asleep, q = restricted(p, masks)
        x, recent = max(losses[arm], b) - b, sorted(raw[-64:])
        raw.append(x)
        if recent and recent[len(recent) // 2] > 0.0:
            x = min(x, cap * recent[len(recent) // 2])
        clock.tell(x)
        explored = q[arm] + implicit / (n + sum(w))
        estimates.append(charges(min(x, C[-1]), arm, asleep, explored))
        squares.append(square(min(x, C[-1]), p, asleep, explored))
