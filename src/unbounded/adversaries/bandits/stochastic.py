"""Stochastic losses with one better arm."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits._coins import loses, toss
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_whole, checked_within


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best = params[0], int(params[1])
    toss(stream_of(state[0], t), best, gap, 1.0, out)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    gap, best = params[0], int(params[1])
    return 1.0 if loses(stream_of(state[0], t), k, best, gap) else 0.0


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

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import StochasticGap
    >>> result = simulate(SCB(n_arms=4), StochasticGap(gap=0.3), rounds=1000, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.0, 1.0)
    """

    fill = _fill
    entry = _entry

    def __init__(
        self, gap: float = 0.1, best: int = 0, *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n
