"""Losses from Pareto's distribution: heavy tails of one sign."""

from __future__ import annotations

from typing import Any

from unbounded.core.random import Word, stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import checked_at_least, checked_finite, checked_whole


@kernel
def _loss(params: Any, stream: Word, k: int) -> float:
    ratio, best, power = params[0], int(params[1]), params[2]
    x = (1.0 - uniform_at(stream, k)) ** power
    return float(ratio * x if k == best else x)


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    stream = stream_of(state[0], t)
    for k in range(out.size):
        out[k] = _loss(params, stream, k)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    return _loss(params, stream_of(state[0], t), k)


class Pareto(Adversary):
    """Losses of at least 1 from Pareto's distribution, those of one arm times ``ratio``.

    Moments of order ``shape`` and above do not exist.

    Parameters
    ----------
    shape : float
        The exponent of the tail: P(loss > x) = x^-shape.
    ratio : float
        Less than 1 for a better arm.
    best : int
        The better arm.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Pareto
    >>> result = simulate(SCB(n_arms=4), Pareto(shape=1.5), rounds=10_000, seed=0)
    >>> bool(result.high[0, -1] > 100)
    True
    """

    fill = _fill
    entry = _entry

    def __init__(
        self,
        shape: float = 1.5,
        ratio: float = 0.5,
        best: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.shape = checked_at_least("shape", shape, 0.1)
        self.ratio = checked_finite("ratio", ratio)
        self.best = checked_whole("best", best)

    def params(self, n: int, rounds: int) -> Any:
        return self.ratio, self.best % n, -1.0 / self.shape
