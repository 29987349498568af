"""Losses of one sign, of both, or of a sign that changes with time."""

from __future__ import annotations

from typing import Any, Literal

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_option, checked_whole, checked_within

_PATTERNS = ("positive", "negative", "mixed", "alternating")


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, pattern, period = params[0], int(params[1]), int(params[2]), int(params[3])
    stream = stream_of(state[0], t)
    negative = pattern == 1 or (pattern == 3 and ((t - 1) // period) % 2 == 1)
    for k in range(out.size):
        x = uniform_at(stream, k) * 0.5 + (0.5 - gap if k == best else 0.5) * 0.5
        if pattern == 2:
            x = 2.0 * x - 1.0
        out[k] = x - 1.0 if negative else x


class Signs(Adversary):
    """Losses spread evenly, one arm better, with the signs of a pattern.

    Parameters
    ----------
    pattern : {"positive", "negative", "mixed", "alternating"}
        Losses in [0, 1], in [-1, 0], in [-1, 1], or in [0, 1] and [-1, 0] by turns: ten changes
        of sign that concern all arms and hence no difference between them.
    gap : float
        By how much the better arm's mean is lower, in units of twice the width; at most 1/2.
    best : int
        The better arm.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Signs
    >>> result = simulate(SCB(n_arms=4), Signs("negative"), rounds=1000, seed=0)
    >>> bool(result.high[0, -1] <= 0.0)
    True
    """

    fill = _fill

    def __init__(
        self,
        pattern: Literal["positive", "negative", "mixed", "alternating"] = "mixed",
        gap: float = 0.2,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        checked_option("pattern", pattern, _PATTERNS)
        self.pattern = pattern
        self.gap = checked_within("gap", gap, 0.0, 0.5)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, _PATTERNS.index(self.pattern), max(rounds // 11, 1)
