"""AdaINF with a half-life: a bandit for losses of either sign that change.

`ada_inf` on losses that are centered first and then weighted by 2^(t / h), so that what it knows of
the arms and of the scale fades by half in h rounds; the center fades faster. Thresholds are
distances from the center of their round. Symbols are those of docs/theory/forgetting.md, section 1,
steps those of docs/theory/ada-inf.md. Estimates and S are in units of 2^e, which falls and rises
with the losses. This algorithm is the library's own; the reduction of discounting to losses of
another scale is that of Zhang, Bombara & Yang (2024).
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Annotated, Any, NamedTuple

import numpy as np

from unbounded.core import center, discounting, distances
from unbounded.core.arrays import Count, Round, Values, Vector, require
from unbounded.core.center import ORIGIN, Center
from unbounded.core.discounting import FIRST, HalfLife, Memory
from unbounded.core.distances import NEVER, Distance, Largest, Reach, larger, of_rank, smaller
from unbounded.core.scaled import capped, ldexp
from unbounded.core.simplex import signed_arms
from unbounded.core.simplex.signed_arms import Arms
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.bandit import BanditSpec
from unbounded.learners.spec import Ask, SideAsk

WARM = 8  # rounds before there is a center; 1 if not ``robust``
MOST_RANKS = 64
_UP = 0.25  # m_t = 1 + floor(up sqrt(N_t)), up to MOST_RANKS
_FASTER, _SHORTEST = 16, 32  # h_B = min(h, max(h / 16, 32))
_MOST_WEIGHT = 2.0**500  # more than the sum of weights can be


class Params(NamedTuple):
    n: int
    a: float  # beta_t = a n / (2 a n + sqrt(n N_t))
    robust: bool  # whether losses above the m_t-th largest distance are clipped (step 2)
    trim: int  # r: losses below the (r + 1)-th largest distance are clipped; 0: none are (step 2)
    half_life: HalfLife
    fading: float  # 2^(-2 / h_B), of the weights of the center; 1 if ticks count (`elapsed`)


class State(NamedTuple):
    t: Round
    clock: Count  # rounds, or ticks; and h for each halving by which a fall was followed
    clipped: Count
    memory: Memory
    B: Center  # B_t
    W: Annotated[float, Values(0.0, _MOST_WEIGHT)]  # the sum of the weights w of the mean B
    reach: Reach  # the largest |v| of two blocks, and the unit 2^e
    up: Largest  # distances of losses above the center
    down: Largest  # of those below
    first: Vector  # (`warm`,) the losses of the first rounds; then 0
    arms: Arms  # estimates and S = 1 / eta, in units of 2^e; q_t

    def check(self, params: Params) -> None:
        check_shared(self, params)
        arms = self.arms
        require(params.n == 1 or (self.reach.peak > 0.0) == (arms.S > 0.0), "no such rate")
        arms.check_for(exploring(params, self.memory) if arms.S > 0.0 else 0.0)


def check_shared(state: Any, params: Any) -> None:
    """Reject rounds, thresholds and a center that do not fit together."""
    t, h, memory = state.t, params.half_life.h, state.memory
    memory.check_for(params.half_life, t)
    ahead = state.clock - memory.clock(params.half_life, t)
    require(ahead >= 0 and ahead % h == 0, "its clock is at another round")
    require(state.clipped < t, "there are no so many losses")
    for now, up, down in zip((True, False), state.up.counts(), state.down.counts(), strict=True):
        rounds = memory.pos if now else min(h, t - 1 - memory.pos)
        rounds = t - 1 if params.half_life.r == 1.0 else rounds
        require(up + down <= rounds, "there were no so many losses")
    if t > warm(params):
        require(not np.any(state.first), "the first rounds are over")
    else:
        require(not np.any(state.first[t - 1 :]), "there were no so many losses")
        require(state.B == ORIGIN and state.reach == NEVER, "there is no center yet")
    for C in (state.reach.now, state.reach.before):
        require(C.size == 0.0 or params.n > 1, "one arm learns nothing")


def params_for(n: int, a: float, robust: bool, trim: int, half_life: HalfLife) -> Params:
    """Return the parameters, with the pace of the center's forgetting."""
    h = half_life.h
    with localcontext() as exact:  # the same on every platform
        exact.prec = 50
        h_B = min(Decimal(h), max(Decimal(h) / _FASTER, Decimal(_SHORTEST)))
        fading = float(Decimal(2) ** (-2 / h_B)) if half_life.r > 1.0 else 1.0
        return Params(n, a, robust, trim, half_life, fading)


