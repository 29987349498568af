"""Losses whose scale falls during the play."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits._coins import toss
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_part, checked_whole, checked_within


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, final, last = params[0], int(params[1]), params[2], params[3]
    toss(stream_of(state[0], t), best, gap, final ** ((t - 1) / last), out)


class Shrink(Adversary):
    """Losses 0 or s, one arm better, where s falls geometrically from 1 to ``final``.

    A learner that has seen the large losses must not stop caring, and one whose rates follow the
    losses has little left to win.

    Parameters
    ----------
    final : float
        The size of the last losses, in (0, 1].
    gap : float
        By how much the better arm's mean is lower, in units of s; at most 1/2.
    best : int
        The better arm.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Shrink
    >>> result = simulate(SCB(n_arms=4), Shrink(final=1e-3), rounds=1000, seed=0)
    >>> bool(result.high[0, -1] <= 1.0)
    True
    """

    fill = _fill

    def __init__(
        self,
        final: float = 1e-3,
        gap: float = 0.1,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.final = checked_part("final", final)
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.final, max(rounds - 1, 1)
