"""Stochastic losses whose means wander, so that the best arm keeps changing."""

from __future__ import annotations

from typing import Any

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_at_least, checked_within


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, cycles_a_round = params[0], params[1]
    stream = stream_of(state[0], t)
    n = out.size
    for k in range(n):
        phase = cycles_a_round * (t - 1) + k / n
        wave = 4.0 * abs(phase - int(phase) - 0.5) - 1.0  # a triangle between -1 and 1
        out[k] = 1.0 if uniform_at(stream, k) < 0.5 + gap * wave else 0.0


class Drift(Adversary):
    """Losses 0 or 1 whose means go up and down between 1/2 - gap and 1/2 + gap, arm after arm.

    Parameters
    ----------
    gap : float
        At most 1/2.
    cycles : float
        How often each arm goes up and down during the play.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Drift
    >>> result = simulate(SCB(n_arms=4), Drift(cycles=2), rounds=1000, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.0, 1.0)
    """

    fill = _fill

    def __init__(
        self, gap: float = 0.25, cycles: float = 3.5, *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.cycles = checked_at_least("cycles", cycles, 0.0)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.cycles / rounds
