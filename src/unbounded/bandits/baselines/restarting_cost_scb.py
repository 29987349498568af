"""CostSCB that starts again: every so many rounds, or when a test finds that the losses changed.

What people do with a learner that does not forget. A restart forgets the arms and the scale.

- ``every``: restarts every B rounds. By Theorem F6 of docs/theory/forgetting.md, regret against a
  best arm that switches S times is at most ceil(T / B) times the bound of `CostSCB` for B rounds,
  and S B M for the blocks in which it switches.
- ``detect``: two-sided tests on the losses of each arm since the last restart, as in Liu, Lee &
  Shroff (2018), who restart UCB. With R the range of the losses since the last restart, and mu the
  mean of the arm's losses, the sums u and d become max(0, u + (x - mu) - drift R) and
  max(0, d - (x - mu) - drift R) with each loss x of the arm, once there were more than ``samples``;
  a change is found where one of them is above threshold R. For the Page-Hinkley test mu is the mean
  of all losses of the arm, this one included; for CUSUM, of the first ``samples``. The published
  tests are given R; here it is observed, which makes them scale-free. An arm that is not played is
  not tested: that it got better is found late, or never. No regret bound is known.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, SupportsIndex

import numpy as np

from unbounded.bandits import cost_scb
from unbounded.core.arrays import Count, CountsBelowT, Exponent, Round, Sizes, Vector, require
from unbounded.core.ceiling import Ceiling, checked_lower, height
from unbounded.core.simplex import tsallis_arms
from unbounded.core.simplex.ftrl import NO_ANCHOR
from unbounded.core.simplex.sampling import fill, make_uniform
from unbounded.core.simplex.tsallis_arms import Arms
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.costs import Costs
from unbounded.validation import (
    ArgumentTypeError,
    checked_constant,
    checked_count,
    checked_factor,
    checked_option,
)

TESTS = ("page-hinkley", "cusum")
PAGE_HINKLEY, CUSUM, NONE = range(3)


class Params(NamedTuple):
    n: int
    every: int  # B; 0: never
    test: int
    threshold: float
    drift: float
    samples: int
    inner: cost_scb.Params


class State(NamedTuple):
    t: Round
    clipped: Count
    below: Count  # losses below ``lower``
    restarts: Count
    e: Exponent  # of the largest absolute loss since the last restart
    low: float  # the smallest and the largest loss since then, in units of 2^e; inf, -inf: none
    high: float
    plays: CountsBelowT  # (n,) since the last restart, like all that follows
    means: Vector  # (n,) mu of every arm, in units of 2^e
    up: Sizes  # (n,) u and d, in units of 2^e
    down: Sizes
    inner: cost_scb.State

    def check(self, params: Params) -> None:
        self.inner.check(params.inner)
        require(self.inner.t <= self.t, "there are no so many losses")
        require(np.all(self.plays < self.inner.t), "there are no so many plays")
        empty = self.low == math.inf and self.high == -math.inf
        require(empty or -1.0 < self.low <= self.high < 1.0, "there is no such range")


def init(params: Params) -> State:
    """Start as `CostSCB` does."""
    n = params.n
    arms = tsallis_arms.new_arms(n, growing=False)  # dense, so that it can be started again
    inner = cost_scb.init(params.inner)._replace(arms=arms)
    plays, means, up, down = np.zeros((4, n))
    return State(1, 0, 0, 0, 0, math.inf, -math.inf, plays, means, up, down, inner)


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with that of CostSCB."""
    fill(state.inner.arms.law, q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw as CostSCB does."""
    return cost_scb.act(params.inner, state.inner, word)


@kernel
def update(params: Params, state: State, arm: int, p_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``p_k_gamma`` is p_{t,k} + gamma_t of its ask."""
    inner = cost_scb.update(params.inner, state.inner, arm, p_k_gamma, loss)
    clipped = state.clipped + inner.clipped - state.inner.clipped
    below = state.below + inner.below - state.inner.below
    restarts, e, low, high = state.restarts, state.e, state.low, state.high
    plays, means, up, down = state.plays, state.means, state.up, state.down
    due = params.every > 0 and inner.t > params.every
    if params.test != NONE:
        x = max(loss, params.inner.lower)
        e, low, high = in_unit(x, e, low, high, means, up, down)
        x = math.ldexp(x, -e)
        low, high = min(low, x), max(high, x)
        plays[arm] += 1.0
        if params.test == PAGE_HINKLEY or plays[arm] <= params.samples:
            means[arm] += (x - means[arm]) / plays[arm]
        if plays[arm] > params.samples:
            R, apart = high - low, x - means[arm]
            up[arm] = max(0.0, up[arm] + apart - params.drift * R)
            down[arm] = max(0.0, down[arm] - apart - params.drift * R)
            due = due or max(up[arm], down[arm]) > params.threshold * R
    if due:
        restarts, e, low, high = restarts + 1, 0, math.inf, -math.inf
        for i in range(params.n):
            plays[i] = means[i] = up[i] = down[i] = 0.0
        inner = again(params.inner, inner)
    return State(state.t + 1, clipped, below, restarts, e, low, high, plays, means, up, down, inner)


@kernel
def in_unit(
    x: float, e: int, low: float, high: float, means: Vector, up: Vector, down: Vector
) -> tuple[int, float, float]:
    """Return e, low and high, after a change of the unit if ``x`` is the largest loss so far."""
    exponent = math.frexp(x)[1]
    if x == 0.0 or (exponent <= e and not (low >= 0.0 >= high)):
        return e, low, high
    if low >= 0.0 >= high:  # all losses were 0, or there were none: there is no unit yet
        return exponent, low, high
    factor = math.ldexp(1.0, e - exponent)
    for i in range(means.size):
        means[i] *= factor
        up[i] *= factor
        down[i] *= factor
    return exponent, low * factor, high * factor


@kernel
def again(params: cost_scb.Params, state: cost_scb.State) -> cost_scb.State:
    """Return the first state of CostSCB, in the vectors of ``state``."""
    lower, largest, arms = params.lower, state.ceiling.largest, state.arms
    for k in range(largest.size):
        largest[k] = lower
    for i in range(params.n):
        arms.L[i] = 0.0
    make_uniform(arms.law)
    ceiling = Ceiling(lower, 0.0, 0.0, 0, largest)
    fresh = Arms(NO_ANCHOR, arms.L, arms.law, arms.picture, arms.table)
    return cost_scb.State(1, 0, 0, ceiling, 0.0, 0.0, 0, 0.0, fresh)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return height(state.inner.ceiling, params.inner.lower)


def bound(n: int, T: int, every: int, switches: int = 0, m: int = 1) -> float:
    """Bound expected regret for losses in [lower, lower + 1]: docs/theory/forgetting.md, F6."""
    return math.ceil(T / every) * cost_scb.paid_bound(n, every, m) + switches * every


class RestartingCostSCB(Learner, Costs):
    """CostSCB from scratch every so many rounds, or whenever a test finds a change.

    It must be given a lower bound on the losses and, instead of a half-life, the number of rounds
    between restarts, or the test and its constants. Every round takes O(n).

    Parameters
    ----------
    every : int, optional
        Restart after so many rounds. With S switches in T rounds, Theorem F6 is best for
        (2 sqrt(n) T / S)^(2/3).
    detect : {"page-hinkley", "cusum"}, optional
        Restart where this test finds that the losses of an arm have changed. One of ``every`` and
        ``detect`` is needed; both may be given.
    threshold : float
        Of the test: larger ones find fewer changes that are none, and others later. In units of
        the range of the losses since the last restart.
    drift : float
        Changes of the mean by less than that are not to be found; in the same unit.
    samples : int
        How many losses of an arm come before it is tested.
    lower : float, optional
        The lower bound on the losses, 0 by default.
    best_reward : float, optional
        Instead of ``lower``, for rewards: the largest one possible.
    outliers : int
        How many huge losses between restarts say nothing about their arms. The tests do see them.

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.
    """

    spec = BanditSpec.of(
        __name__,
        reference="docs/theory/forgetting.md, Theorem F6; tests as in Liu, Lee & Shroff 2018",
        guarantee="with every=(2 sqrt(n) T / S)^(2/3), expected regret O(M (n S)^(1/3) T^(2/3)) "
        "against sequences of arms with S switches, for losses in [lower, lower + M]; none with "
        "detect",
        scale_free=True,
        examples=({"every": 60}, {"detect": "page-hinkley", "threshold": 0.5, "samples": 8}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        every: SupportsIndex | None = None,
        detect: Literal["page-hinkley", "cusum"] | None = None,
        threshold: float = 20.0,
        drift: float = 0.1,
        samples: SupportsIndex = 30,
        lower: float | None = None,
        best_reward: float | None = None,
        outliers: SupportsIndex = 0,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        if every is None and detect is None:
            raise ArgumentTypeError("every", "or detect is needed: when to restart")
        rounds = 0 if every is None else checked_count("every", every)
        test = NONE if detect is None else checked_option("detect", detect, TESTS)
        threshold, drift = checked_constant("threshold", threshold), checked_factor("drift", drift)
        samples = checked_count("samples", samples)
        least = checked_lower(lower, best_reward)
        K = checked_count("outliers", outliers, least=0) + 1
        inner = cost_scb.Params(n_arms, least, K, False, cost_scb.PAID, 2.0, 1.0, False)
        self._start(Params(n_arms, rounds, test, threshold, drift, samples, inner), seed)
        self._least = self._low = least

    @property
    def restarts(self) -> int:
        """Return the number of restarts so far."""
        return int(self._scalar("restarts"))
