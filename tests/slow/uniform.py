"""The learner that learns nothing: what every other one must beat."""

from __future__ import annotations

import numpy as np

from slow.formulas import Player


def play(n: int) -> Player:
    while True:
        yield np.full(n, 1.0 / n)
