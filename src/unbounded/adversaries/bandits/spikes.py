"""Rare losses far outside of the usual ones."""

from __future__ import annotations

from typing import Any

from unbounded._jit import kernel
from unbounded.core.random import stream_of, uniform_at
from unbounded.play.adversary import Adversary

_SIGNS = {"positive": 1.0, "negative": 0.0, "both": 0.5}


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, rate, height, positive = params[0], int(params[1]), params[2], params[3], params[4]
    stream = stream_of(state[0], t)
    n = out.size
    for k in range(n):
        mean = 0.5 - gap if k == best else 0.5
        out[k] = 1.0 if uniform_at(stream, k) < mean else 0.0
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
        sign: str = "positive",
        gap: float = 0.1,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"rate must be in [0, 1], got {rate!r}")
        if sign not in _SIGNS:
            raise ValueError(f"sign must be one of {', '.join(map(repr, _SIGNS))}, got {sign!r}")
        if not 0.0 <= gap <= 0.5:
            raise ValueError(f"gap must be in [0, 0.5], got {gap!r}")
        self.height = height
        self.rate = rate
        self.sign = sign
        self.gap = gap
        self.best = best

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.rate, self.height, _SIGNS[self.sign]
