"""Log-normal losses with time-outs: what replicas of a service cost."""

from __future__ import annotations

import math
from typing import Any

from unbounded.core.random import Word, stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import (
    checked_at_least,
    checked_positive,
    checked_share,
    checked_whole,
    checked_within,
)


@kernel
def _latency(params: Any, stream: Word, k: int) -> float:
    sigma, step, fastest, n = params[0], params[1], int(params[2]), int(params[3])
    rate, fastest_rate, timeout = params[4], params[5], params[6]
    place = (k - fastest) % n
    if uniform_at(stream, 3 * k + 2) < (fastest_rate if place == 0 else rate):
        return float(timeout)
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform_at(stream, 3 * k)))
    normal = radius * math.cos(2.0 * math.pi * uniform_at(stream, 3 * k + 1))
    return float((1.0 + step * place) * math.exp(sigma * normal))


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    stream = stream_of(state[0], t)
    for k in range(out.size):
        out[k] = _latency(params, stream, k)


@kernel
def _entry(params: Any, state: Any, t: int, k: int) -> float:
    return _latency(params, stream_of(state[0], t), k)


class Latencies(Adversary):
    """Log-normal losses with medians from 1 to ``spread``, and now and then a time-out.

    Parameters
    ----------
    sigma : float
        Standard deviation of the logarithm of a loss.
    spread : float
        The largest median; the smallest is 1, and the others are evenly spaced.
    rate : float
        The probability of a time-out.
    fastest_rate : float, optional
        That of the arm with the smallest median, if it is another one: then the arm that is
        usually the fastest may be the dearest.
    timeout : float
        What a time-out costs.
    fastest : int
        The arm with the smallest median.
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import CostSCB, simulate
    >>> from unbounded.adversaries import Latencies
    >>> milliseconds = Latencies(rate=0.01, scale=40.0)
    >>> result = simulate(CostSCB(n_arms=8, outliers="sqrt"), milliseconds, rounds=1000, seed=0)
    >>> float(result.high[0, -1])
    30000.0
    """

    fill = _fill
    entry = _entry

    def __init__(
        self,
        sigma: float = 0.5,
        spread: float = 3.0,
        rate: float = 0.0,
        fastest_rate: float | None = None,
        timeout: float = 750.0,
        fastest: int = 0,
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.sigma = checked_within("sigma", sigma, 0.0, 80.0)  # exp(9 sigma) must be finite
        self.spread = checked_at_least("spread", spread, 1.0)
        self.rate = checked_share("rate", rate)
        self.fastest_rate = fastest_rate
        if fastest_rate is not None:
            self.fastest_rate = checked_share("fastest_rate", fastest_rate)
        self.timeout = checked_positive("timeout", timeout)
        self.fastest = checked_whole("fastest", fastest)

    def params(self, n: int, rounds: int) -> Any:
        step = (self.spread - 1.0) / max(1, n - 1)
        fastest_rate = self.rate if self.fastest_rate is None else self.fastest_rate
        return self.sigma, step, self.fastest % n, n, self.rate, fastest_rate, self.timeout
