"""Adversaries as short programs, and the worst cases that a search among them has found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary
from unbounded.validation import ArgumentValueError

NO_REACTION, PUNISH_LIKELIEST, REWARD_UNLIKELIEST, PUNISH_LAST = range(4)
AT_MINIMUM, BELOW, ABOVE = range(3)


class Phase(NamedTuple):
    """What a `Program` does for a stretch of rounds.

    Attributes
    ----------
    end : float
        The share of the rounds after which the phase is over.
    best : float
        The better arm, as a share of the arms: 0 is the first and 0.999 the last.
    level, gap : float
        The usual loss of all arms, and by how much the better arm's is lower.
    noise : float
        Probability with which a loss is drawn as 0 or 1 with its mean, instead of the mean.
    size, growth : float
        Losses are multiplied by ``size``, which grows by the factor ``growth`` over the phase.
    reaction : int
        NO_REACTION, or PUNISH_LIKELIEST (loss ``size`` for the likeliest arm), REWARD_UNLIKELIEST
        (loss 0 for the least likely) or PUNISH_LAST (loss ``size`` for the arm played last).
    trigger : float
        React only while the largest probability is above this.
    spike_rate : float
        Probability of a spike in a round.
    spike : int
        AT_MINIMUM: the likeliest arm gets the smallest loss that the learner has observed. BELOW,
        ABOVE: a random arm gets a loss ``margin`` widths outside of the observed range.
    margin : float
        See ``spike``.

    Examples
    --------
    >>> from unbounded.adversaries import Phase, Program
    >>> Program([Phase(end=0.5), Phase(best=0.999, size=100.0)]).phases[1].size
    100.0
    """

    end: float = 1.0
    best: float = 0.0
    level: float = 0.5
    gap: float = 0.1
    noise: float = 0.0
    size: float = 1.0
    growth: float = 1.0
    reaction: int = NO_REACTION
    trigger: float = 0.0
    spike_rate: float = 0.0
    spike: int = AT_MINIMUM
    margin: float = 0.0


_WIDTH = len(Phase._fields)
_KEY, _LOW, _HIGH, _LAST = 0, 1, 2, 3  # slots of the state; last round's losses from _LAST on


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    n, rounds = out.size, params[0]
    if last_arm >= 0:
        state[_LOW] = min(state[_LOW], state[_LAST + last_arm])
        state[_HIGH] = max(state[_HIGH], state[_LAST + last_arm])
    share = (t - 1) / rounds
    at = 1
    begin = 0.0
    while at + _WIDTH < params.size and share >= params[at]:
        begin = params[at]
        at += _WIDTH
    phase = params[at : at + _WIDTH]
    end, best, level, gap, noise = phase[0], int(phase[1] * n), phase[2], phase[3], phase[4]
    size = phase[5] * phase[6] ** ((share - begin) / max(end - begin, 1e-9))
    reaction, trigger, spike_rate, spike = phase[7], phase[8], phase[9], phase[10]
    margin = phase[11]
    stream = stream_of(state[_KEY], t)
    likeliest = 0
    unlikeliest = 0
    for k in range(n):
        mean = level - gap if k == best else level
        if uniform_at(stream, 2 * k) < noise:
            mean = 1.0 if uniform_at(stream, 2 * k + 1) < mean else 0.0
        out[k] = size * mean
        likeliest = k if q[k] > q[likeliest] else likeliest
        unlikeliest = k if q[k] < q[unlikeliest] else unlikeliest
    if q[likeliest] > trigger:
        if reaction == PUNISH_LIKELIEST:
            out[likeliest] = size
        elif reaction == REWARD_UNLIKELIEST:
            out[unlikeliest] = 0.0
        elif reaction == PUNISH_LAST and last_arm >= 0:
            out[last_arm] = size
    if uniform_at(stream, 2 * n) < spike_rate and state[_LOW] <= state[_HIGH]:
        arm = int(uniform_at(stream, 2 * n + 1) * n)
        width = max(state[_HIGH] - state[_LOW], 1e-3 * size)
        if spike == AT_MINIMUM:
            out[likeliest] = state[_LOW]
        elif spike == BELOW:
            out[arm] = max(state[_LOW] - margin * width, -1e6 * size)
        else:
            out[arm] = min(state[_HIGH] + margin * width, 1e6 * size)
    for k in range(n):
        state[_LAST + k] = out[k]


class Program(Adversary):
    """Phases of losses that switch, grow, spike and react to the learner's probabilities.

    Parameters
    ----------
    phases : sequence of Phase
        In order of their ``end``; the last should end at 1. Each may be a mapping with the
        fields of a `Phase`, as a table in a file is.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import Phase, Program
    >>> switch = Program([Phase(end=0.5, best=0.0), Phase(best=0.99)])
    >>> result = simulate(SCB(n_arms=4), switch, rounds=1000, seed=0)
    >>> float(result.low[0, -1]), float(result.high[0, -1])
    (0.4, 0.5)
    """

    fill = _fill
    looks = True

    def __init__(
        self, phases: Sequence[Phase | Mapping[str, Any]], *, scale: float = 1.0, shift: float = 0.0
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.phases = tuple(
            Phase(**phase) if isinstance(phase, Mapping) else Phase(*phase) for phase in phases
        )
        ends = [phase.end for phase in self.phases]
        if not ends or ends != sorted(ends):
            raise ArgumentValueError(
                "phases", f"must be given in the order of their ends, got ends {ends}"
            )
        if not all(0.0 <= phase.best < 1.0 for phase in self.phases):
            raise ArgumentValueError("phases", "must each have best in [0, 1)")
        if not np.isfinite(self.phases).all():
            raise ArgumentValueError("phases", "must be made of finite numbers")

    def params(self, n: int, rounds: int) -> Any:
        return np.concatenate([(rounds,), np.ravel(self.phases)])

    def state(self, n: int, rounds: int, key: int) -> Any:
        return np.concatenate([(key, math.inf, -math.inf), np.zeros(n)])


def worst_cases() -> dict[str, tuple[Program, tuple[float, float]]]:
    """Return programs that cost one learner much, each with a range that its losses do not leave.

    Four separate range clipping from scale clipping, two were found against `AdaINF`. The searches
    are benchmarks/adversary_search.py and benchmarks/signed.py; what they say about the learners is
    in docs/results/index.md. The programs were simplified and rounded by hand; the reasons given
    for their effect are conjectures.

    - "punish confident": the best arm is at the observed minimum, by a small gap; who becomes sure
      of it is punished. Range clipping becomes sure sooner, and so loses where scale clipping never
      gets there (many arms, few rounds).
    - "lock-in": after a quiet start and a stretch of punished confidence, large coin flips during
      which the likeliest arm mostly gets the smallest loss observed: range clipping learns nothing
      from it and stays with that arm.
    - "late scale": small losses for half of the time, then large ones with another best arm, after
      which the offset of scale clipping forgets slowly.
    - "offset": the losses are far from 0 compared with their differences.
    - "reward the unlikely": the least likely arm of each round has no loss. What is learned about
      an arm is wrong as soon as it is acted upon; learners that are given the range suffer most.
    - "turns good late": the unlikely arm is rewarded and the first arm learned; then the last arm,
      of which nothing good is known, becomes the best, and who finds it is punished.

    Examples
    --------
    >>> from unbounded import SCB, simulate
    >>> from unbounded.adversaries import worst_cases
    >>> offset, loss_range = worst_cases()["offset"]
    >>> learner = SCB(n_arms=10)
    >>> result = simulate(learner, offset, rounds=1000, seed=0)
    >>> bool(loss_range[0] <= result.low[0, -1] <= result.high[0, -1] <= loss_range[1])
    True
    """
    confident = Phase(level=0.05, gap=0.05, reaction=PUNISH_LAST, trigger=0.93)
    quiet = Phase(end=0.2, best=0.99, level=0.7, gap=0.06, growth=0.01)
    punished = Phase(
        end=0.62, best=0.5, level=0.99, gap=0.82, noise=0.83, reaction=PUNISH_LAST, trigger=0.94
    )
    locked = Phase(level=0.14, gap=0.06, noise=1.0, size=48.0, spike_rate=0.9)
    small = Phase(end=0.5, level=0.4, gap=0.4, size=0.05)
    large = Phase(best=0.99, level=0.5, gap=0.5)
    unlikely = Phase(level=1.0, gap=0.1, reaction=REWARD_UNLIKELIEST)
    first = Phase(
        end=0.4, level=0.45, gap=0.34, noise=0.85, reaction=REWARD_UNLIKELIEST, trigger=0.6
    )
    last = Phase(best=0.99, level=0.26, gap=0.16, noise=0.13, reaction=PUNISH_LAST, trigger=0.27)
    return {
        "punish confident": (Program([confident]), (0.0, 1.0)),
        "lock-in": (Program([quiet, punished, locked]), (0.0, 48.0)),
        "late scale": (Program([small, large]), (0.0, 0.5)),
        "offset": (Program([Phase(best=0.99, level=0.92, gap=0.39)]), (0.53, 0.92)),
        "reward the unlikely": (Program([unlikely]), (0.0, 1.0)),
        "turns good late": (Program([first, last]), (0.0, 1.0)),
    }
