"""CostSCB from scratch after so many rounds, or where a test on its losses finds a change."""

from __future__ import annotations

import numpy as np

from slow import cost_scb
from slow.formulas import Player


def changed(told: list[tuple[int, float]], detect, threshold, drift, samples) -> bool:
    """Whether the test finds a change with the last of these losses, each with its arm."""
    arm = told[-1][0]
    u = d = 0.0
    mine: list[float] = []
    for s, (k, x) in enumerate(told):
        if k != arm:
            continue
        mine.append(x)
        seen = [loss for _, loss in told[: s + 1]]
        R = max(seen) - min(seen)
        if len(mine) > samples:
            mu = np.mean(mine if detect == "page-hinkley" else mine[:samples])
            u, d = max(0.0, u + x - mu - drift * R), max(0.0, d + mu - x - drift * R)
    return len(mine) > samples and max(u, d) > threshold * R


def play(
    n: int,
    every: int | None = None,
    detect: str | None = None,
    threshold: float = 20.0,
    drift: float = 0.1,
    samples: int = 30,
    lower: float = 0.0,
    outliers: int = 0,
) -> Player:
    while True:
        inner, told = cost_scb.play(n, lower=lower, outliers=outliers), []
        p = next(inner)
        while True:
            arm, losses = yield p
            told.append((arm, max(losses[arm], lower)))
            p = inner.send((arm, losses))
            if len(told) == every:
                break
            if detect and changed(told, detect, threshold, drift, samples):
                break
