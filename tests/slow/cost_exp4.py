"""CostExp4 (docs/theory/advice.md), and Exp4 and Exp4.P as printed, which are given the range.

Each yields nothing first, is sent the advice of a round (a row per expert, zeros for none), yields
the distribution over the arms, and is sent (arm, loss of it).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from slow.discounted import Clock
from slow.formulas import softmax

Player = Generator[Any, Any, None]


def _asked(weights: np.ndarray, advice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mixture, and who is awake; weights are of the experts, advice is not normalized."""
    awake = advice.sum(axis=1) > 0.0
    if not awake.any():
        return np.full(advice.shape[1], 1.0 / advice.shape[1]), awake
    w = np.where(awake, weights, 0.0)
    return (w / w.sum()) @ advice, awake


def _charged(awake: np.ndarray, advice: np.ndarray, arm: int, l: float, q_gamma: float) -> Any:
    return np.where(awake, advice[:, arm] * l / q_gamma, l)


def play(n: int, N: int, lower: float = 0.0, outliers: int = 0, delta: float | None = None,
         half_life: int | None = None) -> Player:  # fmt: skip
    iota = math.log(N) if delta is None else math.log(N / delta)
    if half_life is not None:
        yield from discounted(n, N, lower, outliers, iota, half_life)
    L, told, t, A = np.zeros(N), [], 1, 1
    while True:
        C = sorted(told)[-outliers - 1] if len(told) > outliers else 0.0
        advice = yield
        A = max(A, np.count_nonzero(advice.sum(axis=0)))
        gamma = min(1.0, 0.5 * math.sqrt(iota / (A * t)))
        q, awake = _asked(softmax(-(2.0 * gamma / C if C > 0.0 else 0.0) * L), advice)
        arm, loss = yield q
        x = max(loss, lower) - lower
        L += _charged(awake, advice, arm, min(x, C), q[arm] + gamma)
        told.append(x)
        t += 1


def discounted(n: int, N: int, lower: float, outliers: int, iota: float, h: int) -> Player:
    clock, C, estimates, A = Clock(h), [], [], 1
    while True:
        C.append(clock.threshold(outliers + 1, follow=False))
        w = clock.weights()
        L = sum((v * e for v, e in zip(w, estimates, strict=False)), np.zeros(N))
        top = max(v * c for v, c in zip(w, C, strict=True))
        advice = yield
        A = max(A, np.count_nonzero(advice.sum(axis=0)))
        gamma = min(1.0, 0.5 * math.sqrt(iota / (A * sum(w))))
        q, awake = _asked(softmax(-(2.0 * gamma / top if top > 0.0 else 0.0) * L), advice)
        arm, loss = yield q
        x = max(loss, lower) - lower
        clock.tell(x)
        estimates.append(_charged(awake, advice, arm, min(x, C[-1]), q[arm] + gamma))


def exp4(n: int, N: int, T: int) -> Player:
    """Exp4 with a fixed rate, for losses in [0, 1]; others are clipped to that."""
    L, eta = np.zeros(N), math.sqrt(2.0 * math.log(N) / (n * T))
    while True:
        advice = yield
        q = softmax(-eta * L) @ advice
        arm, loss = yield q
        L += advice[:, arm] * min(max(loss, 0.0), 1.0) / q[arm]


def exp4_p(n: int, N: int, T: int, delta: float) -> Player:
    """Exp4.P of Beygelzimer et al. (2011), for rewards in [0, 1]: losses beyond are clipped."""
    least, log_w = math.sqrt(math.log(N) / (n * T)), np.zeros(N)
    width = math.sqrt(math.log(N / delta) / (n * T))
    while True:
        advice = yield
        q = (1.0 - n * least) * (softmax(log_w) @ advice) + least
        arm, loss = yield q
        reward = 1.0 - min(max(loss, 0.0), 1.0)
        log_w += 0.5 * least * (advice[:, arm] * reward / q[arm] + (advice / q).sum(axis=1) * width)