def init(params: Params) -> State:
    """Start without observations, with uniform q_1."""
    h = params.half_life.h
    up = distances.new_largest(highest_rank(h) if params.robust else 1)
    down = distances.new_largest(min(h, max(2, params.trim + 1)))
    first, arms = np.zeros(warm(params)), signed_arms.new_arms(params.n)
    return State(1, 0, 0, FIRST, ORIGIN, 0.0, NEVER, up, down, first, arms)


@kernel
def warm(params: Any) -> int:
    """Return the number of rounds without a center."""
    return WARM if params.robust else 1


@kernel
def exploring(params: Params, memory: Memory) -> float:
    """Return beta_t = a n / (2 a n + sqrt(n N_t)), divided by a so that no ``a`` overflows."""
    return exploration(params.n, params.a, memory)


@kernel
def exploration(n: int, a: float, memory: Memory) -> float:
    """`exploring`, for one of several copies."""
    return n / (2.0 * n + math.sqrt(n * (memory.N / memory.g)) / a)


@kernel
def rank(memory: Memory) -> int:
    """Return m_t, which is at most h."""
    return 1 + int(min(MOST_RANKS - 1.0, _UP * math.sqrt(memory.N / memory.g)))


def highest_rank(h: int) -> int:
    """Return what no m_t exceeds, as N_t is at most 1.4427 h + 1."""
    return 1 + int(min(MOST_RANKS - 1.0, _UP * math.sqrt(1.4427 * h + 2.0)))


