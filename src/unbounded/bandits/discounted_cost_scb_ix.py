"""CostSCB-IX with a half-life: costs that change (docs/theory/forgetting.md, Theorem F5).

`cost_scb_ix` on losses weighted by 2^(t / h), with thresholds of two blocks. A falling scale is
not followed, since the number of rounds N_t must not fall for the bound. Symbols are those of
docs/theory/forgetting.md; sums, C and eta are in units of 2^e. This algorithm is the library's own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from unbounded.core import discounting
from unbounded.core.arrays import Count, Round, Size, Vector, close, require
from unbounded.core.discounting import FIRST, Blocks, HalfLife, Memory
from unbounded.core.scaled import ldexp
from unbounded.core.simplex import lazy, shannon_arms, sleeping
from unbounded.core.simplex.shannon_arms import Arms
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec
from unbounded.learners.spec import Ask, SideAsk


class Params(NamedTuple):
    n: int
    lower: float  # b: the lower bound on the losses
    m: int  # the rank of the threshold in a block
    iota: float  # ln n, or ln(n / delta) for a learner that is given delta
    half_life: HalfLife


class State(NamedTuple):
    t: Round
    clock: Count  # rounds: t - 1; or ticks
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``; clipped + below < t
    N: Size  # N_t, the weights of all rounds over that of the next one; never falls with rounds
    memory: Memory
    blocks: Blocks  # what losses are clipped at, and the unit 2^e
    arms: Arms  # L_hat >= 0 and p_t

    def check(self, params: Params) -> None:
        self.memory.check_for(params.half_life, self.t)
        self.blocks.check_for(params.lower, params.m)
        right = self.memory.clock(params.half_life, self.t)
        require(self.clock == right, "its clock is at another round")
        require(close(self.N, self.memory.N / self.memory.g), "there are no such weights")
        require(self.clipped + self.below < self.t, "there are no so many losses")


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform p_1."""
    blocks, arms = discounting.new_blocks(params.lower, params.m), shannon_arms.new_arms(params.n)
    return State(t=1, clock=0, clipped=0, below=0, N=1.0, memory=FIRST, blocks=blocks, arms=arms)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from p_t; the ask_info is p_{t,k} + gamma_t."""
    gamma = 0.5 * math.sqrt(params.iota / (params.n * state.N))
    arm, p_k = shannon_arms.draw(state.arms, word)
    return arm, p_k, p_k + gamma


@kernel
def distribution_with(params: Params, state: State, side: Vector, q: Vector) -> None:
    """Fill ``q`` with p_t on the available arms."""
    peak = state.blocks.peak
    eta = math.sqrt(params.iota / (params.n * state.N)) / peak if peak > 0.0 else 0.0
    shannon_arms.fill_available(state.arms, eta, side, q)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw k_t from q_t, p_t on the available arms; the ask_info is q_{t,k} + gamma_t."""
    gamma = 0.5 * math.sqrt(params.iota / (params.n * state.N))
    distribution_with(params, state, side, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    return arm, q_k, q_k + gamma


@kernel
def update(params: Params, state: State, arm: int, ask: Ask, loss: float) -> State:
    """Learn from the loss of ``arm``; ``ask`` has p_{t,k} + gamma_t and the clock of its ask."""
    return learned(params, state, arm, ask.info, ask.clock, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept, as in `cost_scb_ix`."""
    return learned(params, state, arm, ask.info, ask.clock, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, p_k_gamma: float, asked: int, note: Any, loss: float
) -> State:
    """Return the state after a loss, ``asked`` for at that clock; without sleepers ``note`` is
    None."""
    lower, half_life, arms = params.lower, params.half_life, state.arms
    x, clipped = discounting.clipped_at(state.blocks, lower, loss)  # min(x, C)
    l = state.memory.g * discounting.decayed(half_life, state.clock - asked) * x
    if note is None:
        shannon_arms.add(arms, arm, l / p_k_gamma)  # L_hat += l_hat, in the old unit
    else:
        if arm >= 0:  # else the arm was retired since
            shannon_arms.add(arms, arm, l / p_k_gamma)
        shannon_arms.charge(arms, note, l)
    # The next round: its weight and its threshold C.
    memory, ended = discounting.advanced(state.memory, half_life)
    discounting.inserted(state.blocks, loss, ended, lower)
    blocks, _, power = discounting.followed(state.blocks, lower, params.m, memory.g, ended, False)
    N = max(state.N, memory.N / memory.g)  # but for rounding, it grows; so eta never rises
    solve(params, arms, power, N, blocks.peak)
    above, below = state.clipped + clipped, state.below + (loss < lower)
    clock = state.clock + (half_life.r > 1.0)
    return State(state.t + 1, clock, above, below, N, memory, blocks, arms)


@kernel
def solve(params: Params, arms: Arms, power: int, N: float, peak: float) -> None:
    """Take the estimates to the new unit, and find p for the next round."""
    if params.n > 1 and peak > 0.0:  # until then p stays uniform
        if power != 0:  # 1/2 at the end of a block, and the new unit
            shannon_arms.rescale(arms, ldexp(1.0, power))
        eta = math.sqrt(params.iota / (params.n * N)) / peak  # in units of 2^-e
        shannon_arms.solve(arms, eta, 0.0)


@kernel
def elapsed(params: Params, state: State, to: int) -> State:
    """Return the state after the ticks up to ``to``; those of the past take no time."""
    t, clock, clipped, below, _, memory, blocks, arms = state
    lower, m = params.lower, params.m
    if to <= memory.pos:
        return state
    after, ended = discounting.passed(memory, params.half_life, to)
    if ended > 0 and blocks.now[m - 1] > lower:  # else the block goes on
        discounting.turn(blocks, lower)
    moved, _, power = discounting.followed(blocks, lower, m, after.g, ended, False)
    N = after.N / after.g
    lazy.rescale(arms.L, arms.picture, arms.table, ldexp(1.0, power))  # anew, as eta may rise
    solve(params, arms, 0, N, moved.peak)
    return State(t, clock + (to - memory.pos), clipped, below, N, after, moved, arms)


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates and the scale when arms come or go, as in `cost_scb_ix`."""
    peak, n = state.blocks.peak, params.n
    eta = math.sqrt(params.iota / (n * state.N)) / peak if peak > 0.0 else 0.0
    return state._replace(arms=shannon_arms.with_arms(state.arms, keep, eta))


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return discounting.height(state.blocks, params.lower)


SPEC = BanditSpec.of(
    __name__,
    name="CostSCBIX",
    reference="docs/theory/forgetting.md",
    guarantee="discounted regret M (4 sqrt(n N ln n) + (sqrt(n N / ln n) + 1) ln(2/delta) + 3) "
    "with probability 1 - delta for losses in [lower, lower + M], N = 1.45 h + 1, Theorem F5",
    scale_free=True,
    clocked=True,
)

IN_TIME = BanditSpec.of(
    __name__,
    name="CostSCBIX",
    reference="docs/theory/forgetting.md",
    guarantee="measured only",
    scale_free=True,
    clocked=True,
    elapsed=elapsed,
)
