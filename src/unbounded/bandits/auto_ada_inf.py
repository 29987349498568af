"""AdaINF with ``half_life="auto"``: copies with several half-lives, mixed by what they would pay.

Each copy is `discounted_ada_inf` with a half-life of its own; thresholds and the center B are those
of all. An arm is drawn from the mixture q = sum_j w_j q_j, and every copy learns from
x = (v - B) / q_k. The weights w are FTRL over the copies, with a half-life: it learns from
y_j = q_{j,k} x, an unbiased estimate of <q_j, v - B>, and its rate follows its own mixability gaps.
Where arms sleep, q is the mixture on the others, and v - B is added to the estimates of those that
do, in all copies, so that y_j has q_j of the sleepers times v - B as well: measured only.
Symbols are those of docs/theory/forgetting.md, section 8, which has a sketch of a theorem.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from unbounded.bandits import discounted_ada_inf
from unbounded.bandits.discounted_ada_inf import clip, exploration, insert, scale, settled, warm
from unbounded.core import center, discounting, distances
from unbounded.core.arrays import (
    Count,
    Distribution,
    Round,
    Scratch,
    Sizes,
    Values,
    Vector,
    close,
    require,
)
from unbounded.core.center import Center
from unbounded.core.discounting import FIRST, HalfLife, Memory, checked_half_life
from unbounded.core.distances import NEVER, Distance, Largest, Reach
from unbounded.core.random import uniform_at, word_at
from unbounded.core.scaled import ldexp
from unbounded.core.simplex import ftrl, sampling, signed_arms, sleeping
from unbounded.core.simplex.ftrl import Anchor
from unbounded.core.simplex.signed_arms import Arms
from unbounded.jit.kernel import kernel, subroutine
from unbounded.learners.bandit import BanditSpec
from unbounded.learners.spec import Ask, SideAsk

HALF_LIVES = (100, 1000, 10_000, 2**30)  # h_j; the last one never forgets, to all ends
K = len(HALF_LIVES)
OF_WEIGHTS = 1000  # h of the weights w, of the thresholds and, faster, of the center
LEAST_WEIGHT = 0.02  # phi
_LEAST, _MOST = 2.0**-700, 2.0**300  # of S, as for the arms

__all__ = ["SPEC", "Params", "State", "init", "params_for", "scale"]


class Params(NamedTuple):
    n: int
    a: float
    robust: bool
    trim: int
    half_life: HalfLife
    fading: float  # 2^(-2 / h_B), of the weights of the center
    fast: HalfLife
    middle: HalfLife
    slow: HalfLife
    never: HalfLife


class Copy(NamedTuple):
    """What one half-life knows."""

    memory: Memory
    reach: Reach  # its unit 2^e, and when the scale has fallen
    arms: Arms  # estimates and S_j, in units of 2^e; q_j

    def check_for(self, params: Params, pace: HalfLife, t: int) -> None:
        """Reject what no ``t - 1`` rounds can have made."""
        self.memory.check_for(pace, t)
        self.reach.check()
        require(params.n == 1 or (self.reach.peak > 0.0) == (self.arms.S > 0.0), "no such rate")
        self.arms.check_for(
            exploration(params.n, params.a, self.memory) if self.arms.S > 0.0 else 0.0
        )


class Mixture(NamedTuple):
    """The copies as FTRL with the 1/2-Tsallis entropy sees them, in units of 2^e."""

    S: Annotated[float, Values(0.0, _MOST)]  # 1 / eta; 0 as long as all estimates are equal
    L: Sizes  # (K,) estimates less the least one
    p: Distribution  # (K,) argmin <L, p> - 4 S sum sqrt(p); w = (1 - K phi) p + phi
    m: Scratch  # (2 K,)

    def check(self) -> None:
        """Reject weights that do not follow from the estimates."""
        require(self.S == 0.0 or self.S >= _LEAST, "there is no such learning rate")
        require(np.any(self.L == 0.0) and np.all(self.L <= _MOST), "no such estimates")
        if self.S == 0.0:
            require(not np.any(self.L) and close(self.p, 1.0 / K), "nothing was learned yet")
            return
        with np.errstate(divide="ignore"):
            y = self.p**-0.5 - self.L * (0.5 / self.S)  # the same for all
        require(close(y, y[self.L.argmin()]), "its weights are others")


class State(NamedTuple):
    t: Round
    clock: Count  # rounds, and h for each halving by which a fall of the scale was followed
    clipped: Count
    memory: Memory  # of the weights and the thresholds
    B: Center
    W: Annotated[float, Values(0.0, 2.0**500)]  # the sum of the weights of the mean B
    reach: Reach
    up: Largest
    down: Largest
    first: Vector  # (`warm`,) the losses of the first rounds; then 0
    mixture: Mixture
    fast: Copy
    middle: Copy
    slow: Copy
    never: Copy

    def check(self, params: Params) -> None:
        for field in ("fast", "middle", "slow", "never"):
            getattr(self, field).check_for(params, getattr(params, field), self.t)
        discounted_ada_inf.check_shared(self, params)
        require(self.mixture.S == 0.0 or self.reach.peak > 0.0, "there is no such rate")


def params_for(n: int, a: float, robust: bool, trim: int) -> Params:
    """Return the parameters; ``trim`` must be below `OF_WEIGHTS`."""
    shared = checked_half_life("half_life", OF_WEIGHTS)
    common = discounted_ada_inf.params_for(n, a, robust, trim, shared)
    return Params(*common, *(checked_half_life("half_life", h) for h in HALF_LIVES))


def init(params: Params) -> State:
    """Start without observations, with uniform laws."""
    common = discounted_ada_inf.init(params)  # type: ignore[arg-type]
    mixture = Mixture(0.0, np.zeros(K), np.full(K, 1.0 / K), np.zeros(2 * K))
    copies = [Copy(FIRST, NEVER, signed_arms.new_arms(params.n)) for _ in range(K)]
    return State(*common[:-1], mixture, *copies)


@kernel
def weight(state: State, j: int) -> float:
    """Return w_j."""
    return (1.0 - K * LEAST_WEIGHT) * state.mixture.p[j] + LEAST_WEIGHT


@kernel
def probability(state: State, k: int) -> float:
    """Return q_k of the mixture."""
    q = weight(state, 0) * signed_arms.probability(state.fast.arms, k)
    q += weight(state, 1) * signed_arms.probability(state.middle.arms, k)
    q += weight(state, 2) * signed_arms.probability(state.slow.arms, k)
    return q + weight(state, 3) * signed_arms.probability(state.never.arms, k)


@subroutine
def drawn(arms: Arms, word: Any) -> int:
    """Draw an arm as one copy does."""
    return signed_arms.draw(arms, word)[0]


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw a copy by its weight, then an arm from its law; the ask_info is q_k."""
    stream = np.uint64(word)
    u, own = uniform_at(stream, 0), word_at(stream, 1)
    if u < weight(state, 0):
        arm = drawn(state.fast.arms, own)
    elif u < weight(state, 0) + weight(state, 1):
        arm = drawn(state.middle.arms, own)
    elif u < weight(state, 0) + weight(state, 1) + weight(state, 2):
        arm = drawn(state.slow.arms, own)
    else:
        arm = drawn(state.never.arms, own)
    q_k = probability(state, arm)
    return arm, q_k, q_k


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with the mixture."""
    for k in range(q.size):
        q[k] = probability(state, k)


@kernel
def distribution_with(params: Params, state: State, side: Vector, q: Vector) -> None:
    """Fill ``q`` with the mixture, restricted to the available arms."""
    distribution(params, state, q)
    sleeping.restrict(side, q)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw an available arm from the mixture; the ask_info is its probability among them."""
    distribution(params, state, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    return arm, q_k, q_k


@kernel
def update(params: Params, state: State, arm: int, ask: Ask, loss: float) -> State:
    """Learn from the loss of ``arm``; ``ask`` has q_k and the clock of its ask."""
    return after_loss(params, state, arm, ask.info, ask.clock, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept, as in `ada_inf`."""
    return after_loss(params, state, arm, ask.info, ask.clock, ask.note, loss)


@kernel
def after_loss(
    params: Params, state: State, arm: int, q_k: float, asked: int, note: Any, loss: float
) -> State:
    """Return the state after a loss, ``asked`` for at that clock; without sleepers ``note`` is
    None."""
    n, half_life = params.n, params.half_life
    t, clock, clipped, memory, B, W, reach, up, down, first, mixture = state[:11]
    fast, middle, slow, never = state.fast, state.middle, state.slow, state.never
    after, ended = discounting.advanced(memory, half_life)
    late, learns = clock - asked, t > warm(params) and n > 1
    sign, v = 1.0, distances.NONE
    if t <= warm(params):
        first[t - 1] = loss
        if t == warm(params):
            B = settled(params, up, down, first)
    elif n > 1:
        size, e = center.apart(B, loss)
        sign, d = math.copysign(1.0, size), Distance(abs(size), e)
        v, u = clip(params, state, sign, d)
        clipped += distances.exceeds(d, v)
        now = memory.g * discounting.decayed(half_life, late)
        reach, l, factor = distances.weighed(reach, v, now)
        x, y = sign * l / q_k, sign * l  # of the arm, and of sleepers
        mixture = learned_weights(
            rescaled(mixture, factor),
            estimate(fast.arms, arm, x, note, y), estimate(middle.arms, arm, x, note, y),
            estimate(slow.arms, arm, x, note, y), estimate(never.arms, arm, x, note, y),
        )  # fmt: skip
        w = 1.0 / math.sqrt(q_k)
        W = params.fading * W + w
        B = center.moved(B, sign * u.size, u.e, w / W)
        insert(up, down, (size, e))
    a, far = params.a, Distance(sign * v.size, v.e)  # v - B
    fast = learned(a, params.fast, fast, learns, arm, q_k, far, late, note)
    middle = learned(a, params.middle, middle, learns, arm, q_k, far, late, note)
    slow = learned(a, params.slow, slow, learns, arm, q_k, far, late, note)
    never = learned(a, params.never, never, learns, arm, q_k, far, late, note)
    if ended > 0 and t > warm(params):
        distances.turn(up)
        distances.turn(down)
    reach, fall, power = distances.followed(reach, ended, ended > 0)
    if fall > 0:  # the center forgets with it: else an old B would be the scale for long
        W = ldexp(W, -2 * fall)
    if power != 0:  # -1 at the end of a block
        mixture = rescaled(mixture, ldexp(1.0, power))
    clock += 1 + fall * half_life.h
    return State(
        t + 1, clock, clipped, after, B, W, reach, up, down, first, mixture,
        fast, middle, slow, never,
    )  # fmt: skip


@subroutine
def learned(
    a: float, pace: HalfLife, copy: Copy, learns: bool, arm: int, q_k: float, far: Distance,
    late: int, note: Any,
) -> Copy:  # fmt: skip
    """Return a copy after this round; as `discounted_ada_inf.update`, without its center."""
    memory, reach, arms = copy
    n = arms.M.size
    after, ended = discounting.advanced(memory, pace)
    if learns:
        weight, v = memory.g * discounting.decayed(pace, late), Distance(abs(far.size), far.e)
        reach, l, factor = distances.weighed(reach, v, weight)
        arms = signed_arms.rescale(arms, factor)
        y = math.copysign(l, far.size)
        if note is None:
            arms, delta = signed_arms.add(arms, arm, y / q_k)
        else:
            arms, delta = signed_arms.add_with(arms, arm, y / q_k, note, y)
        S = arms.S + delta / (4.0 * (math.sqrt(n) - 1.0))
        if S > 0.0:
            arms = signed_arms.solve(arms, S, exploration(n, a, after))
    reach, _, power = distances.followed(reach, ended, ended > 0)
    if power != 0:
        arms = signed_arms.rescale(arms, ldexp(1.0, power))
    return Copy(after, reach, arms)


@kernel
def estimate(arms: Arms, arm: int, x: float, note: Any, y: float) -> float:
    """Return y_j, what a copy would pay: x for ``arm``, and y for sleepers."""
    if note is None:
        return signed_arms.probability(arms, arm) * x
    total = signed_arms.probability(arms, arm) * x if arm >= 0 else 0.0
    for k in range(arms.M.size):
        if note[k] != 0.0:
            total += signed_arms.probability(arms, k) * y
    return total


@kernel
def rescaled(mixture: Mixture, factor: float) -> Mixture:
    """Multiply the estimates and S by a power of two; where S gets lost, all begins anew."""
    S, L, p, m = mixture
    if factor == 1.0 or S == 0.0:
        return mixture
    S *= factor
    if S < _LEAST:
        S = factor = 0.0
        p[:] = 1.0 / K
    for j in range(K):
        L[j] *= factor
    return Mixture(S, L, p, m)


@subroutine
def learned_weights(
    mixture: Mixture, fast: float, middle: float, slow: float, never: float
) -> Mixture:
    """Add the y_j to the estimates, and the mixability gap of that to S; solve for p."""
    S, L, p, m = mixture
    gap = 0.0  # <y, p> + Phi(L) - Phi(L + y)
    L[0] += fast
    L[1] += middle
    L[2] += slow
    L[3] += never
    base = sampling.least(L)
    for j in range(K):
        L[j] -= base
        m[K + j] = math.sqrt(p[j])
    if S == 0.0:
        for j in range(K):
            gap += L[j] / K
    else:
        x_after = _solve(S, L, p, m)
        for j in range(K):
            root = 1.0 / (m[j] - x_after)  # sqrt(p_j), where p_j might underflow
            gap += 2.0 * S * ((m[K + j] - root) * ((m[K + j] - root) / root))
    S += gap / (4.0 * (math.sqrt(K) - 1.0))
    if S > 0.0:
        _solve(S, L, p, m)
    return Mixture(S, L, p, m)


@kernel
def _solve(S: float, L: Vector, p: Vector, m: Vector) -> float:
    """Fill ``p`` with argmin <L, p> - 4 S sum sqrt(p), and ``m`` with L in units of 2 S."""
    for j in range(K):
        m[j] = L[j] * (0.5 / S)
    found = ftrl.tsallis(m[:K], 2.0, Anchor(-1.0, 0.0, 0.0, 0.0), p, m)
    for j in range(K):
        p[j] /= found.S2
    return found.x


SPEC = BanditSpec.of(
    __name__,
    name="AdaINF",
    reference="docs/theory/forgetting.md",
    guarantee="measured only; a sketch with a linear term in docs/theory/forgetting.md, section 8",
    scale_free=True,
    translation_invariant=True,
    clocked=True,
)