@kernel
def update(params: Params, state: State, arm: int, ask: Ask, loss: float) -> State:
    """Learn from the loss of ``arm``; ``ask`` has q_{t,k} and the clock of its ask."""
    return learned(params, state, arm, ask.info, ask.clock, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept, as in `ada_inf`."""
    return learned(params, state, arm, ask.info, ask.clock, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, q_k: float, asked: int, note: Any, loss: float
) -> State:
    """Return the state after a loss, ``asked`` for at that clock; without sleepers ``note`` is
    None."""
    n, half_life = params.n, params.half_life
    t, clock, clipped, memory, B, W, reach, up, down, first, arms = state
    after, ended = discounting.advanced(memory, half_life)
    if t <= warm(params):
        first[t - 1] = loss
        if t == warm(params):  # end of step 1's first rounds
            B = settled(params, up, down, first)
    elif n > 1:
        size, e = center.apart(B, loss)  # loss - B
        sign, d = math.copysign(1.0, size), Distance(abs(size), e)
        v, u = clip(params, state, sign, d)  # step 2, and u of step 4
        clipped += distances.exceeds(d, v)
        weight = memory.g * discounting.decayed(half_life, clock - asked)
        reach, l, factor = distances.weighed(reach, v, weight)
        arms = signed_arms.rescale(arms, factor)
        if note is None:
            r = signed_arms.root(arms, arm)  # sqrt(p_k), before L changes
            w = r * r * r / (q_k * q_k)  # of step 4
            x = sign * l / q_k  # step 3
            arms, delta = signed_arms.add_fading(arms, arm, x)  # gap; step 5: L_k += x
        else:
            w = signed_arms.cubes(arms, note)
            if arm >= 0:  # else the arm was retired since
                r = signed_arms.root(arms, arm)
                w += r * r * r / (q_k * q_k)
            arms, delta = signed_arms.add_with(arms, arm, sign * l / q_k, note, sign * l)
        S = arms.S + delta / (4.0 * (math.sqrt(n) - 1.0))  # step 5
        W = params.fading * W + w  # step 4
        if W > 0.0:
            B = center.moved(B, sign * u.size, u.e, w / W)
        if S > 0.0:  # until then q stays uniform
            arms = signed_arms.solve(arms, S, exploring(params, after))  # step 1 of the next round
        insert(up, down, (size, e))
    if ended > 0 and t > warm(params):
        distances.turn(up)
        distances.turn(down)
    fall = 0
    if ended > 0 or reach.now != state.reach.now:  # else C is what it was
        reach, fall, power = distances.followed(reach, ended, ended > 0)
        if fall > 0:  # the center forgets with it: else an old B would be the scale for long
            W = ldexp(W, -2 * fall)
        if power != 0:  # -1 at the end of a block
            arms = signed_arms.rescale(arms, ldexp(1.0, power))
    clock += (half_life.r > 1.0) + fall * half_life.h
    return State(t + 1, clock, clipped, after, B, W, reach, up, down, first, arms)


@kernel
def elapsed(params: Params, state: State, to: int) -> State:
    """Return the state after the ticks up to ``to``; those of the past take no time.

    A block goes on that has too few losses for a threshold.
    """
    t, clock, clipped, memory, B, W, reach, up, down, first, arms = state
    half_life, ticks = params.half_life, to - memory.pos
    if ticks <= 0:
        return state
    after, ended = discounting.passed(memory, half_life, to)
    if ended > 0 and t > warm(params):
        if distances.has(up, rank(after) if params.robust else 1):
            distances.turn(up)
        if distances.has(down, down.sizes.size // 2):
            distances.turn(down)
    # h_B is h / 16, or 32 rounds if that is longer, but at most h.
    few, many = discounting.decayed(half_life, 2 * ticks), half_life.h // (_SHORTEST // 2)
    W *= min(few, discounting.decayed(half_life, min(2 * _FASTER * ticks, many)))
    reach, fall, power = distances.followed(reach, ended, ended > 0 and reach.now.size > 0.0)
    if fall > 0:
        W = ldexp(W, -2 * fall)
    if power != 0:
        arms = signed_arms.rescale(arms, ldexp(1.0, power))
    if arms.S > 0.0:
        arms = signed_arms.solve(arms, arms.S, exploring(params, after))
    clock += ticks + fall * half_life.h
    return State(t, clock, clipped, after, B, W, reach, up, down, first, arms)


@kernel
def clip(params: Any, state: Any, sign: float, d: Distance) -> tuple[Distance, Distance]:
    """Return v (step 2) and u (step 4) as distances: the loss as clipped for the estimate and for
    the center."""
    if sign > 0.0:
        v = smaller(d, of_rank(state.up, rank(state.memory))) if params.robust else d
        return v, v
    v = smaller(d, of_rank(state.down, params.trim + 1)) if params.trim > 0 else d
    return v, smaller(v, of_rank(state.down, min(2, params.half_life.h))) if params.robust else v


@subroutine
def settled(params: Any, up: Largest, down: Largest, first: Vector) -> Center:
    """Return the lower median of the first losses; insert their distances from it."""
    middle = math.inf
    for loss in first:
        below = 0
        for other in first:
            below += other <= loss
        if below > (first.size - 1) // 2:
            middle = min(middle, loss)
    B = Center(middle, False)
    for j in range(first.size):
        insert(up, down, center.apart(B, first[j]))
        if (j + 1) % params.half_life.h == 0:
            distances.turn(up)
            distances.turn(down)
        first[j] = 0.0
    return B


@kernel
def insert(up: Largest, down: Largest, d: tuple[float, int]) -> None:
    """Insert a distance into the list of its side."""
    if d[0] > 0.0:
        distances.insert(up, Distance(d[0], d[1]))
    else:
        distances.insert(down, Distance(-d[0], d[1]))


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates, the scale and the center when arms come or go."""
    if params.n == 1:
        return state._replace(reach=NEVER, arms=signed_arms.with_arms(state.arms, keep, 0.0))
    beta = interpreted(exploring)(params, state.memory)
    return state._replace(arms=signed_arms.with_arms(state.arms, keep, beta))


@kernel
def scale(params: Params, state: State) -> float:
    """Return the largest |v| of two blocks."""
    C = larger(state.reach.now, state.reach.before)
    return capped(C.size, C.e)


SPEC = BanditSpec.of(
    __name__,
    name="AdaINF",
    reference="docs/theory/forgetting.md",
    guarantee="expected discounted regret of about 8 (max - min) sqrt(n h) with robust=False, as "
    "long as no fall of the scale is followed, Theorem F7",
    scale_free=True,
    translation_invariant=True,
    clocked=True,
)

IN_TIME = BanditSpec.of(
    __name__,
    name="AdaINF",
    reference="docs/theory/forgetting.md",
    guarantee="measured only",
    scale_free=True,
    translation_invariant=True,
    clocked=True,
    elapsed=elapsed,
)
