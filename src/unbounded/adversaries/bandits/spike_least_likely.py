"""An adaptive adversary that hides its largest losses where the learner hardly looks."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits._coins import loses
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_finite, checked_share, checked_within


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    rate, height, gap = params[0], params[1], params[2]
    stream = stream_of(state[0], t)
    hidden = 0
    for k in range(out.size):
        out[k] = 1.0 if loses(stream, k, 0, gap) else 0.0
        if q[k] < q[hidden]:
            hidden = k
    if uniform_at(stream, out.size) < rate:
        out[hidden] = height


class SpikeLeastLikely(Adversary):
    """Coin flips with one better arm, and now and then a spike on the least likely arm.

    Parameters
    ----------
    rate : float
        How often.
    height : float
        The loss of the spike.
    gap : float
        By how much arm 0 is better, at most 1/2.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import SpikeLeastLikely
    >>> result = simulate(SCB(n_arms=4), SpikeLeastLikely(rate=0.1), rounds=1000, seed=0)
    >>> float(result.low[0, -1])
    -8.0
    """

    fill = _fill
    looks = True

    def __init__(
        self,
        rate: float = 0.01,
        height: float = -8.0,
        gap: float = 0.4,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.rate = checked_share("rate", rate)
        self.height = checked_finite("height", height)
        self.gap = checked_within("gap", gap, 0.0, 0.5)

    def params(self, n: int, rounds: int) -> Any:
        return self.rate, self.height, self.gap
