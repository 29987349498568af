"""A number of rounds in which every arm has the same huge loss, which says nothing."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits._coins import loses, toss
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_count, checked_finite, checked_whole, checked_within


@kernel
def _comes(params: Any, state: Any, t: int) -> bool:
    """Whether round ``t`` is the one that was drawn from its part of the run."""
    count, rounds = int(params[2]), int(params[3])
    if count == 0:
        return False
    part = (t - 1) * count // rounds
    first = (part * rounds + count - 1) // count  # rounds before this part
    size = ((part + 1) * rounds + count - 1) // count - first
    drawn = int(uniform_at(stream_of(state[0], 0), part) * size)
    return bool(t == first + drawn + 1)


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    if _comes(params, state, t):
        out[:] = params[4]
    else:
        toss(stream_of(state[0], t), int(params[1]), params[0], 1.0, out)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    if _comes(params, state, t):
        return float(params[4])
    return 1.0 if loses(stream_of(state[0], t), k, int(params[1]), params[0]) else 0.0


class Outliers(Adversary):
    """Losses 0 or 1, one arm better; in some rounds every arm has the same huge loss.

    The run is divided into ``count`` equal parts, and each has one such round, drawn at random.

    Parameters
    ----------
    count : int
        How many rounds have the huge loss.
    height : float
        The huge loss.
    gap, best : float, int
        As in `StochasticGap`.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import CostSCB, simulate
    >>> from unbounded.adversaries import Outliers
    >>> result = simulate(CostSCB(n_arms=4, outliers=1), Outliers(), rounds=1000, seed=0)
    >>> float(result.high[0, -1])
    10000.0
    """

    fill = _fill
    entry = _entry

    def __init__(
        self,
        count: int = 1,
        height: float = 1e4,
        gap: float = 0.2,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.count = checked_count("count", count, least=0)
        self.height = checked_finite("height", height)
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        if self.count > rounds:
            raise ValueError(f"count must be at most the {rounds} rounds, got {self.count}")
        return self.gap, self.best % n, self.count, rounds, self.height
