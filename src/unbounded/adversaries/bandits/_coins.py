"""Coins that the losses of many adversaries are made of: fair, but for one better arm."""

from __future__ import annotations

from typing import Any

from unbounded.core.random import Word, uniform_at
from unbounded.jit.kernel import kernel


@kernel
def loses(stream: Word, k: int, best: int, gap: float) -> bool:
    """Whether the coin of arm k falls on a loss: probability 1/2, and 1/2 - gap for ``best``."""
    return uniform_at(stream, k) < (0.5 - gap if k == best else 0.5)


@kernel
def toss(stream: Word, best: int, gap: float, size: float, out: Any) -> None:
    """``size`` for the arms whose coin falls on a loss, 0 for the others."""
    for k in range(out.size):
        out[k] = size if loses(stream, k, best, gap) else 0.0
