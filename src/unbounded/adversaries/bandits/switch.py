"""The best arm changes in the middle."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits._coins import loses, toss
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_share, checked_within


@kernel
def _best_and_gap(params: Any, t: int) -> tuple[int, float]:
    at, gap = params[0], params[1]
    return (1, 3.0 * gap) if t > at else (0, gap)


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    best, gap = _best_and_gap(params, t)
    toss(stream_of(state[0], t), best, gap, 1.0, out)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    best, gap = _best_and_gap(params, t)
    return 1.0 if loses(stream_of(state[0], t), k, best, gap) else 0.0


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

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Switch
    >>> result = simulate(SCB(n_arms=4), Switch(at=0.25), rounds=1000, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.0, 1.0)
    """

    fill = _fill
    entry = _entry

    def __init__(
        self, gap: float = 0.1, at: float = 0.5, *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.gap = checked_within("gap", gap, 0.0, 1.0 / 6.0)
        self.at = checked_share("at", at)

    def params(self, n: int, rounds: int) -> Any:
        return self.at * rounds, self.gap
