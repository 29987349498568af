"""The best arm changes in the middle."""

from __future__ import annotations

from typing import Any

from unbounded._jit import kernel
from unbounded.core.random import Word, stream_of, uniform_at
from unbounded.play.adversary import Adversary


@kernel
def _loss(params: Any, stream: Word, t: int, k: int) -> float:
    switched, gap = t > params[0], params[1]
    mean = 0.5
    if k == 0 and not switched:
        mean -= gap
    elif k == 1 and switched:
        mean -= 3.0 * gap
    return 1.0 if uniform_at(stream, k) < mean else 0.0


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    stream = stream_of(state[0], t)
    for k in range(out.size):
        out[k] = _loss(params, stream, t, k)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    return _loss(params, stream_of(state[0], t), t, k)


class Switch(Adversary):
    """Losses 0 or 1 with mean 1/2; arm 0 is better at first, then arm 1, and by more.

    Parameters
    ----------
    gap : float
        By how much arm 0 is better before the switch; arm 1 is better by three times as much
        after it. At most 1/6.
    at : float
        When, as a share of the rounds.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.
    """

    fill = _fill
    entry = _entry

    def __init__(
        self, gap: float = 0.1, at: float = 0.5, *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        if not 0.0 <= gap <= 1.0 / 6.0:
            raise ValueError(f"gap must be in [0, 1/6], got {gap!r}")
        if not 0.0 <= at <= 1.0:
            raise ValueError(f"at must be in [0, 1], got {at!r}")
        self.gap = gap
        self.at = at

    def params(self, n: int, rounds: int) -> Any:
        return self.at * rounds, self.gap
