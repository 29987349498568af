"""One arm costs a little less than the others, and rarely very much more."""

from __future__ import annotations

from typing import Any

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_finite, checked_share, checked_whole


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    gap, lure, rate, height = params[0], int(params[1]), params[2], params[3]
    if k != lure:
        return 1.0
    return float(height if uniform_at(stream_of(state[0], t), 0) < rate else 1.0 - gap)


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    out[:] = 1.0
    lure = int(params[1])
    out[lure] = _entry(params, state, t, lure)


class Catastrophe(Adversary):
    """Losses of 1, but for one arm: it costs less by ``gap``, and rarely a catastrophe.

    A learner that takes rare huge losses for accidents plays that arm.

    Parameters
    ----------
    rate : float
        The probability of a catastrophe.
    height : float
        What it costs.
    gap : float
        By how much the arm usually is better.
    lure : int
        The arm.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import CostSCB, simulate
    >>> from unbounded.adversaries import Catastrophe
    >>> result = simulate(CostSCB(n_arms=4), Catastrophe(rate=0.01), rounds=1000, seed=0)
    >>> float(result.high[0, -1])
    10000.0
    """

    fill = _fill
    entry = _entry

    def __init__(
        self,
        rate: float = 1e-3,
        height: float = 1e4,
        gap: float = 0.1,
        lure: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.rate = checked_share("rate", rate)
        self.height = checked_finite("height", height)
        self.gap = checked_finite("gap", gap)
        self.lure = checked_whole("lure", lure)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.lure % n, self.rate, self.height
