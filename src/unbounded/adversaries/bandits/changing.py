"""Non-stationary losses: the best arm, the scale or the offset changes during the play.

Losses of round t are drawn from distributions that hold for a segment of the rounds. The segments
are drawn from the key at the beginning of a play; `MovesAway` moves the best arm by what is played.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from unbounded.adversaries.bandits.adaptive import Chaser
from unbounded.adversaries.bandits.stochastic import Drift
from unbounded.core.arrays import Vector
from unbounded.core.random import Word, stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary, adversary
from unbounded.validation import (
    ArgumentValueError,
    checked_at_least,
    checked_count,
    checked_finite,
    checked_part,
    checked_positive,
    checked_share,
    checked_within,
    one_of,
    setting,
)

Noise = Literal["coins", "uniform", "exponential", "normal", "pareto"]
_NOISES = get_args(Noise)
COINS, UNIFORM, EXPONENTIAL, NORMAL, PARETO, LOGNORMAL = map(float, range(6))
_SHAPE = 1.5  # of Pareto's distribution, whose mean is then three times its minimum

# Params: numbers that hold throughout, the last rounds of the segments, then for each segment its
# noise, its size, and for each arm a mean (a median of LOGNORMAL) and a probability of a time-out.
_OFFSET, _SWING, _CYCLES, _SIGMA, _TIMEOUT, _COUNT, _ENDS = range(7)


class _Segment(NamedTuple):
    """The distributions of the losses up to the round ``end``."""

    end: float
    noise: float
    size: float  # multiplies all losses
    means: Sequence[float] | Vector
    rates: Sequence[float] | None = None  # of time-outs


@kernel
def _segment_at(params: Any, t: int, n: int) -> int:
    """Return the place in ``params`` of the segment of round t."""
    count = int(params[_COUNT])
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if t <= params[_ENDS + middle]:
            high = middle
        else:
            low = middle + 1
    return _ENDS + count + low * (2 + 2 * n)


@kernel
def _offset(params: Any, t: int) -> float:
    """Return what is added to all losses of round t."""
    if params[_SWING] == 0.0:
        return params[_OFFSET]
    wave = math.sin(2.0 * math.pi * params[_CYCLES] * (t - 1))
    return params[_OFFSET] + params[_SWING] * wave


@kernel
def _draw(params: Any, noise: float, mean: float, rate: float, stream: Word, k: int) -> float:
    u = uniform_at(stream, 3 * k)
    if noise == COINS:
        return 1.0 if u < mean else 0.0
    if noise == UNIFORM:
        return 2.0 * mean * u
    if noise == EXPONENTIAL:
        return -mean * math.log(1.0 - u)
    if noise == PARETO:
        return mean / 3.0 * (1.0 - u) ** (-1.0 / _SHAPE)
    radius = math.sqrt(-2.0 * math.log(1.0 - u))
    normal = radius * math.cos(2.0 * math.pi * uniform_at(stream, 3 * k + 1))
    if noise == NORMAL:
        return mean + normal
    if uniform_at(stream, 3 * k + 2) < rate:
        return params[_TIMEOUT]
    return mean * math.exp(params[_SIGMA] * normal)


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    n = out.size
    at, offset, stream = _segment_at(params, t, n), _offset(params, t), stream_of(state[0], t)
    noise, size = params[at], params[at + 1]
    for k in range(n):
        mean, rate = params[at + 2 + k], params[at + 2 + n + k]
        out[k] = offset + size * _draw(params, noise, mean, rate, stream, k)


@kernel
def _expected(params: Any, state: Any, t: int, out: Any) -> float:
    n = out.size
    at, offset = _segment_at(params, t, n), _offset(params, t)
    noise, size = params[at], params[at + 1]
    for k in range(n):
        mean, rate = params[at + 2 + k], params[at + 2 + n + k]
        if noise == LOGNORMAL:
            mean *= math.exp(0.5 * params[_SIGMA] * params[_SIGMA])
            mean += rate * (params[_TIMEOUT] - mean)
        out[k] = offset + size * mean
    return float(size)


class _Segments(Adversary):
    """Losses drawn from the distributions of their segment."""

    fill = _fill
    expected = _expected

    def offset_wave(self) -> tuple[float, float, float]:
        """Return the offset of all losses, how far it goes up and down, and how often."""
        return 0.0, 0.0, 0.0

    def tail(self) -> tuple[float, float]:
        """Return sigma of LOGNORMAL, and what a time-out costs."""
        return 0.0, 0.0

    def segments(self, n: int, rounds: int, rng: np.random.Generator) -> list[_Segment]:
        """Return the segments of a play, in order; only ``rng.random()`` is called."""
        raise NotImplementedError

    def begin(self, n: int, rounds: int, key: int) -> tuple[Vector, Vector]:
        made = self.segments(n, rounds, np.random.default_rng(key))
        none = [0.0] * n
        rows = [(one.noise, one.size, *one.means, *(one.rates or none)) for one in made]
        offset, swing, cycles = self.offset_wave()
        params = np.concatenate([
            (self.scale, self.shift, offset, swing, cycles / rounds, *self.tail(), len(made)),
            [one.end for one in made], np.ravel(rows),
        ])  # fmt: skip
        return params, np.array([key], np.float64)


def _other(arm: int, n: int, rng: np.random.Generator) -> int:
    """Draw another arm, if there is one."""
    return (arm + 1 + int(rng.random() * (n - 1))) % n if n > 1 else arm


@adversary
class Changing(_Segments):
    """One better arm, which changes at equal distances; the scale may change, bursts may come.

    Every change moves the better arm to a random other one.
    """

    changes: int = setting(5, checked_count, 0, doc="How often the better arm changes.")
    noise: Noise = setting(
        "coins", one_of, _NOISES,
        doc="How losses are distributed around their means: 0 or 1, uniform on [0, twice the "
        "mean], exponential, normal with variance 1, or Pareto's with exponent 1.5.",
    )  # fmt: skip
    mean: float = setting(0.6, checked_finite, doc="The mean loss of all arms but the better one.")
    gap: float = setting(0.2, checked_finite, doc="By how much the mean of the better one is less.")
    factor: float = setting(
        1.0, checked_within, 1e-100, 1e100, doc="Multiplies the losses of the second half."
    )
    incidents: int = setting(
        0, checked_count, 0, doc="How many bursts there are, at equal distances, in which losses "
        "are larger and another arm is better."
    )  # fmt: skip
    burst: float = setting(
        100.0, checked_within, 1e-100, 1e100, doc="What multiplies the losses of a burst."
    )
    length: float = setting(0.002, checked_part, doc="Of a burst, as a share of the rounds.")
    offset: float = setting(0.0, checked_finite, doc="What is added to all losses.")
    swing: float = setting(
        0.0, checked_finite, doc="How far the offset goes up and down, along a sine."
    )
    cycles: float = setting(5.0, checked_at_least, 0.0, doc="How often it does.")

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = sorted((self.mean - self.gap, self.mean))
        if self.noise == "coins" and not (low >= 0.0 and high <= 1.0):
            raise ArgumentValueError(
                "mean", f"and mean - gap must be in [0, 1] for coins, got {self.mean:g} and "
                f"{self.mean - self.gap:g}: choose others, or another noise"
            )  # fmt: skip

    def offset_wave(self) -> tuple[float, float, float]:
        return self.offset, self.swing, self.cycles

    def segments(self, n: int, rounds: int, rng: np.random.Generator) -> list[_Segment]:
        noise = float(_NOISES.index(self.noise))
        bests = [int(rng.random() * n)]
        for _ in range(self.changes):
            bests.append(_other(bests[-1], n, rng))
        steps = [1 + int(rng.random() * max(n - 1, 1)) for _ in range(self.incidents)]
        changes = [j * rounds // (self.changes + 1) for j in range(1, self.changes + 1)]
        half = max(1, round(self.length * rounds)) / 2
        middles = [(j + 0.5) * rounds / self.incidents for j in range(self.incidents)]
        bursts = [(math.ceil(middle - half), math.ceil(middle + half)) for middle in middles]
        ends = {0, rounds, rounds // 2, *changes, *(end for burst in bursts for end in burst)}
        segments = []
        for begin, end in pairwise(sorted(end for end in ends if 0 <= end <= rounds)):
            best = bests[sum(at <= begin for at in changes)]
            size = self.factor if begin >= rounds // 2 else 1.0
            for step, (first, last) in zip(steps, bursts, strict=True):
                if first <= begin < last:
                    best, size = (best + step) % n, size * self.burst
                    break
            means = [self.mean - self.gap if k == best else self.mean for k in range(n)]
            segments.append(_Segment(end, noise, size, means))
        return segments


@adversary
class RandomChanges(_Segments):
    """A random program of changes: means, noise and sometimes the scale are drawn anew.

    At each change the means of all arms are drawn from [0, 1], the noise is one of coins, uniform
    and exponential, and with probability ``scale_changes`` all losses are multiplied by a number
    between 10^-decades and 10^decades.
    """

    most: int = setting(
        39, checked_count, 0, doc="The largest number of changes; it is drawn from 0 to this one."
    )
    scale_changes: float = setting(
        0.2, checked_share, doc="The probability with which a change is one of scale, too."
    )
    decades: float = setting(2.0, checked_within, 0.0, 100.0, doc="How far the scale changes.")
    seed: int | None = setting(
        None, checked_count, 0, doc="Seeds the program, so that it is the same in all replicates; "
        "without it, each has its own."
    )  # fmt: skip

    def segments(self, n: int, rounds: int, rng: np.random.Generator) -> list[_Segment]:
        rng = rng if self.seed is None else np.random.default_rng(self.seed)
        changes = int(rng.random() * (self.most + 1))
        ends = sorted({*(int(rng.random() * rounds) for _ in range(changes)), rounds} - {0})
        exponent, segments = 0.0, []
        for j, end in enumerate(ends):
            means = [rng.random() for _ in range(n)]
            noise = float(int(3 * rng.random()))
            changed, by = rng.random() < self.scale_changes, self.decades * (2 * rng.random() - 1)
            exponent += by if changed and j > 0 else 0.0
            segments.append(_Segment(end, noise, 10.0 ** max(-200, min(200, exponent)), means))
        return segments


@adversary
class Replicas(_Segments):
    """Log-normal latencies in ms, with time-outs; a fast replica degrades and recovers.

    Medians are evenly spaced and in random order. The rounds are cut into as many equal parts as
    there are degradations; in the middle half of each, one of the two fastest replicas is slower.
    """

    fastest: float = setting(40.0, checked_positive, doc="The smallest median.")
    slowest: float = setting(120.0, checked_positive, doc="The largest median.")
    sigma: float = setting(
        0.5, checked_within, 0.0, 20.0, doc="Standard deviation of the logarithm of a latency."
    )
    rate: float = setting(0.005, checked_share, doc="The probability of a time-out.")
    timeout: float = setting(30_000.0, checked_positive, doc="What a time-out costs.")
    degradations: int = setting(10, checked_count, 0, doc="How many there are.")
    slowdown: float = setting(
        4.0, checked_positive, doc="What multiplies the latencies of a degraded replica."
    )

    def tail(self) -> tuple[float, float]:
        return self.sigma, self.timeout

    def segments(self, n: int, rounds: int, rng: np.random.Generator) -> list[_Segment]:
        order = np.argsort([rng.random() for _ in range(n)])  # the fastest first
        medians = np.empty(n)
        medians[order] = np.linspace(self.fastest, self.slowest, n)
        rates, part = [self.rate] * n, rounds / max(self.degradations, 1)
        segments = []
        for j in range(self.degradations):
            slow, (begin, end) = medians.copy(), (int((j + x) * part) for x in (0.25, 0.75))
            slow[order[int(rng.random() * min(n, 2))]] *= self.slowdown
            segments += [
                _Segment(begin, LOGNORMAL, 1.0, medians, rates),
                _Segment(end, LOGNORMAL, 1.0, slow, rates),
            ]
        return [*segments, _Segment(rounds, LOGNORMAL, 1.0, medians, rates)]


@adversary
class ServiceDay(_Segments):
    """A day of six services: log-normal latencies in ms, incidents, and one that hangs.

    Medians are 120, 80, 150, 60, 200 and 95 ms (again from the first for more than six arms),
    sigma is 0.35, and 0.1% of requests time out after 30 s. Of 20,000 requests, the service with
    the smallest median is six times slower with 5% time-outs from 3,000 to 6,000, the second four
    times slower from 9,000 to 10,500, and 3% of the requests of the first hang until they time out
    from 12,000 to 15,000. Other numbers of rounds stretch the day.
    """

    medians: ClassVar[tuple[float, ...]] = (120.0, 80.0, 150.0, 60.0, 200.0, 95.0)

    def tail(self) -> tuple[float, float]:
        return 0.35, 30_000.0

    def segments(self, n: int, rounds: int, rng: np.random.Generator) -> list[_Segment]:
        medians = np.array([self.medians[k % 6] for k in range(n)])
        first, *others = np.argsort(medians, kind="stable")
        second = others[0] if others else first
        usual = _Segment(0.0, LOGNORMAL, 1.0, medians, [0.001] * n)

        def but(arm: int, factor: float, rate: float) -> _Segment:
            slow, rates = medians.copy(), [0.001] * n
            slow[arm] *= factor
            rates[arm] = rate
            return usual._replace(means=slow, rates=rates)

        day = [
            (3000, usual), (6000, but(first, 6.0, 0.05)), (9000, usual),
            (10_500, but(second, 4.0, 0.001)), (12_000, usual), (15_000, but(first, 1.0, 0.03)),
            (20_000, usual),
        ]  # fmt: skip
        return [one._replace(end=end * rounds // 20_000) for end, one in day]


_KEY, _BEST, _PLAYS = range(3)  # slots of the state: a number for each arm, then the window


@kernel
def _fill_moves_away(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    mean, gap, share, window, n = params[0], params[1], params[2], int(params[3]), out.size
    if last_arm >= 0:
        best, recent = int(state[_BEST]), 0
        state[_PLAYS + last_arm] += 1.0
        state[_PLAYS + n + (t - 2) % window] = last_arm
        for i in range(window):
            if state[_PLAYS + n + i] == best:
                recent += 1
        if t > window and recent >= share * window:
            for k in range(n):
                if state[_PLAYS + k] < state[_PLAYS + best]:
                    best = k
            state[_BEST] = best
    stream = stream_of(state[_KEY], t)
    for k in range(n):
        out[k] = 1.0 if uniform_at(stream, k) < mean - (gap if k == state[_BEST] else 0.0) else 0.0


@kernel
def _expected_moves_away(params: Any, state: Any, t: int, out: Any) -> float:
    for k in range(out.size):
        out[k] = params[0] - (params[1] if k == state[_BEST] else 0.0)
    return 1.0


@adversary
class MovesAway(Adversary):
    """Losses 0 or 1, one arm better, which changes as soon as the learner is confident of it.

    It moves to the arm that was played least often when it had a ``share`` of the last plays.
    """

    mean: float = setting(0.6, checked_share, doc="The mean loss of all arms but the better one.")
    gap: float = setting(0.2, checked_share, doc="By how much the mean of the better one is less.")
    share: float = setting(0.8, checked_part, doc="Of the plays in the window, in (0, 1].")
    window: int = setting(200, checked_count, doc="How many of the last plays are looked at.")

    fill = _fill_moves_away
    expected = _expected_moves_away
    looks = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gap > self.mean:
            raise ArgumentValueError("gap", f"must be at most mean={self.mean:g}, got {self.gap:g}")

    def params(self, n: int, rounds: int) -> Any:
        return self.mean, self.gap, self.share, self.window

    def state(self, n: int, rounds: int, key: int) -> Any:
        return np.concatenate([(key, key % n), np.zeros(n), np.full(self.window, -1.0)])


def changing() -> dict[str, Adversary]:
    """Return adversaries whose best arm changes, by names.

    Examples
    --------
    >>> from unbounded import AdaINF, simulate
    >>> from unbounded.adversaries import changing
    >>> result = simulate(AdaINF(10), changing()["drift"], rounds=1000, seed=0)
    >>> result.adversary
    'Drift'
    """
    return {
        "stationary": Changing(changes=0),
        "1 change": Changing(changes=1),
        **{f"{many} changes": Changing(changes=many) for many in (5, 20, 100)},
        "drift": Drift(gap=0.3, cycles=3.0, wave="sine"),
        "scale falls": Changing(changes=3, factor=1e-3),
        "scale rises": Changing(changes=3, factor=1e3),
        "incidents": Changing(incidents=10),
        "cheap": Changing(mean=0.6, gap=0.594),
        "heavy tails": Changing(noise="pareto"),
        "offset drifts": Changing(noise="normal", mean=0.5, gap=0.5, offset=100.0, swing=20.0),
        "replicas": Replicas(),
        "service day": ServiceDay(),
        "moves away": MovesAway(),
        "likeliest costs 1": Chaser(),
    }
