"""The best arm changes in the middle."""

from __future__ import annotations

from typing import Any

from unbounded._jit import kernel
from unbounded.adversaries.base import Adversary
from unbounded.core.random import stream_of, uniform_at


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    switched = t > params[0]
    stream = stream_of(state[0], t)
    for k in range(out.size):
        mean = 0.5
        if k == 0:
            mean = 0.9 if switched else 0.2
        elif k == 1:
            mean = 0.1 if switched else 0.5
        out[k] = 1.0 if uniform_at(stream, k) < mean else 0.0


class Switch(Adversary):
    """Losses 0 or 1; arm 0 is best at first, then it becomes the worst and arm 1 the best.

    The means are 0.2, 0.5, 0.5, ... before the switch and 0.9, 0.1, 0.5, ... after it.

    Parameters
    ----------
    at : float
        When, as a share of the rounds.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill = _fill

    def __init__(self, at: float = 0.5, *, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(scale=scale, shift=shift)
        if not 0.0 <= at <= 1.0:
            raise ValueError(f"at must be in [0, 1], got {at!r}")
        self.at = at

    def params(self, n: int, rounds: int) -> Any:
        return (self.at * rounds,)
