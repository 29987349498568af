"""CostSCB with a half-life: a bandit for costs that change (docs/theory/forgetting.md).

`cost_scb` on losses weighted by 2^(t / h), so that what it knows of the arms and of the scale fades
by half in h rounds. Symbols are those of docs/theory/forgetting.md, section 1; sums, C and eta are
in units of 2^e. This algorithm is the library's own; the reduction of discounting to losses of
another scale is that of Zhang, Bombara & Yang (2024).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from unbounded.core import discounting
from unbounded.core.arrays import ROUNDING, Count, Round, Size, Values, Vector, require
from unbounded.core.discounting import FIRST, Blocks, HalfLife, Memory
from unbounded.core.scaled import ldexp
from unbounded.core.simplex import sleeping, tsallis_arms
from unbounded.core.simplex.tsallis_arms import Arms
from unbounded.core.usual import Usual, cut, new_usual
from unbounded.jit.interpreter import interpreted, quietly
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec
from unbounded.learners.spec import Ask, SideAsk

PAID, SCALE = range(2)  # tunings B and A, as in `cost_scb`
Squares = Annotated[float, Values(0.0, 2.0**300)]  # in units of 4^e


class Params(NamedTuple):
    n: int
    lower: float  # b: the lower bound on the losses
    K: int  # the largest rank: outliers + 1, or at most MOST_RANKS
    growing: bool  # whether m_t grows with t up to K, or is K from the first round on
    tuning: int  # PAID (B): eta_t = c / sqrt(C_bar^2 + Z); SCALE (A): eta_t = c / sqrt(V)
    rate: float  # c
    nu: float  # gamma_t = nu / (n + N_t / g_t)
    half_life: HalfLife
    cap: float  # the largest loss that counts, in units of the usual one; inf: any


class State(NamedTuple):
    t: Round
    clock: Count  # rounds, or ticks; and h for each halving by which a fall was followed
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``; clipped + below < t
    m: Count  # the rank of C_t
    N: Size  # the sum of the weights since a fall was followed, the next round's included
    memory: Memory
    usual: Usual  # what ``cap`` is in units of
    blocks: Blocks  # what losses are clipped at, and the unit 2^e
    V: Squares  # the weighted sum of (g C)^2 (SCALE; else 0)
    Z: Squares  # the weighted sum of l^2 / sqrt(n (p + gamma)) (PAID; else 0)
    arms: Arms  # L_hat >= 0 and p_t

    def check(self, params: Params) -> None:
        t, h, memory = self.t, params.half_life.h, self.memory
        memory.check_for(params.half_life, t)
        require(self.m == params.K or (params.growing and 1 <= self.m < params.K), "no such rank")
        self.usual.check_for(params.lower, t)
        self.blocks.check_for(params.lower, self.m)
        ahead = self.clock - memory.clock(params.half_life, t)
        require(ahead >= 0 and ahead % h == 0, "its clock is at another round")
        require(memory.g <= self.N <= memory.N * (1.0 + 1e-6), "there are no such weights")
        require(self.clipped + self.below < t, "there are no so many losses")
        if params.tuning == SCALE:
            least = self.blocks.peak * self.blocks.peak
            require(least * (1.0 - ROUNDING) <= self.V, "no such squares")
        self.arms.check_for(2 * t)


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform p_1."""
    return State(
        t=1, clock=0, clipped=0, below=0, m=1 if params.growing else params.K, N=1.0,
        memory=FIRST, usual=new_usual(params.cap < math.inf),
        blocks=discounting.new_blocks(params.lower, params.K), V=0.0, Z=0.0,
        arms=tsallis_arms.new_arms(params.n),
    )  # fmt: skip


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from p_t; the ask_info is p_{t,k} + gamma_t."""
    arm, p_k = tsallis_arms.draw(state.arms, word)
    g = state.memory.g
    return arm, p_k, p_k + params.nu * g / (params.n * g + state.N)  # gamma_t = nu / (n + N / g)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw k_t from q_t, p_t on the available arms; the ask_info is q_{t,k} + gamma_t."""
    tsallis_arms.fill(state.arms, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    g = state.memory.g
    return arm, q_k, q_k + params.nu * g / (params.n * g + state.N)


@kernel
def update(params: Params, state: State, arm: int, ask: Ask, loss: float) -> State:
    """Learn from the loss of ``arm``; ``ask`` has p_{t,k} + gamma_t and the clock of its ask."""
    return learned(params, state, arm, ask.info, ask.clock, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept, as in `cost_scb`."""
    return learned(params, state, arm, ask.info, ask.clock, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, p_k_gamma: float, asked: int, note: Any, loss: float
) -> State:
    """Return the state after a loss, ``asked`` for at that clock; without sleepers ``note`` is
    None."""
    n, lower, half_life = params.n, params.lower, params.half_life
    below = state.below + (loss < lower)
    counted = cut(state.usual, lower, params.cap, state.t, loss)
    x, clipped = discounting.clipped_at(state.blocks, lower, counted)  # min(x, C)
    clipped = clipped or counted < loss
    l = state.memory.g * discounting.decayed(half_life, state.clock - asked) * x
    arms = state.arms
    if note is None:
        arms = tsallis_arms.add(arms, arm, l / p_k_gamma)  # L_hat += l_hat, in the old unit
    else:
        if arm >= 0:  # else the arm was retired since
            arms = tsallis_arms.add(arms, arm, l / p_k_gamma)
        arms = tsallis_arms.charge(arms, note, l)
    Z = 0.0
    if params.tuning == PAID:
        Z = state.Z + sleeping.square(l, n, p_k_gamma, note)
    # The next round: its weight, its rank m and its threshold C.
    memory, ended = discounting.advanced(state.memory, half_life)
    discounting.inserted(state.blocks, counted, ended, lower)
    m = state.m
    if params.growing:
        m = max(m, min(params.K, math.ceil(math.sqrt(n * (memory.N / memory.g)))))
    blocks, d, power = discounting.followed(state.blocks, lower, m, memory.g, ended, True)
    N, V, factor = state.N, state.V, 1.0
    if ended > 0 or d > 0:
        N = ldexp(N, -d - ended)
    if power != 0:  # of all sums: 1/2 at the end of a block, 2^-d, and the new unit
        factor = ldexp(1.0, power)
        Z = Z * factor * factor  # one by one: 4^-d may underflow where the product does not
        V = V * factor * factor
    N += memory.g
    if params.tuning == SCALE:
        weighted = memory.g * blocks.C
        V += weighted * weighted
    arms = solved(params, arms, factor, blocks, V, Z)
    clock = state.clock + (half_life.r > 1.0) + d * half_life.h
    return State(
        state.t + 1, clock, state.clipped + clipped, below, m, N, memory, state.usual, blocks,
        V, Z, arms,
    )  # fmt: skip


@kernel
def solved(params: Params, arms: Arms, factor: float, blocks: Blocks, V: float, Z: float) -> Arms:
    """Return the arms of the next round, their estimates in the new unit."""
    if params.n > 1 and blocks.peak > 0.0:  # until then p stays uniform
        W = blocks.peak * blocks.peak + Z if params.tuning == PAID else V
        arms = tsallis_arms.fade(arms, factor)
        arms = tsallis_arms.solve(arms, params.rate / math.sqrt(W), 0.0)
    return arms


@kernel
def elapsed(params: Params, state: State, to: int) -> State:
    """Return the state after the ticks up to ``to``; those of the past take no time."""
    lower, half_life, memory, blocks = params.lower, params.half_life, state.memory, state.blocks
    if to <= memory.pos:
        return state
    after, ended = discounting.passed(memory, half_life, to)
    if ended > 0 and blocks.now[state.m - 1] > lower:  # else the block goes on
        discounting.turn(blocks, lower)
    moved, d, power = discounting.followed(blocks, lower, state.m, after.g, ended, True)
    factor, N = ldexp(1.0, power), discounting.renewed(state.N, memory.g, after.g, ended + d)
    V, Z = state.V * factor * factor, state.Z * factor * factor
    if params.tuning == SCALE:  # the next round's term, at its new weight
        old, new = memory.g * blocks.C * factor, after.g * moved.C
        V = max(V + (new * new - old * old), moved.peak * moved.peak)
    arms = solved(params, state.arms, factor, moved, V, Z)
    clock = state.clock + (to - memory.pos) + d * half_life.h
    return State(
        state.t, clock, state.clipped, state.below, state.m, N, after, state.usual, moved, V, Z,
        arms,
    )  # fmt: skip


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates and the scale when arms come or go, as in `cost_scb`."""
    lower, K, m = params.lower, params.K, min(state.m, params.K)
    lists = np.full((2, K), lower)
    for one, old in zip(lists, (state.blocks.now, state.blocks.before), strict=True):
        one[: min(K, old.size)] = old[:K]
    blocks = state.blocks._replace(now=lists[0].copy(), before=lists[1].copy())
    g = state.memory.g
    blocks, _, power = interpreted(discounting.followed)(blocks, lower, m, g, 0, False)
    factor = interpreted(ldexp)(1.0, power)
    V, Z = (x * factor * factor for x in (state.V, state.Z))
    least = blocks.peak * blocks.peak
    V = max(V, least) if params.tuning == SCALE else V
    W = least + Z if params.tuning == PAID else V
    eta = params.rate / math.sqrt(W) if blocks.peak > 0.0 else 0.0
    arms = quietly(tsallis_arms.rescale)(state.arms, factor)
    arms = tsallis_arms.with_arms(arms, keep, eta)
    return state._replace(m=m, blocks=blocks, V=V, Z=Z, arms=arms)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return discounting.height(state.blocks, params.lower)


SPEC = BanditSpec.of(
    __name__,
    name="CostSCB",
    reference="docs/theory/forgetting.md",
    guarantee="expected discounted regret 4 M sqrt(n (0.73 h + 1.7)) + O(n M log h) for losses in "
    "[lower, lower + M], at most three times that where a falling scale is followed, Theorem F4",
    scale_free=True,
    clocked=True,
)

IN_TIME = BanditSpec.of(
    __name__,
    name="CostSCB",
    reference="docs/theory/forgetting.md",
    guarantee="dynamic regret of Theorem F2 with tune='scale', where times do not depend on the "
    "choices; else measured only",
    scale_free=True,
    clocked=True,
    elapsed=elapsed,
)
