"""AdaINF: signed, scale-free and translation-invariant (docs/theory/ada-inf.md, section 1)."""

from __future__ import annotations

import math

import numpy as np

from slow.discounted import Clock, two_blocks
from slow.formulas import Player, bisect, mixed, restricted


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


def gap_of_all(L: np.ndarray, S: float, x: np.ndarray) -> float:
    """<x, p> + Phi(L) - Phi(L + x), a Bregman divergence."""
    if S == 0.0:
        return x.mean() - x.min()
    r, s = roots(L, S), roots(L + x, S)
    return 2.0 * S * ((r - s) ** 2 / s).sum()


def play(
    n: int,
    exploration: float | None = None,
    robust: bool = True,
    trim: int = 0,
    half_life: int | str | None = None,
) -> Player:
    a = exploration or n / (2.0 * (n - 1.0))
    if half_life == "auto":
        yield from auto(n, a, robust, trim)
    if half_life is not None:
        yield from discounted(n, a, robust, trim, half_life)
    L, S, W, B, told, t = np.zeros(n), 0.0, 0.0, 0.0, [], 1
    warm = 8 if robust else 1
    while True:
        p = roots(L, S) ** 2 if S > 0.0 else np.full(n, 1.0 / n)
        q = mixed(p, a * n / (2.0 * a * n + math.sqrt(n * t)))
        arm, losses, *masks = yield q
        asleep, q = restricted(q, masks)
        loss = losses[arm]
        if t > warm:
            v = loss
            if robust:
                m = 1 + math.floor(min(63.0, 0.25 * math.sqrt(t)))
                v = min(v, max(sorted(told)[-m], B))
            if trim > 0:
                v = max(v, min(sorted(told)[trim] if len(told) > trim else math.inf, B))
            x = (v - B) / q[arm]
            changes = np.where(asleep, v - B, np.eye(n)[arm] * x)
            delta = gap_of_all(L, S, changes) if masks else gap(L, S, arm, x)
            w = p[arm] ** 1.5 / q[arm] ** 2 + (p[asleep] ** 1.5).sum()
            W += w
            B += w / W * ((max(v, min(sorted(told)[1], B)) if robust else v) - B)
            L += changes
            S += delta / (4.0 * (math.sqrt(n) - 1.0))
        told.append(loss)
        if t == warm:
            B = sorted(told)[(warm - 1) // 2]
        t += 1


def discounted(n: int, a: float, robust: bool, trim: int, h: int) -> Player:
    """The same with a half-life (docs/theory/forgetting.md, section 1)."""
    clock, warm, h_B = Clock(h), 8 if robust else 1, min(h, max(h / 16.0, 32.0))
    estimates, gaps, told, up, down = [], [], [], [], []
    W, B = 0.0, 0.0
    while True:
        time = clock.times[-1]
        clock.threshold(1)  # of |v|: time may jump, and the center forgets with it
        W *= 4.0 ** ((time - clock.times[-1]) / h)
        w, t, N = clock.weights(), len(told) + 1, clock.rounds()
        L = sum((v * e for v, e in zip(w, estimates, strict=False)), np.zeros(n))
        S = sum(v * cost for v, cost in zip(w, gaps, strict=False)) / (4.0 * (math.sqrt(n) - 1.0))
        p = roots(L, S) ** 2 if S > 0.0 else np.full(n, 1.0 / n)
        q = mixed(p, a * n / (2.0 * a * n + math.sqrt(n * N)))
        arm, losses, *masks = yield q
        asleep, q = restricted(q, masks)
        told.append(losses[arm])
        v = 0.0
        if t > warm:
            v = d = losses[arm] - B
            if robust:
                v = min(d, two_blocks(up, h, 1 + math.floor(min(63.0, 0.25 * math.sqrt(N)))))
            if trim > 0:
                v = max(v, -two_blocks(down, h, trim + 1))
            u = max(v, -two_blocks(down, h, min(2, h))) if robust else v
            weight = p[arm] ** 1.5 / q[arm] ** 2 + (p[asleep] ** 1.5).sum()
            W = 2.0 ** (-2.0 / h_B) * W + weight
            B += weight / W * u
            up.append(max(d, 0.0))
            down.append(max(-d, 0.0))
        x = v / q[arm]
        changes = np.where(asleep, v, np.eye(n)[arm] * x)
        gaps.append(gap_of_all(L, S, changes) if masks else gap(L, S, arm, x))
        estimates.append(changes)
        clock.tell(abs(v))
        if t == warm:
            B = sorted(told)[(warm - 1) // 2]
            up, down = [max(x - B, 0.0) for x in told], [max(B - x, 0.0) for x in told]


LIVES = (100, 1000, 10_000, 2**30)


def auto(
    n: int, a: float, robust: bool, trim: int, lives: tuple[int, ...] = LIVES, h: int = 1000
) -> Player:
    """Four half-lives, mixed by a fifth player (docs/theory/forgetting.md, section 8)."""
    phi, h_B = 0.02, min(h, max(h / 16.0, 32.0))
    shared, clocks = Clock(h), [Clock(each) for each in lives]
    warm, told, up, down, W, B = 8 if robust else 1, [], [], [], 0.0, 0.0
    estimates, gaps = [], [[] for _ in clocks]  # of the arms, by copy
    ys, costs = [], []  # of the copies
    while True:
        time = shared.times[-1]
        shared.threshold(1)
        W *= 4.0 ** ((time - shared.times[-1]) / h)
        players = []
        for clock, own in zip(clocks, gaps, strict=True):
            clock.threshold(1)
            w = clock.weights()
            L = sum((v * e for v, e in zip(w, estimates, strict=False)), np.zeros(n))
            S = sum(v * cost for v, cost in zip(w, own, strict=False)) / (4.0 * (math.sqrt(n) - 1))
            p = roots(L, S) ** 2 if S > 0.0 else np.full(n, 1.0 / n)
            share = a * n / (2.0 * a * n + math.sqrt(n * clock.rounds()))
            players.append((L, S, mixed(p, share)))
        w = shared.weights()
        above = sum((v * y for v, y in zip(w, ys, strict=False)), np.zeros(4))
        rate = sum(v * cost for v, cost in zip(w, costs, strict=False)) / 4.0
        chances = roots(above, rate) ** 2 if rate > 0.0 else np.full(4, 0.25)
        q = sum(
            ((1.0 - 4.0 * phi) * chance + phi) * player[2]
            for chance, player in zip(chances, players, strict=True)
        )
        arm, losses, *masks = yield q
        asleep, q = restricted(q, masks)
        t = len(told) + 1
        told.append(losses[arm])
        v = 0.0
        if t > warm:
            v = d = losses[arm] - B
            if robust:
                m = 1 + math.floor(min(63.0, 0.25 * math.sqrt(shared.rounds())))
                v = min(d, two_blocks(up, h, m))
            if trim > 0:
                v = max(v, -two_blocks(down, h, trim + 1))
            u = max(v, -two_blocks(down, h, 2)) if robust else v
            W = 2.0 ** (-2.0 / h_B) * W + q[arm] ** -0.5
            B += q[arm] ** -0.5 / W * u
            up.append(max(d, 0.0))
            down.append(max(-d, 0.0))
        x = v / q[arm]
        changes = np.where(asleep, v, np.eye(n)[arm] * x)
        for own, (L, S, _) in zip(gaps, players, strict=True):
            own.append(gap_of_all(L, S, changes) if masks else gap(L, S, arm, x))
        estimates.append(changes)
        y = np.array([player[2] @ changes for player in players])
        costs.append(gap_of_all(above, rate, y))
        ys.append(y)
        for clock in (shared, *clocks):
            clock.tell(abs(v))
        if t == warm:
            B = sorted(told)[(warm - 1) // 2]
            up, down = [max(x - B, 0.0) for x in told], [max(B - x, 0.0) for x in told]
