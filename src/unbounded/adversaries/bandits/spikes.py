"""Rare losses far outside of the usual ones."""

from __future__ import annotations

from typing import Any, Literal

from unbounded.adversaries.bandits._coins import toss
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import (
    checked_finite,
    checked_option,
    checked_share,
    checked_whole,
    checked_within,
)

_SIGNS = {"positive": 1.0, "negative": 0.0, "both": 0.5}


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, rate, height, positive = params[0], int(params[1]), params[2], params[3], params[4]
    stream = stream_of(state[0], t)
    toss(stream, best, gap, 1.0, out)
    n = out.size
    if uniform_at(stream, n) < rate:
        arm = int(uniform_at(stream, n + 1) * n)
        out[arm] = height if uniform_at(stream, n + 2) < positive else -height


class Spikes(Adversary):
    """Losses 0 or 1, one arm better; now and then one arm, drawn at random, has a spike.

    Parameters
    ----------
    height : float
        The absolute value of a spike.
    rate : float
        The probability of a spike in a round.
    sign : {"positive", "negative", "both"}
        Which spikes there are.
    gap, best : float, int
        As in `StochasticGap`.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Spikes
    >>> result = simulate(SCB(n_arms=4), Spikes(height=50, rate=0.1), rounds=1000, seed=0)
    >>> float(result.high[0, -1])
    50.0
    """

    fill = _fill

    def __init__(
        self,
        height: float = 30.0,
        rate: float = 1e-3,
        sign: Literal["positive", "negative", "both"] = "positive",
        gap: float = 0.1,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        checked_option("sign", sign, tuple(_SIGNS))
        self.height = checked_finite("height", height)
        self.rate = checked_share("rate", rate)
        self.sign = sign
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.rate, self.height, _SIGNS[self.sign]
