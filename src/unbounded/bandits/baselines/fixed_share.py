"""Fixed share on clipped costs: exponential weights that follow a changing best arm.

Exponential weights with a share of uniform weight in every round (Herbster & Warmuth 1998, as in
Exp3.S), on losses that are clipped as `CostSCB` with a half-life clips them: C_t is the m-th
largest loss of this block of w rounds or of the block before, less the lower bound. With alpha =
1 / w and l_hat_k = min(x, C_t) / p_k for the arm k that was played, and 0 for the others,

    p_{t+1} = (1 - alpha) p_t exp(-eta l_hat / C_t) / sum + alpha / n.

So it needs neither the range nor the number of rounds. Theorem F9 of docs/theory/forgetting.md: for
losses of at most M above the lower bound, w >= 2, B = ceil(T / w) and a comparator that switches S
times, fixed in advance,

    expected regret <= M [(ln(n w) (B + S) + 1.4 B) / eta + eta n T / 2 + m B].

The default eta = sqrt(2 (ln(n w) + 1.4) / (n w)) makes it at most
M [(B + S / 2) sqrt(2 n w (ln(n w) + 1.4)) + m B]. For w = T / S that is of the order
M sqrt(n S T ln(n T)).
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Count, Round, Vector, require
from unbounded.core.ceiling import above, checked_lower
from unbounded.core.discounting import Blocks, inserted
from unbounded.core.scaled import capped
from unbounded.core.simplex.ftrl import total
from unbounded.core.simplex.sampling import Law, blend, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.costs import Costs
from unbounded.validation import ArgumentValueError, checked_constant, checked_count


class Params(NamedTuple):
    n: int
    lower: float
    m: int
    window: int  # w
    eta: float


class State(NamedTuple):
    t: Round
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``
    at: float  # lower + C_t
    now: Vector  # (m,) the largest losses of this block, descending; filled up with ``lower``
    before: Vector  # (m,) those of the block before
    law: Law  # p_t

    def check(self, params: Params) -> None:
        lower, window = params.lower, params.window
        for largest, seen in ((self.now, (self.t - 1) % window), (self.before, self.t - 1)):
            falling = np.all(largest[1:] <= largest[:-1]) and largest[-1] >= lower
            require(falling, "there are no such largest losses")
            require(np.sum(largest > lower) <= seen, "there are no so many losses")
        require(self.at == max(self.now[-1], self.before[-1]), "no loss of its rank")
        require(self.clipped + self.below < self.t, "there are no so many losses")
        require(self.law.q.min() >= 0.99 / (window * params.n), "a share is missing")


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform p_1."""
    n, lower, m = params.n, params.lower, params.m
    return State(1, 0, 0, lower, np.full(m, lower), np.full(m, lower), new_law(n))


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    n, lower, at, law = params.n, params.lower, state.at, state.law
    alpha = 1.0 / params.window
    if n > 1:
        law.q[arm] *= math.exp(-params.eta * part(lower, at, loss) / p_k)
        blend(law, (1.0 - alpha) / total(law.q, law.room), alpha / n)
    ended = state.t % params.window == 0  # state.t losses, this one included
    now, before = state.now, state.before
    inserted(Blocks(at, 0.0, at, 0.0, 0, now, before), loss, ended, lower)
    after = max(now[params.m - 1], before[params.m - 1])
    clipped, below = state.clipped + (loss > at), state.below + (loss < lower)
    return State(state.t + 1, clipped, below, after, now, before, law)


@kernel
def part(lower: float, at: float, loss: float) -> float:
    """Return min(x, C) / C, where x = loss - lower and C = at - lower; 0 where C = 0."""
    if loss <= lower or at <= lower:
        return 0.0
    if loss >= at:
        return 1.0
    C, unit = above(lower, at)  # in units of 2^unit: differences may overflow
    return min(1.0, (math.ldexp(loss, -unit) - math.ldexp(lower, -unit)) / C)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    C, unit = above(params.lower, state.at)
    return capped(C, unit)


def usual_rate(n: int, window: int) -> float:
    """Return sqrt(2 (ln(n w) + 1.4) / (n w))."""
    return math.sqrt(2.0 * (math.log(n * window) + 1.4) / (n * window))


def bound(n: int, T: int, window: int, switches: int = 0, m: int = 1, rate: float = 1.0) -> float:
    """Bound expected regret for losses in [lower, lower + 1]: docs/theory/forgetting.md, F9."""
    eta, log, blocks = rate * usual_rate(n, window), math.log(n * window), math.ceil(T / window)
    return (log * (blocks + switches) + 1.4 * blocks) / eta + 0.5 * eta * n * T + m * blocks


class FixedShare(Learner, Costs):
    """Exponential weights that follow a changing best arm and a changing scale, for costs.

    It must be given a lower bound on the losses, and a number of rounds in which the best arm
    hardly changes: ``window``.

    Parameters
    ----------
    window : int
        For S switches of the best arm in T rounds, T / S: in every round, 1 / window of the
        probability is shared by all arms. Losses are clipped at the largest one of this block of
        so many rounds or of the block before.
    lower : float, optional
        The lower bound on the losses, 0 by default.
    best_reward : float, optional
        Instead of ``lower``, for rewards: the largest one possible.
    outliers : int
        How many huge losses per window say nothing about their arms.
    rate : float
        Multiplies the learning rate.

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.
    """

    spec = BanditSpec.of(
        __name__,
        reference="docs/theory/forgetting.md, Theorem F9; shares of Herbster & Warmuth 1998",
        guarantee="expected regret O(M sqrt(n S T ln(n T))) against sequences of arms with S "
        "switches, for losses in [lower, lower + M] and window = T / S",
        scale_free=True,
        examples=({"window": 100}, {"window": 50, "outliers": 2, "rate": 2.0}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        window: SupportsIndex,
        lower: float | None = None,
        best_reward: float | None = None,
        outliers: SupportsIndex = 0,
        rate: float = 1.0,
        seed: Seed = None,
    ) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("window", window, least=2)
        least = checked_lower(lower, best_reward)
        m = checked_count("outliers", outliers, least=0) + 1
        if m > rounds:
            raise ArgumentValueError("outliers", f"must be below window, {rounds}, got {m - 1}")
        eta = checked_constant("rate", rate) * usual_rate(n_arms, rounds)
        self._start(Params(n_arms, least, m, rounds, eta), seed)
        self._least = self._low = least
