"""PerContext over `CostSCB` with tuning A and implicit=0, from the formulas.

Yields nothing first, is sent the kind of each split (a list; the last is the finest), yields the
distribution over the arms and is sent (arm, loss).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from slow.formulas import tsallis


def lead(cell: dict[str, Any], arm: int) -> float:
    """Return 1 if the arm has the least mean, else 0; its probability if nothing is known."""
    means = {k: np.mean(paid) for k, paid in enumerate(cell["paid"]) if paid}
    return float(min(means, key=means.__getitem__) == arm) if means else cell["p"][arm]


def play(n: int, splits: int) -> Generator[Any, Any, None]:
    cells: dict[Any, dict[str, Any]] = {}
    rounds: list[tuple[Any, Any, float]] = []  # kind, y, square
    losses: list[float] = []
    distances = [0.0]
    while True:
        kinds = yield
        own = [
            cells.setdefault(
                (s, kind),
                {
                    "split": s,
                    "L": np.zeros(n),
                    "told": [],
                    "V": 0.0,
                    "p": np.full(n, 1 / n),
                    "paid": [[] for _ in range(n)],
                },
            )
            for s, kind in enumerate(kinds)
        ]
        rows = np.array([cell["p"] for cell in own])
        w = np.full(splits, 1.0 / splits)
        if max(distances) > 0.0 and splits > 1:
            counts = [1.0 if kind == kinds[-1] else 0.5 for kind, _, _ in rounds]
            ys = sum(a * y for a, (_, y, _) in zip(counts, rounds, strict=True))
            squares = sum(a * a * one for a, (_, _, one) in zip(counts, rounds, strict=True))
            follow = tsallis(ys, 4.0 / math.sqrt(max(distances) ** 2 + squares))
            share = min(0.5, 2.0 / (sum(counts) + 1) ** 0.75)
            seen = np.bincount([cell["split"] for cell in cells.values()], minlength=splits)
            w = (1.0 - share) * follow + share * seen / seen.sum()
        q = w @ rows
        arm, loss = yield q
        leads = np.array([lead(cell, arm) for cell in own])
        for cell in own:
            cell["paid"][arm].append(loss)
            C = max(cell["told"], default=0.0)
            cell["L"][arm] += min(loss, C) / q[arm]
            cell["told"].append(loss)
            C = max(cell["told"])
            cell["V"] += C * C
            cell["p"] = tsallis(cell["L"], 2.0 / math.sqrt(cell["V"]))
        losses.append(loss)
        d = loss - np.mean(losses)
        y = 0.5 * (rows[:, arm] + leads) * d / max(q[arm], 0.05)
        rounds.append((kinds[-1], y, float((w**1.5 * (y - d) ** 2).sum())))
        distances.append(abs(d))
