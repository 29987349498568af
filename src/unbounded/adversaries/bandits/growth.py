"""The scale of the losses grows all the time."""

from __future__ import annotations

from typing import Any

from unbounded._arguments import checked_within
from unbounded._jit import kernel
from unbounded.adversaries.bandits._coins import loses
from unbounded.core.random import Word, stream_of
from unbounded.play.adversary import Adversary


@kernel
def _size(params: Any, t: int) -> float:
    doublings, rounds = params[0], params[1]
    return 2.0 ** (doublings * (t / rounds - 1.0))


@kernel
def _loss(params: Any, stream: Word, size: float, k: int) -> float:
    return size if loses(stream, k, 0, params[2]) else -size


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    size, stream = _size(params, t), stream_of(state[0], t)
    for k in range(out.size):
        out[k] = _loss(params, stream, size, k)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    return _loss(params, stream_of(state[0], t), _size(params, t), k)


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
        self.doublings = checked_within("doublings", doublings, 0.0, 1000.0)
        self.gap = checked_within("gap", gap, 0.0, 0.5)

    def params(self, n: int, rounds: int) -> Any:
        return self.doublings, rounds, self.gap
