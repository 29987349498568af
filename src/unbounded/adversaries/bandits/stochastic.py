"""Stochastic losses with one better arm."""

from __future__ import annotations

from typing import Any

from unbounded._jit import kernel
from unbounded.core.random import stream_of, uniform_at
from unbounded.play.adversary import Adversary


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best = params[0], int(params[1])
    stream = stream_of(state[0], t)
    for k in range(out.size):
        mean = 0.5 - gap if k == best else 0.5
        out[k] = 1.0 if uniform_at(stream, k) < mean else 0.0


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    mean = 0.5 - params[0] if k == int(params[1]) else 0.5
    return 1.0 if uniform_at(stream_of(state[0], t), k) < mean else 0.0


class StochasticGap(Adversary):
    """Losses 0 or 1 with mean 1/2, except for one arm whose mean is lower by ``gap``.

    Parameters
    ----------
    gap : float
        At most 1/2.
    best : int
        The better arm.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill = _fill
    entry = _entry

    def __init__(
        self, gap: float = 0.1, best: int = 0, *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        if not 0.0 <= gap <= 0.5:
            raise ValueError(f"gap must be in [0, 0.5], got {gap!r}")
        self.gap = gap
        self.best = best

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n
