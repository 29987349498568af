"""Adversaries as short programs, for searching among them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary

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
    reaction, trigger, spike_rate, spike, margin = (
        phase[7],
        phase[8],
        phase[9],
        phase[10],
        phase[11],
    )
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
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

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
        self,
        phases: Sequence[Phase | Mapping[str, Any]],
        *,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> None:
        super().__init__(scale=scale, shift=shift)
        self.phases = tuple(
            Phase(**phase) if isinstance(phase, Mapping) else Phase(*phase) for phase in phases
        )
        ends = [phase.end for phase in self.phases]
        if not ends or ends != sorted(ends):
            raise ValueError(f"phases must be given in the order of their ends, got ends {ends}")
        if not all(0.0 <= phase.best < 1.0 for phase in self.phases):
            raise ValueError("best must be in [0, 1) in every phase")
        if not np.isfinite(self.phases).all():
            raise ValueError("phases must be made of finite numbers")

    def params(self, n: int, rounds: int) -> Any:
        return np.concatenate([(rounds,), np.ravel(self.phases)])

    def state(self, n: int, rounds: int, key: int) -> Any:
        return np.concatenate([(key, math.inf, -math.inf), np.zeros(n)])
