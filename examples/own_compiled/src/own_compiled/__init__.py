"""EXP3++ (Seldin & Slivkins 2014), with the gap estimates of Seldin & Lugosi 2017, compiled."""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

import numpy as np

from unbounded.extend import (
    LARGEST,
    BanditSpec,
    Law,
    Learner,
    Seed,
    Vector,
    checked_count,
    checked_positive,
    checked_range,
    fill,
    kernel,
    mix,
    new_law,
    sample,
    to_unit,
)


class Params(NamedTuple):
    n: int
    alpha: float
    beta: float
    low: float
    high: float


class State(NamedTuple):
    t: int
    clipped: int
    N: Vector  # how often each arm was played
    S: Vector  # what it has cost, in [0, 1] a round
    L: Vector  # the same over the probabilities
    law: Law  # what is played


def init(params: Params) -> State:
    """Nothing is known."""
    n = params.n
    return State(1, 0, np.zeros(n), np.zeros(n), np.zeros(n), new_law(n))


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q``."""
    fill(state.law, q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw an arm; what its ticket must remember is its probability."""
    arm, q_k = sample(state.law, word)
    return arm, q_k, q_k


@kernel
def width(params: Params, state: State, t: int, k: int) -> float:
    """Of the confidence bounds of an arm that was played."""
    return math.sqrt((params.alpha * math.log(t) + math.log(params.n)) / (2.0 * state.N[k]))


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, and solve for the next round."""
    n, t, q, L = params.n, state.t + 1, state.law.q, state.L
    x, clipped = to_unit(loss, params.low, params.high)
    state.N[arm] += 1.0
    state.S[arm] += x
    L[arm] += x / q_k
    eta = 0.5 * math.sqrt(math.log(n) / (n * t))
    best, least = 1.0, L[0]
    for k in range(n):
        least = min(least, L[k])
        if state.N[k] > 0.0:
            best = min(best, state.S[k] / state.N[k] + width(params, state, t, k))
    total = 0.0
    for k in range(n):
        q[k] = math.exp(-eta * (L[k] - least))
        total += q[k]
    explored = 0.0
    for k in range(n):
        explored += exploration(params, state, t, k, eta, best)
    for k in range(n):
        eps = exploration(params, state, t, k, eta, best)
        q[k] = (1.0 - explored) * q[k] / total + eps
    mix(state.law, 1.0, 0.0)  # after every change of law.q
    return State(t, state.clipped + clipped, state.N, state.S, L, state.law)


@kernel
def exploration(params: Params, state: State, t: int, k: int, eta: float, best: float) -> float:
    """epsilon_t of an arm."""
    eps = min(0.5 / params.n, eta)
    if state.N[k] > 0.0:
        gap = max(state.S[k] / state.N[k] - width(params, state, t, k), 0.0) - best
        if gap > 0.0:
            eps = min(eps, params.beta * math.log(t) / (t * gap * gap))
    return eps


@kernel
def scale(params: Params, state: State) -> float:
    """The range that it was told."""
    return min(params.high - params.low, LARGEST)


class CompiledEXP3pp(Learner):
    """Exponential weights that explore an arm less, the clearer it is that it is worse.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    alpha, beta : float
        Of the confidence bounds, and of the exploration.
    loss_range : (float, float)
        Losses outside of it are clipped to it.
    seed : int or SeedSequence, optional
        For the choices.
    """

    spec = BanditSpec.of(
        __name__,
        name="CompiledEXP3pp",
        reference="Seldin & Slivkins 2014; gap estimates of Seldin & Lugosi 2017",
        guarantee="O(sqrt(K T ln K)), and where losses are i.i.d. O((ln T)^2) over each gap",
    )

    def __init__(
        self,
        n_arms: SupportsIndex,
        *,
        alpha: float = 3.0,
        beta: float = 256.0,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        alpha, beta = checked_positive("alpha", alpha), checked_positive("beta", beta)
        loss_range = checked_range("loss_range", loss_range)
        self._start(Params(n_arms, alpha, beta, *loss_range), seed)
