"""AdaINF: signed, scale-free and translation-invariant (docs/theory/ada-inf.md, section 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player, bisect, mixed


def roots(L: np.ndarray, S: float) -> np.ndarray:
    """sqrt(p) of p = argmin <L, p> - 4 S sum sqrt(p)."""
    m = (L - L.min()) / (2.0 * S)
    y = bisect(lambda y: 1.0 - ((m + y) ** -2.0).sum(), 1.0, math.sqrt(L.size))
    return 1.0 / (m + y)


def gap(L: np.ndarray, S: float, k: int, x: float) -> float:
    """x p_k + Phi(L) - Phi(L + x e_k), a Bregman divergence; where x is small, a bound on it."""
    n = L.size
    if S == 0.0:
        return x / n if x > 0.0 else -x * (1.0 - 1.0 / n)
    after = L.copy()
    after[k] += x
    r, s = roots(L, S), roots(after, S)
    z = x * r[k] / (2.0 * S)
    if abs(z) > 0.25:
        return 2.0 * S * ((r - s) ** 2 / s).sum()
    T = (np.delete(r, k) ** 3).sum()
    tau = z * r[k] ** 2 / (r[k] ** 3 + T)
    left = z * T / (r[k] ** 3 + T)
    other = min(r.max(), math.sqrt(max(0.0, 1.0 - r[k] ** 2)))
    at_tau = r[k] * left**2 / (1.0 + left) + tau**2 * T / (1.0 - max(tau, 0.0) * other)
    return 2.0 * S * min(at_tau, r[k] * z**2 / (1.0 + z))


def play(n: int, exploration: float | None = None, robust: bool = True, trim: int = 0) -> Player:
    a = exploration or n / (2.0 * (n - 1.0))
    L, S, W, B, told, t = np.zeros(n), 0.0, 0.0, 0.0, [], 1
    warm = 8 if robust else 1
    while True:
        p = roots(L, S) ** 2 if S > 0.0 else np.full(n, 1.0 / n)
        q = mixed(p, a * n / (2.0 * a * n + math.sqrt(n * t)))
        arm, losses = yield q
        loss = losses[arm]
        if t > warm:
            v = loss
            if robust:
                m = 1 + math.floor(min(63.0, 0.25 * math.sqrt(t)))
                v = min(v, max(sorted(told)[-m], B))
            if trim > 0:
                v = max(v, min(sorted(told)[trim] if len(told) > trim else math.inf, B))
            x = (v - B) / q[arm]
            delta = gap(L, S, arm, x)
            w = p[arm] ** 1.5 / q[arm] ** 2
            W += w
            B += w / W * ((max(v, min(sorted(told)[1], B)) if robust else v) - B)
            L[arm] += x
            S += delta / (4.0 * (math.sqrt(n) - 1.0))
        told.append(loss)
        if t == warm:
            B = sorted(told)[(warm - 1) // 2]
        t += 1
