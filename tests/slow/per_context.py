"""PerContext over `CostSCB` with tuning A and implicit=0, from the formulas.

Yields nothing first, is sent the kind of each split (a list), yields the distribution over the arms
and is sent (arm, loss).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from slow.formulas import tsallis


def play(n: int, splits: int) -> Generator[Any, Any, None]:
    cells: dict[Any, dict[str, Any]] = {}
    ys, losses, squares, distances = np.zeros(splits), [], 0.0, [0.0]
    while True:
        kinds = yield
        own = [
            cells.setdefault(
                (s, kind),
                {"split": s, "L": np.zeros(n), "told": [], "V": 0.0, "p": np.full(n, 1 / n)},
            )
            for s, kind in enumerate(kinds)
        ]
        rows = np.array([cell["p"] for cell in own])
        w = np.full(splits, 1.0 / splits)
        if max(distances) > 0.0 and splits > 1:
            follow = tsallis(ys, 2.0 / math.sqrt(max(distances) ** 2 + squares))
            share = min(0.5, 1.0 / math.sqrt(len(losses) + 1))
            counts = np.bincount([cell["split"] for cell in cells.values()], minlength=splits)
            w = (1.0 - share) * follow + share * counts / counts.sum()
        q = w @ rows
        arm, loss = yield q
        for cell in own:
            C = max(cell["told"], default=0.0)
            cell["L"][arm] += min(loss, C) / q[arm]
            cell["told"].append(loss)
            C = max(cell["told"])
            cell["V"] += C * C
            cell["p"] = tsallis(cell["L"], 2.0 / math.sqrt(cell["V"]))
        losses.append(loss)
        d = loss - np.mean(losses)
        y = rows[:, arm] * d / q[arm]
        squares += float((w**1.5 * (y - d) ** 2).sum())
        ys += y
        distances.append(abs(d))
