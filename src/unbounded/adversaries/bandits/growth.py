"""The scale of the losses grows all the time."""

from __future__ import annotations

import math
from typing import Any

from unbounded.adversaries.bandits._coins import loses
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_within


@kernel
def _size(params: Any, t: int) -> float:
    doublings, rounds = params[0], params[1]
    return math.exp2(doublings * (t / rounds - 1.0))


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    size, gap, stream = _size(params, t), params[2], stream_of(state[0], t)
    for k in range(out.size):
        out[k] = size if loses(stream, k, 0, gap) else -size


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    size, gap = _size(params, t), params[2]
    return size if loses(stream_of(state[0], t), k, 0, gap) else -size


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

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Growth
    >>> result = simulate(SCB(n_arms=4), Growth(doublings=10), rounds=1000, seed=0)
    >>> float(result.largest_loss[0, -1])
    1.0
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
