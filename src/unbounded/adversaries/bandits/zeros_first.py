"""A long silence before the first loss that is not zero."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits._coins import toss
from unbounded.core.random import stream_of
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_share, checked_whole, checked_within


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, zeros = params[0], int(params[1]), params[2]
    if t <= zeros:
        out[:] = 0.0
    else:
        toss(stream_of(state[0], t), best, gap, 1.0, out)


class ZerosFirst(Adversary):
    """All losses are 0 for a share of the rounds; then 0 or 1, one arm better.

    Parameters
    ----------
    share : float
        Of the rounds that are silent, in [0, 1].
    gap, best : float, int
        As in `StochasticGap`.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import ZerosFirst
    >>> learner = SCB(n_arms=4)
    >>> result = simulate(learner, ZerosFirst(), rounds=1000, seed=0, checkpoints=[500, 1000])
    >>> result.high.tolist()
    [[0.0, 1.0]]
    """

    fill = _fill

    def __init__(
        self,
        share: float = 0.5,
        gap: float = 0.1,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.share = checked_share("share", share)
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, int(self.share * rounds)
