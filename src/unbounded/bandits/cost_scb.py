"""CostSCB: scale-free bandit for costs, losses with a known lower bound (docs/theory/one-sided.md).

FTRL with the 1/2-Tsallis entropy on losses that are clipped at the m-th largest one observed so
far. With a known lower bound, that clipping errs on one side only, so that no exploration is
needed. Symbols are those of docs/theory/one-sided.md, section 1, where the lower bound b is 0.
This algorithm is the library's own; we know of no other text on it.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple, SupportsIndex

from numpy.random import PCG64
from numpy.typing import ArrayLike

from unbounded.bandits import discounted_cost_scb
from unbounded.core.arrays import Count, Round, Size, Values, Vector, require
from unbounded.core.ceiling import (
    Ceiling,
    checked_lower,
    clip_above,
    height,
    new_ceiling,
    unit_factor,
)
from unbounded.core.discounting import rounds_or_time
from unbounded.core.simplex import sleeping, tsallis_arms
from unbounded.core.simplex.tsallis_arms import Arms
from unbounded.jit.interpreter import interpreted, quietly
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.costs import Costs
from unbounded.learners.spec import SideAsk
from unbounded.validation import (
    ArgumentTypeError,
    ArgumentValueError,
    checked_constant,
    checked_count,
    checked_factor,
    checked_option,
    shown,
)

TUNINGS = ("paid", "scale")
PAID, SCALE = range(2)  # tunings B and A of docs/theory/one-sided.md
DELAYED = ("unadjusted", "adaptive")
MOST_RANKS = 2048  # K of outliers="sqrt"
Squares = Annotated[float, Values(0.0, 2.0**300)]  # in units of 4^e


class Params(NamedTuple):
    n: int
    lower: float  # b: the lower bound on the losses
    K: int  # the largest rank: outliers + 1, or MOST_RANKS
    growing: bool  # whether m_t grows with t up to K, or is K from the first round on
    tuning: int  # PAID (B): eta_t = c / sqrt(C_max^2 + Z); SCALE (A): eta_t = c / sqrt(V)
    rate: float  # c
    nu: float  # gamma_t = nu / (n + t)
    counts: bool  # delayed="adaptive": V has a term per ask, with what was outstanding (Theorem O6)


class State(NamedTuple):
    t: Round
    clipped: Count  # losses above lower + C_t
    below: Count  # losses below ``lower``; clipped + below < t
    ceiling: Ceiling  # what losses are clipped at: C_t, C_max and the unit 2^e
    V: Squares  # V_t = sum_{s <= t} `weight`, in units of 4^e: at least C_max^2 (SCALE; else 0)
    V_asked: Size  # V of the last ask, in units of 4^e; read only if ``waiting`` > 0; at most V
    waiting: Count  # |O_t|: asks outstanding; 0 unless ``counts``
    Z: Squares  # sum_{s < t} of l^2 / sqrt(n (p + gamma)), in units of 4^e: >= 0 (PAID; else 0)
    arms: Arms  # L_hat >= 0, in units of 2^e, and p_t

    def check(self, params: Params) -> None:
        n, t = params.n, self.t
        self.ceiling.check_for(params.lower, growing_rank(n, t) if params.growing else params.K)
        require(self.clipped + self.below < t, "there are no so many losses")
        require(self.V_asked <= self.V, "there are no such asks")
        require(params.counts or self.waiting == 0, "asks are not counted")
        if params.tuning == SCALE:
            require(self.V >= 0.25 or self.ceiling.C_max == 0.0, "no such squares")
        self.arms.check_for(t)


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform p_1."""
    return State(
        t=1, clipped=0, below=0, ceiling=new_ceiling(params.lower, params.K), V=0.0, V_asked=0.0,
        waiting=0, Z=0.0, arms=tsallis_arms.new_arms(params.n, growing=not params.counts),
    )  # fmt: skip


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from p_t; the ask_info is p_{t,k} + gamma_t."""
    arm, p_k = tsallis_arms.draw(state.arms, word)
    return arm, p_k, p_k + params.nu / (params.n + state.t)  # gamma_t = nu / (n + t)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw k_t from q_t, p_t on the available arms; the ask_info is q_{t,k} + gamma_t."""
    tsallis_arms.fill(state.arms, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    return arm, q_k, q_k + params.nu / (params.n + state.t)


@kernel
def growing_rank(n: int, t: int) -> int:
    """Return m_t of outliers="sqrt": ceil(sqrt(n t)), at most MOST_RANKS."""
    return min(MOST_RANKS, math.ceil(math.sqrt(n * t)))


@kernel
def update(params: Params, state: State, arm: int, p_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``p_k_gamma`` is p_{t,k} + gamma_t of its ask."""
    return learned(params, state, arm, p_k_gamma, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those are charged what was paid
    (docs/theory/sleeping.md)."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, p_k_gamma: float, note: Any, loss: float
) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    n, t = params.n, state.t + 1  # t + 1 in docs/theory/one-sided.md: of the next round
    m = growing_rank(n, t) if params.growing else params.K
    # l^c by C_t of this round; then C_{t+1}, the m-th largest with this loss.
    l, clipped, ceiling = clip_above(state.ceiling, params.lower, m, loss)
    arms = state.arms
    if note is None:
        arms = tsallis_arms.add(arms, arm, l / p_k_gamma)  # L_hat += l_hat, in the old unit
    else:
        if arm >= 0:  # else the arm was retired since
            arms = tsallis_arms.add(arms, arm, l / p_k_gamma)
        arms = tsallis_arms.charge(arms, note, l)
    factor = unit_factor(state.ceiling, ceiling)
    V, V_asked, Z = state.V, 0.0, state.Z
    waiting = max(0, state.waiting - 1)  # this one is no longer outstanding
    if params.tuning == PAID:  # tuning B: W_{t+1} = C_max^2 + sum_{s <= t} Z_s
        Z += sleeping.square(l, n, p_k_gamma, note)
        Z = Z * factor * factor  # by 2^-d and again: 4^-d may underflow where the product does not
        W = ceiling.C_max * ceiling.C_max + Z
    else:  # tuning A: V_{t+1} = V_t + C_{t+1}^2, or more with asks outstanding
        # If asks are outstanding, `asked` has put the next ask's term into V, with the old C.
        V_asked = (state.V_asked if state.waiting > 0 else V) * factor * factor
        V = V_asked + weight(n, ceiling.C, waiting)
        W = V
    if n > 1 and ceiling.C_max > 0.0:  # until then p stays uniform
        arms = tsallis_arms.rescale(arms, factor)
        arms = tsallis_arms.afresh(arms) if params.counts else arms  # as in `asked`
        # eta_{t+1} = c / sqrt(W), in units of 2^-e; no mixing.
        arms = tsallis_arms.solve(arms, params.rate / math.sqrt(W), 0.0)  # for the next round
    below = state.below + (loss < params.lower)
    return State(t, state.clipped + clipped, below, ceiling, V, V_asked, waiting, Z, arms)


@kernel
def weight(n: int, C: float, waiting: int) -> float:
    """Return the term of an ask in V: C_t^2 (1 + 2 |O_t| / sqrt(n)) (Theorem O6)."""
    return C * C * (1.0 + 2.0 * waiting / math.sqrt(n))


@kernel
def asked(params: Params, state: State) -> State:
    """Prepare V and p for an ask that comes before the next tell (``counts`` only)."""
    t, clipped, below, ceiling, V, _, waiting, Z, arms = state
    waiting += 1  # the ask that was just made is outstanding at the next one
    V_asked = V
    V = V_asked + weight(params.n, ceiling.C, waiting)
    if params.n > 1 and ceiling.C_max > 0.0:
        arms = tsallis_arms.afresh(arms)  # a warm start would not be the simulator's
        arms = tsallis_arms.solve(arms, params.rate / math.sqrt(V), 0.0)
    return State(t, clipped, below, ceiling, V, V_asked, waiting, Z, arms)


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates and the scale when arms come or go (docs/theory/sleeping.md)."""
    m = interpreted(growing_rank)(params.n, state.t) if params.growing else params.K
    # No loss, but the rank may be another one.
    _, _, ceiling = interpreted(clip_above)(state.ceiling, params.lower, m, params.lower)
    factor = interpreted(unit_factor)(state.ceiling, ceiling)
    V, V_asked, Z = (x * factor * factor for x in (state.V, state.V_asked, state.Z))
    least = ceiling.C_max * ceiling.C_max
    V = max(V, least) if params.tuning == SCALE else V
    W = least + Z if params.tuning == PAID else V
    eta = params.rate / math.sqrt(W) if ceiling.C_max > 0.0 else 0.0
    arms = quietly(tsallis_arms.rescale)(state.arms, factor)
    arms = tsallis_arms.with_arms(arms, keep, eta)
    return state._replace(ceiling=ceiling, V=V, V_asked=V_asked, Z=Z, arms=arms)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t: losses are clipped at lower + C_t."""
    return height(state.ceiling, params.lower)


def paid_bound(n: int, T: int, m: int = 1, rate: float = 2.0, nu: float = 1.0) -> float:
    """Bound tuning B for losses in [lower, lower + 1]: docs/theory/one-sided.md, Theorem O3."""
    learning = (4.0 / rate + rate) * math.sqrt(n * (T + 1.0)) + 1.0 + 0.5 * math.log(T + 1.0)
    return learning + m + nu * n * math.log1p(T / n)


def scale_bound(n: int, T: int, m: int = 1, rate: float = 2.0, nu: float = 1.0) -> float:
    """Bound tuning A for losses in [lower, lower + 1]: docs/theory/one-sided.md, Theorem O1."""
    return (4.0 / rate + rate) * math.sqrt(n * T) + m + nu * n * math.log1p(T / n)


class CostSCB(Learner, Costs):
    """Bandit for costs: losses with a known lower bound, and of unknown size above it.

    Seconds, dollars, errors: where a lower bound on the losses is known, and losses near it occur,
    this learns faster than `SCB`, and ``outliers`` can declare that rare huge losses mean nothing.

    Parameters
    ----------
    lower : float, optional
        The lower bound on the losses, 0 by default. It should not be far below those that occur:
        with losses in [1000, 1001] and ``lower=0`` nothing is learned.
    best_reward : float, optional
        Instead of ``lower``, for rewards: the largest one possible.
    outliers : int or "sqrt"
        How many huge losses say nothing about their arms: the learner works at the scale of the
        largest loss but these. "sqrt" lets their number grow as sqrt(n t), up to 2047. An arm
        whose rare huge losses *are* what is wrong with it is not recognized then.
    tune : {"paid", "scale"}
        Whether the learning rate follows the losses that were paid (tuning B of
        docs/theory/one-sided.md), or the clipping threshold (tuning A).
    rate : float
        Multiplies the learning rate.
    implicit : float
        The amount of implicit exploration; 0 has the smallest expected regret, and a heavy tail.
    delayed : {"unadjusted", "adaptive"}
        How to learn from delayed feedback. "unadjusted" counts tells, as all learners here do:
        good in practice, but no regret bound is known for it. "adaptive" lowers the learning rate
        with the number of outstanding asks. It has a regret bound (Theorem O6), requires
        ``tune="scale"``, ``implicit=0`` and a number of ``outliers``, and ``rate=1`` is best. It
        takes O(n) for an ask, and `forget` raises.
    half_life : int or timedelta, optional
        For arms, or a scale, that change: the number of tells after which a loss counts half. About
        a tenth of the rounds between changes, and at least 30 n, is a good choice
        (docs/guide/changing.md). Without it, nothing is forgotten. A time (or text, "3600 s") is
        for `Durable`, which has a clock; elsewhere say `set_time`.
    cap : float, optional
        With a ``half_life``: a loss counts at most this many times the usual one, the median of the
        last 64 losses above ``lower``. 100 lets time-outs matter and keeps them from setting the
        scale.

    Notes
    -----
    A loss below ``lower`` is taken as ``lower``, counted in `below`, and warned of once.

    Examples
    --------
    >>> from unbounded import CostSCB
    >>> learner = CostSCB(n_arms=3, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[5e9, 1e9, 4e9][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = BanditSpec.of(
        __name__,
        reference="docs/theory/one-sided.md",
        guarantee="expected regret 4 M sqrt(n T) + O(n M log T) for losses in [lower, lower + M], "
        "Theorem O3",
        scale_free=True,
        bound=paid_bound,
        bound_unit="scale",  # for lower=0
        asked=asked,
        examples=(
            {},
            {"tune": "scale", "implicit": 0.0},
            {"outliers": 3},
            {"outliers": "sqrt"},
            {"outliers": "sqrt", "tune": "scale", "rate": 1.0},
            {"half_life": 40},
            {"half_life": 100, "outliers": "sqrt", "tune": "scale"},
            {"half_life": 60, "cap": 3.0},
        ),
    )

    _remedy = "where such {} say nothing about their arms, make the learner with outliers='sqrt'"

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        lower: float | None = None,
        best_reward: float | None = None,
        outliers: SupportsIndex | str = 0,
        tune: Literal["paid", "scale"] = "paid",
        rate: float = 2.0,
        implicit: float = 1.0,
        delayed: Literal["unadjusted", "adaptive"] = "unadjusted",
        half_life: SupportsIndex | timedelta | str | None = None,
        cap: float | None = None,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        least = checked_lower(lower, best_reward)
        growing = isinstance(outliers, str)
        if not isinstance(outliers, str):
            outliers = checked_count("outliers", outliers, least=0)
        elif outliers != "sqrt":
            raise ArgumentValueError(
                "outliers", f"must be a number or 'sqrt', got {shown(outliers)}"
            )
        K = MOST_RANKS if isinstance(outliers, str) else outliers + 1
        tuning = checked_option("tune", tune, TUNINGS)
        rate = checked_constant("rate", rate)
        implicit = checked_factor("implicit", implicit)
        counts = checked_option("delayed", delayed, DELAYED) == DELAYED.index("adaptive")
        if counts and (growing or tuning == PAID or implicit > 0.0):
            raise ArgumentValueError(
                "delayed",
                "='adaptive' has a regret bound for tune='scale', implicit=0 and a number of "
                "outliers: set these, or delayed='unadjusted'",
            )
        largest = math.inf if cap is None else checked_constant("cap", cap)
        params: Any = Params(n_arms, least, K, growing, tuning, rate, implicit, counts)
        checked: dict[str, str] = {}
        if half_life is not None:
            ignored = 0 if growing else K - 1
            weights, checked = rounds_or_time("half_life", half_life, ignored, n_arms)
            if checked and growing:
                raise ArgumentValueError("outliers", "='sqrt' needs a half_life in rounds")
            if counts:
                raise ArgumentValueError("half_life", "has no bound with delayed='adaptive'")
            most = math.ceil(math.sqrt(n_arms * (1.4427 * weights.h + 2.0)))  # of sqrt(n N)
            K = min(K, weights.h, most) if growing else K
            self.spec = discounted_cost_scb.IN_TIME if checked else discounted_cost_scb.SPEC
            params = discounted_cost_scb.Params(
                n_arms, least, K, growing, tuning, rate, implicit, weights, largest
            )
        elif cap is not None:
            raise ArgumentValueError("cap", "is for learners with a half_life: set that as well")
        self._counts = counts
        self._start(params, seed, checked)
        self._least = self._low = least
        self._watching = outliers != 0  # where one is expected, it does no harm

    def _renew_stream(self, bits: PCG64) -> None:
        super()._renew_stream(bits)
        if self._counts:
            self._buffer[self.spec.packing.slot("waiting")] = 0.0

    def _side(self, available: ArrayLike) -> Vector | None:
        if self._counts:
            raise ArgumentTypeError(
                "available", "has no regret bound with delayed='adaptive': set 'unadjusted'"
            )
        return super()._side(available)

    def _drop(self, number: int) -> None:
        if self._counts:
            raise RuntimeError(
                "delayed='adaptive' needs every loss: tell() it, or make the learner with "
                "delayed='unadjusted'"
            )
        super()._drop(number)

    def _tenfold(self) -> tuple[float, float]:
        return self._params.lower, self._params.lower + 10.0 * self.scale
