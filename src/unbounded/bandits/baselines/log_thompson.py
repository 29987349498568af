"""Thompson sampling on the logarithms of the losses: the conjugate normal model.

This follows no paper line by line. It is the standard model for normal observations, with the
uniform prior and the first plays that Honda & Takemura (2014) give for Gaussian rewards, put on
logarithms, of which they do not speak. The logarithms of an arm's losses are taken as normal with
unknown mean and variance. With the uniform prior the mean's posterior after s losses is Student's:
sqrt(s (s - 3) / Q) (mu - mean) has s - 3 degrees of freedom, Q being the sum of squared deviations.
Each arm is played five times; then mu is drawn for every arm, and the arm with the least is played.
Losses are ranked by their geometric means: the right thing for log-normal losses whose logarithms
have similar variances.

The draws are a function of (stream, t, arm), as if they had been written down before the play, so
that the arm of a round is deterministic. A loss of at most 0 is taken as the least positive one so
far; before there is one, as equal to the first positive loss to come.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Arm, Count, CountsBelowT, Round, Values, Vector, require
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count

MOST_BITS = 2200.0  # between the logarithms of two losses
FIRST_PLAYS = 5.0  # 3 - ceil(2 alpha) for the prior's alpha = -1
BITS = Values(-MOST_BITS, MOST_BITS)


class Params(NamedTuple):
    n: int
    stream: int


class State(NamedTuple):
    t: Round
    clipped: Count  # losses of at most 0
    best: Arm  # the arm of round t
    first: float  # log2 of the first positive loss, less its exponent, in [-1, 0); 1: none yet
    e: Annotated[int, BITS]  # the exponent of that loss
    least: Annotated[float, Values(-MOST_BITS, 0.0)]  # log2(smallest loss / first loss) so far
    plays: CountsBelowT  # (n,) s of every arm
    means: Annotated[Vector, BITS]  # (n,) of y = log2(loss / first loss)
    squares: Vector  # (n,) Q of every arm; >= 0

    def check(self, params: Params) -> None:
        require(self.first == 1.0 or -1.0 <= self.first < 0.0, "there is no such first loss")
        require(np.all(abs(self.squares) <= 2.0 * MOST_BITS**2 * self.t), "no such squares")


def init(params: Params) -> State:
    """Arm 0 first."""
    n = params.n
    return State(1, 0, 0, 1.0, 0, 0.0, np.zeros(n), np.zeros(n), np.zeros(n))


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    t = state.t + 1
    y, first, e, least = logarithm(loss, state.first, state.e, state.least)
    plays, means, squares = state.plays, state.means, state.squares
    plays[arm] += 1.0
    change = y - means[arm]
    means[arm] += change / plays[arm]
    squares[arm] += change * (y - means[arm])
    best = drawn(params, t, plays, means, squares, None)
    return State(t, state.clipped + (loss <= 0.0), best, first, e, least, plays, means, squares)


@kernel
def drawn(params: Params, t: int, plays: Vector, means: Vector, squares: Vector, side: Any) -> int:
    """Return the arm whose mean is drawn as the least in round t, or one to be played first.

    Where ``side`` is no None, of the arms for which it is 1.
    """
    best = 0
    lowest = math.inf
    stream = stream_of(float(params.stream), t)
    for i in range(params.n):
        if side is not None and side[i] == 0.0:
            continue
        if plays[i] < FIRST_PLAYS:
            best = i
            break
        freedom = plays[i] - 3.0
        spread = math.sqrt(max(0.0, squares[i]) / (plays[i] * freedom))
        mu = means[i] + spread * student(
            uniform_at(stream, 2 * i), uniform_at(stream, 2 * i + 1), freedom
        )
        if mu < lowest:
            best, lowest = i, mu
    return best


@kernel
def best_of(params: Params, state: State, side: Vector) -> int:
    """Return the available arm of the least draw."""
    return drawn(params, state.t, state.plays, state.means, state.squares, side)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


@kernel
def logarithm(loss: float, first: float, e: int, least: float) -> tuple[float, float, int, float]:
    """Return y = log2(loss / first loss), and what is known of the first and the smallest loss."""
    if not loss > 0.0:
        return least, first, e, least
    mantissa, exponent = math.frexp(loss)  # exponents apart: a power of two changes nothing
    log_mantissa = math.log2(mantissa)
    if first == 1.0:
        first, e = log_mantissa, exponent
    y = (exponent - e) + (log_mantissa - first)
    return y, first, e, min(least, y)


@kernel
def student(u: float, v: float, freedom: float) -> float:
    """Student's t from two uniforms in [0, 1) (Bailey 1994)."""
    radius = math.sqrt(freedom * math.expm1(-2.0 / freedom * math.log1p(-u)))
    return radius * math.cos(2.0 * math.pi * v)


class LogThompson(Learner):
    """Thompson sampling for positive losses that are log-normal, or nearly so.

    The standard conjugate model for normal observations, on logarithms; it follows no paper line
    by line, and ranks arms by their geometric means.

    Parameters
    ----------
    stream : int
        Which random numbers the posteriors are drawn with; they are fixed before the play.

    Notes
    -----
    A loss of at most 0 is taken as the least positive one so far, and counted in ``clipped``.
    """

    spec = BanditSpec.of(
        __name__,
        reference="the conjugate normal model on logarithms; prior of Honda & Takemura 2014",
        guarantee="expected number of plays of worse arms of order ln T for independent log-normal "
        "losses; none against an adversary",
        scale_free=True,
        examples=({}, {"stream": 3}),
    )

    def __init__(
        self, n_arms: NumberOrNames, *, stream: SupportsIndex = 0, seed: Seed = None
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        stream = checked_count("stream", stream, least=0)
        self._start(Params(n_arms, stream), seed)
