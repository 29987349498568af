"""The scale of the losses grows all the time."""

from __future__ import annotations

from typing import Any

from unbounded._jit import kernel
from unbounded.core.random import stream_of, uniform_at
from unbounded.play.adversary import Adversary


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    doublings, rounds, gap = params[0], params[1], params[2]
    size = 2.0 ** (doublings * (t / rounds - 1.0))
    stream = stream_of(state[0], t)
    for k in range(out.size):
        mean = 0.5 - gap if k == 0 else 0.5
        out[k] = size if uniform_at(stream, k) < mean else -size


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    doublings, rounds, gap = params[0], params[1], params[2]
    size = 2.0 ** (doublings * (t / rounds - 1.0))
    mean = 0.5 - gap if k == 0 else 0.5
    return size if uniform_at(stream_of(state[0], t), k) < mean else -size


class Growth(Adversary):
    """Losses of either sign whose size doubles ``doublings`` times and ends at 1.

    Parameters
    ----------
    doublings : float
        2^20-fold by default.
    gap : float
        By how much arm 0 is less likely to lose, at most 1/2.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill = _fill
    entry = _entry

    def __init__(
        self, doublings: float = 20.0, gap: float = 0.3, *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        if not 0.0 <= doublings <= 1000.0:
            raise ValueError(f"doublings must be in [0, 1000], got {doublings!r}")
        if not 0.0 <= gap <= 0.5:
            raise ValueError(f"gap must be in [0, 0.5], got {gap!r}")
        self.doublings = doublings
        self.gap = gap

    def params(self, n: int, rounds: int) -> Any:
        return self.doublings, rounds, self.gap
