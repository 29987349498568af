"""CostExp4 with a half-life: experts whose worth changes (docs/theory/advice.md, Theorem X1).

`cost_exp4` on losses weighted by 2^(t / h), with thresholds of two blocks, as
`discounted_cost_scb_ix` is for `cost_scb_ix`. Sums, C and eta are in units of 2^e. This algorithm
is the library's own.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from unbounded.advice.learner import (
    draw_mixture,
    implicit,
    learn_column,
    plain_rate,
    rescale,
    scratch,
)
from unbounded.core import discounting
from unbounded.core.arrays import Count, Round, Scratch, Size, Sizes, Values, Vector, close, require
from unbounded.core.discounting import FIRST, Blocks, HalfLife, Memory
from unbounded.core.scaled import ldexp
from unbounded.jit.kernel import assign, kernel
from unbounded.learners.bandit import BanditSpec
from unbounded.learners.spec import Ask


class Params(NamedTuple):
    n: int
    experts: int  # N
    lower: float  # b: the lower bound on the losses
    m: int  # the rank of the threshold in a block
    iota: float  # ln N, or ln(N / delta) for a learner that is given delta
    half_life: HalfLife


class State(NamedTuple):
    t: Round
    clock: Count  # rounds: t - 1
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``; clipped + below < t
    N: Size  # N_t, the weights of all rounds over that of the next one; never falls
    memory: Memory
    blocks: Blocks  # what losses are clipped at, and the unit 2^e
    A: Annotated[int, Values(1.0, whole=True)]  # the most arms recommended in one round
    L: Sizes  # (experts,) cumulative estimates of the experts' losses
    q: Scratch  # (n,) the mixture, between the question and the draw
    lanes: Scratch  # its partial sums
    xi: Scratch  # (experts,) the advice on the arm that a loss is told of

    def check(self, params: Params) -> None:
        self.memory.check_for(params.half_life, self.t)
        self.blocks.check_for(params.lower, params.m)
        require(self.clock == self.t - 1, "its clock is at another round")
        require(close(self.N, self.memory.N / self.memory.g), "there are no such weights")
        require(self.clipped + self.below < self.t, "there are no so many losses")
        require(params.n >= self.A, "there are no so many arms")


def init(params: Params) -> State:
    """Start with C_1 = 0 and equal weights."""
    blocks = discounting.new_blocks(params.lower, params.m)
    L, vectors = np.zeros(params.experts), scratch(params.n, params.experts)
    return State(1, 0, 0, 0, 1.0, FIRST, blocks, 1, L, *vectors)


@kernel
def rate(params: Params, state: State, breadth: int) -> float:
    """Return eta_t, in units of 2^-e."""
    if state.blocks.peak == 0.0:
        return 0.0
    return 2.0 * implicit(params.iota, breadth, state.N) / state.blocks.peak


RATE = plain_rate(rate)


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with the mixture."""
    assign(q, state.q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from the mixture; the ask_info is q_{t,k} + gamma_t."""
    gamma = implicit(params.iota, state.A, state.N)  # eta_t C_t / 2
    arm, q_k = draw_mixture(state.q, state.lanes, word)
    return arm, q_k, q_k + gamma


@kernel
def update(params: Params, state: State, arm: int, ask: Ask, loss: float) -> State:
    """Learn from the loss of ``arm``; ``ask`` has q_{t,k} + gamma_t and the clock of its ask."""
    lower, half_life, L, xi = params.lower, params.half_life, state.L, state.xi
    x, clipped = discounting.clipped_at(state.blocks, lower, loss)  # min(x, C)
    l = state.memory.g * discounting.decayed(half_life, state.clock - ask.clock) * x
    learn_column(L, xi, l, l / ask.info)  # in the old unit
    memory, ended = discounting.advanced(state.memory, half_life)
    discounting.inserted(state.blocks, loss, ended, lower)
    blocks, _, power = discounting.followed(state.blocks, lower, params.m, memory.g, ended, False)
    N = max(state.N, memory.N / memory.g)  # but for rounding, it grows; so eta never rises
    if power != 0:  # 1/2 at the end of a block, and the new unit
        rescale(L, ldexp(1.0, power))
    above, below = state.clipped + clipped, state.below + (loss < lower)
    t, clock = state.t + 1, state.clock + 1
    return State(t, clock, above, below, N, memory, blocks, state.A, L, state.q, state.lanes, xi)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return discounting.height(state.blocks, params.lower)


SPEC = BanditSpec.of(
    __name__,
    name="CostExp4",
    reference="docs/theory/advice.md",
    guarantee="discounted regret M (4 sqrt(n K ln N) + (sqrt(n K / ln N) + 1) ln(2/delta) + 3) "
    "against the best of N experts with probability 1 - delta for losses in [lower, lower + M], "
    "K = 1.45 h + 1, Theorem X1",
    scale_free=True,
    clocked=True,
    advised=True,
)
