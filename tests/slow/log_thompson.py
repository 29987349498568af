"""Thompson sampling on logarithms (Honda & Takemura 2014); SplitMix64 as Steele et al. give it."""

from __future__ import annotations

import math

import numpy as np

from slow.formulas import Player

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def scramble(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def uniform(key: int, t: int, k: int) -> float:
    stream = scramble((scramble(key * _GOLDEN & _MASK) + t) & _MASK)
    return (scramble((stream + (k + 1) * _GOLDEN) & _MASK) >> 11) * 2.0**-53


def play(n: int, stream: int = 0) -> Player:
    logs: list[list[float]] = [[] for _ in range(n)]
    seen: list[float] = []
    t = 1
    while True:
        fewer = [i for i in range(n) if len(logs[i]) < 5]
        best = fewer[0] if fewer else 0
        if not fewer:
            draws = []
            for i, y in enumerate(logs):
                nu, x = len(y) - 3, np.array(y) - y[0]
                Q = ((x - x.mean()) ** 2).sum()
                u, v = uniform(stream, t, 2 * i), uniform(stream, t, 2 * i + 1)
                z = math.sqrt(nu * ((1.0 - u) ** (-2.0 / nu) - 1.0)) * math.cos(2.0 * math.pi * v)
                draws.append(y[0] + x.mean() + z * math.sqrt(Q / (len(y) * nu)))
            best = int(np.argmin(draws))
        arm, losses = yield np.eye(n)[best]
        if losses[arm] > 0.0:
            seen.append(math.log2(losses[arm]))
            if len(seen) == 1:  # what came before counts as this one
                logs = [[seen[0]] * len(y) for y in logs]
        logs[arm].append(seen[-1] if losses[arm] > 0.0 else min(seen, default=0.0))
        t += 1
