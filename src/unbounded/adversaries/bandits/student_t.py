"""Losses from Student's t distribution: heavy tails of both signs."""

from __future__ import annotations

import math
from typing import Any

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_at_least, checked_finite, checked_whole


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, degrees = params[0], int(params[1]), params[2]
    stream = stream_of(state[0], t)
    for k in range(out.size):
        u = 1.0 - uniform_at(stream, 2 * k)
        angle = 2.0 * math.pi * uniform_at(stream, 2 * k + 1)
        radius = math.sqrt(degrees * (u ** (-2.0 / degrees) - 1.0))
        out[k] = radius * math.cos(angle) - (gap if k == best else 0.0)


class StudentT(Adversary):
    """Losses from Student's t distribution, one arm lower by ``gap``.

    Moments of order ``degrees`` and above do not exist. Sampled by the polar formula of Bailey
    (1994).

    Parameters
    ----------
    degrees : float
        Degrees of freedom.
    gap : float
        By how much the better arm is lower.
    best : int
        The better arm.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import StudentT
    >>> result = simulate(SCB(n_arms=4), StudentT(degrees=2), rounds=10_000, seed=0)
    >>> bool(result.largest_loss[0, -1] > 50)
    True
    """

    fill = _fill

    def __init__(
        self,
        degrees: float = 2.0,
        gap: float = 0.5,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        # 1 - u is at least 2^-53, and must not overflow when raised to -2 / degrees
        self.degrees = checked_at_least("degrees", degrees, 0.2)
        self.gap = checked_finite("gap", gap)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.degrees
