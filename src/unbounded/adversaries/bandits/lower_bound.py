"""The instance behind the lower bound: a gap too small to be found in time."""

from __future__ import annotations

import math
from typing import Any

from unbounded.adversaries.bandits._coins import loses, toss
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_at_least


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best = params[0], int(state[1])
    toss(stream_of(state[0], t), best, gap, 1.0, out)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    gap, best = params[0], int(state[1])
    return 1.0 if loses(stream_of(state[0], t), k, best, gap) else 0.0


class LowerBound(Adversary):
    """Fair coins, except for one random arm that is better by about sqrt(n / T).

    No learner can have regret below a constant times sqrt(n T) on it (Auer et al. 2002).

    Parameters
    ----------
    factor : float
        The gap is ``min(1/4, factor * sqrt(n / rounds))``.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import LowerBound
    >>> result = simulate(SCB(n_arms=4), LowerBound(), rounds=1000, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.0, 1.0)
    """

    fill = _fill
    entry = _entry
    reference = "Auer, Cesa-Bianchi, Freund & Schapire 2002, Theorem 5.1"

    def __init__(self, factor: float = 0.5, *, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(scale=scale, shift=shift)
        self.factor = checked_at_least("factor", factor, 0.0)

    def params(self, n: int, rounds: int) -> Any:
        return (min(0.25, self.factor * math.sqrt(n / rounds)),)

    def state(self, n: int, rounds: int, key: int) -> Any:
        return key, key % n
