"""Stochastic losses: coins with one better arm, moving means, heavy tails, growing scales.

Losses of round t are a function of (key, t, arm): independent of the learner.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.random import Word, stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary, adversary
from unbounded.validation import (
    checked_at_least,
    checked_finite,
    checked_part,
    checked_positive,
    checked_share,
    checked_whole,
    checked_within,
    one_of,
    setting,
)

GAP = "By how much the mean of the better arm is lower, at most 1/2."

# ------------------------------------------------------------------ coins


@kernel
def loses(stream: Word, k: int, best: int, gap: float) -> bool:
    """Whether the coin of arm k falls on a loss: probability 1/2, and 1/2 - gap for ``best``."""
    return uniform_at(stream, k) < (0.5 - gap if k == best else 0.5)


@kernel
def toss(stream: Word, best: int, gap: float, size: float, out: Any) -> None:
    """``size`` for the arms whose coin falls on a loss, 0 for the others."""
    for k in range(out.size):
        out[k] = size if loses(stream, k, best, gap) else 0.0


# Params of coins: three numbers (gap, best, size) that hold up to round `at`, and three for later.
_AT = 3


@kernel
def _fill_coins(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    now = _AT + 1 if t > params[_AT] else 0
    toss(stream_of(state[0], t), int(params[now + 1]), params[now], params[now + 2], out)


@kernel
def _coin(params: Any, state: Any, t: int, k: int) -> float:
    now = _AT + 1 if t > params[_AT] else 0
    lost = loses(stream_of(state[0], t), k, int(params[now + 1]), params[now])
    return float(params[now + 2]) if lost else 0.0


@kernel
def _expected_coins(params: Any, state: Any, t: int, out: Any) -> float:
    now = _AT + 1 if t > params[_AT] else 0
    gap, best, size = params[now], int(params[now + 1]), params[now + 2]
    for k in range(out.size):
        out[k] = size * (0.5 - gap if k == best else 0.5)
    return size if size > 0.0 else 1.0


@adversary
class StochasticGap(Adversary):
    """Losses 0 or 1 with mean 1/2, except for one arm whose mean is lower by ``gap``."""

    gap: float = setting(0.1, checked_within, 0.0, 0.5, doc=GAP)
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_coins
    entry = _coin
    expected = _expected_coins

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, 1.0, math.inf


@adversary
class LowerBound(Adversary):
    """Fair coins, except for one random arm that is better by about sqrt(n / T).

    No learner can have regret below a constant times sqrt(n T) on it (Auer et al. 2002).
    """

    factor: float = setting(
        0.5, checked_at_least, 0.0, doc="The gap is ``min(1/4, factor * sqrt(n / rounds))``."
    )

    fill = _fill_coins
    entry = _coin
    expected = _expected_coins
    reference = "Auer, Cesa-Bianchi, Freund & Schapire 2002, Theorem 5.1"

    def begin(self, n: int, rounds: int, key: int) -> tuple[Vector, Vector]:
        gap = min(0.25, self.factor * math.sqrt(n / rounds))
        params = np.array([self.scale, self.shift, gap, key % n, 1.0, math.inf])
        return params, np.array([key], np.float64)


@adversary
class Switch(Adversary):
    """Losses 0 or 1 with mean 1/2; arm 0 is better at first, then arm 1 by three times as much."""

    gap: float = setting(
        0.1, checked_within, 0.0, 1.0 / 6.0, doc="How much better arm 0 is at first, at most 1/6."
    )
    at: float = setting(0.5, checked_share, doc="When, as a share of the rounds.")

    fill = _fill_coins
    entry = _coin
    expected = _expected_coins

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, 0, 1.0, self.at * rounds, 3.0 * self.gap, 1, 1.0


@adversary
class ZerosFirst(Adversary):
    """All losses are 0 for a share of the rounds; then 0 or 1, one arm better."""

    share: float = setting(0.5, checked_share, doc="Of the rounds that are silent, in [0, 1].")
    gap: float = setting(0.1, checked_within, 0.0, 0.5, doc=GAP)
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_coins
    expected = _expected_coins

    def params(self, n: int, rounds: int) -> Any:
        best = self.best % n
        return self.gap, best, 0.0, int(self.share * rounds), self.gap, best, 1.0


# ------------------------------------------------------------------ moving means and signs


@kernel
def _drifting_mean(params: Any, t: int, k: int, n: int) -> float:
    gap, cycles_a_round, sine = params[0], params[1], params[2]
    phase = cycles_a_round * (t - 1) + k / n
    if sine:
        return 0.5 + gap * math.sin(2.0 * math.pi * phase)
    return 0.5 + gap * (4.0 * abs(phase - int(phase) - 0.5) - 1.0)  # a triangle between -1 and 1


@kernel
def _fill_drift(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    stream = stream_of(state[0], t)
    for k in range(out.size):
        out[k] = 1.0 if uniform_at(stream, k) < _drifting_mean(params, t, k, out.size) else 0.0


@kernel
def _expected_drift(params: Any, state: Any, t: int, out: Any) -> float:
    for k in range(out.size):
        out[k] = _drifting_mean(params, t, k, out.size)
    return 1.0


@adversary
class Drift(Adversary):
    """Losses 0 or 1 whose means go up and down between 1/2 - gap and 1/2 + gap, arm after arm."""

    gap: float = setting(
        0.25, checked_within, 0.0, 0.5, doc="How far means go from 1/2, at most 1/2."
    )
    cycles: float = setting(
        3.5, checked_at_least, 0.0, doc="How often each arm goes up and down during the play."
    )
    wave: Literal["triangle", "sine"] = setting(
        "triangle", one_of, ("triangle", "sine"), doc="Along what curve."
    )

    fill = _fill_drift
    expected = _expected_drift

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.cycles / rounds, self.wave == "sine"


Pattern = Literal["positive", "negative", "mixed", "alternating"]
_PATTERNS = get_args(Pattern)


@kernel
def _fill_signs(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, pattern, period = params[0], int(params[1]), int(params[2]), int(params[3])
    stream = stream_of(state[0], t)
    negative = pattern == 1 or (pattern == 3 and ((t - 1) // period) % 2 == 1)
    for k in range(out.size):
        x = uniform_at(stream, k) * 0.5 + (0.5 - gap if k == best else 0.5) * 0.5
        if pattern == 2:
            x = 2.0 * x - 1.0
        out[k] = x - 1.0 if negative else x


@adversary
class Signs(Adversary):
    """Losses spread evenly, one arm better, with the signs of a pattern.

    Losses are in [0, 1], in [-1, 0], in [-1, 1], or "alternating": in [0, 1] and [-1, 0] by turns,
    with ten changes of sign that concern all arms and hence no difference between them.
    """

    pattern: Pattern = setting("mixed", one_of, _PATTERNS, doc="Which signs losses have.")
    gap: float = setting(
        0.2, checked_within, 0.0, 0.5, doc="The gap of the means over twice the width, at most 1/2."
    )
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_signs

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, _PATTERNS.index(self.pattern), max(rounds // 11, 1)


# ------------------------------------------------------------------ heavy tails


def independent(loss: Any) -> tuple[Any, Any]:
    """Make ``fill`` and ``entry`` of a kernel ``loss(params, stream, k)``, the loss of one arm."""

    @kernel
    def fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
        stream = stream_of(state[0], t)
        for k in range(out.size):
            out[k] = loss(params, stream, k)

    @kernel
    def entry(params: Any, state: Any, t: int, k: int) -> float:
        return loss(params, stream_of(state[0], t), k)

    return fill, entry


@kernel
def _pareto(params: Any, stream: Word, k: int) -> float:
    ratio, best, power = params[0], int(params[1]), params[2]
    x = (1.0 - uniform_at(stream, k)) ** power
    return float(ratio * x if k == best else x)


@adversary
class Pareto(Adversary):
    """Losses of at least 1 from Pareto's distribution, those of one arm times ``ratio``.

    Moments of order ``shape`` and above do not exist.
    """

    shape: float = setting(
        1.5, checked_at_least, 0.1, doc="The exponent of the tail: P(loss > x) = x^-shape."
    )
    ratio: float = setting(0.5, checked_finite, doc="Less than 1 for a better arm.")
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill, entry = independent(_pareto)

    def params(self, n: int, rounds: int) -> Any:
        return self.ratio, self.best % n, -1.0 / self.shape


@kernel
def _fill_student(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, degrees = params[0], int(params[1]), params[2]
    stream = stream_of(state[0], t)
    for k in range(out.size):
        u = 1.0 - uniform_at(stream, 2 * k)
        angle = 2.0 * math.pi * uniform_at(stream, 2 * k + 1)
        radius = math.sqrt(degrees * (u ** (-2.0 / degrees) - 1.0))
        out[k] = radius * math.cos(angle) - (gap if k == best else 0.0)


@adversary
class StudentT(Adversary):
    """Losses from Student's t distribution, one arm lower by ``gap``.

    Moments of order ``degrees`` and above do not exist. Sampled by the polar formula of Bailey
    (1994).
    """

    # 1 - u is at least 2^-53, and must not overflow when raised to -2 / degrees
    degrees: float = setting(2.0, checked_at_least, 0.2, doc="Degrees of freedom.")
    gap: float = setting(0.5, checked_finite, doc="By how much the better arm is lower.")
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_student

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.degrees


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


@adversary
class Latencies(Adversary):
    """Log-normal losses with evenly spaced medians, and now and then a time-out.

    With another rate of time-outs, the arm that is usually the fastest may be the dearest.
    """

    # exp(9 sigma) must be finite
    sigma: float = setting(
        0.5, checked_within, 0.0, 80.0, doc="Standard deviation of the logarithm of a loss."
    )
    spread: float = setting(
        3.0, checked_at_least, 1.0, doc="The largest median; the smallest is 1."
    )
    rate: float = setting(0.0, checked_share, doc="The probability of a time-out.")
    fastest_rate: float | None = setting(
        None, checked_share, doc="That of the fastest arm; ``rate`` by default."
    )
    timeout: float = setting(750.0, checked_positive, doc="What a time-out costs.")
    fastest: int = setting(0, checked_whole, doc="The arm with the smallest median.")

    fill, entry = independent(_latency)

    def params(self, n: int, rounds: int) -> Any:
        step = (self.spread - 1.0) / max(1, n - 1)
        fastest_rate = self.rate if self.fastest_rate is None else self.fastest_rate
        return self.sigma, step, self.fastest % n, n, self.rate, fastest_rate, self.timeout


# ------------------------------------------------------------------ scales that grow or fall


@kernel
def _size(params: Any, t: int) -> float:
    doublings, rounds = params[0], params[1]
    return math.exp2(doublings * (t / rounds - 1.0))


@kernel
def _fill_growth(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    size, gap, stream = _size(params, t), params[2], stream_of(state[0], t)
    for k in range(out.size):
        out[k] = size if loses(stream, k, 0, gap) else -size


@kernel
def _one_growth(params: Any, state: Any, t: int, k: int) -> float:
    size, gap = _size(params, t), params[2]
    return size if loses(stream_of(state[0], t), k, 0, gap) else -size


@adversary
class Growth(Adversary):
    """Losses of either sign whose size doubles ``doublings`` times and ends at 1."""

    doublings: float = setting(
        20.0, checked_within, 0.0, 1000.0, doc="How often; 2^20-fold by default."
    )
    gap: float = setting(
        0.3, checked_within, 0.0, 0.5, doc="By how much arm 0 is less likely to lose, at most 1/2."
    )

    fill = _fill_growth
    entry = _one_growth

    def params(self, n: int, rounds: int) -> Any:
        return self.doublings, rounds, self.gap


@kernel
def _fill_shrink(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    gap, best, final, last = params[0], int(params[1]), params[2], params[3]
    toss(stream_of(state[0], t), best, gap, final ** ((t - 1) / last), out)


@adversary
class Shrink(Adversary):
    """Losses 0 or s, one arm better, where s falls geometrically from 1 to ``final``.

    A learner that has seen the large losses must not stop caring, and one whose rates follow the
    losses has little left to win.
    """

    final: float = setting(1e-3, checked_part, doc="The size of the last losses, in (0, 1].")
    gap: float = setting(
        0.1, checked_within, 0.0, 0.5, doc="The gap of the means in units of s, at most 1/2."
    )
    best: int = setting(0, checked_whole, doc="The better arm.")

    fill = _fill_shrink

    def params(self, n: int, rounds: int) -> Any:
        return self.gap, self.best % n, self.final, max(rounds - 1, 1)
