"""AdaINF: scale-free, translation-invariant bandit for signed losses (docs/theory/ada-inf.md).

FTRL with the 1/2-Tsallis entropy on losses less a center B, which is learned and the same for all
arms, so that nothing need be clipped; the learning rate 1 / S follows the mixability gaps that were
paid. Steps and symbols are those of docs/theory/ada-inf.md, section 1. `update` is steps 2 to 5 of
round t, then step 1 of round t + 1. Losses and B are floats in the unit of the losses, or lifted
(`core.center`); v - B, the estimates and S are in units of 2^e.
This algorithm is the library's own. Its parts are known: reduced variance (Zimmert & Seldin 2021),
rates from mixability gaps (De Rooij et al. 2014, AdaHedge; Orabona & Pal 2018, AdaFTRL).
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Annotated, Any, NamedTuple, SupportsIndex

import numpy as np

from unbounded.bandits import auto_ada_inf, discounted_ada_inf
from unbounded.core import center
from unbounded.core.arrays import Count, Mantissa, Round, Values, Vector, require
from unbounded.core.center import LIFT, ORIGIN, Center
from unbounded.core.discounting import rounds_or_time
from unbounded.core.scaled import capped, ldexp
from unbounded.core.simplex import signed_arms
from unbounded.core.simplex.signed_arms import Arms
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import (
    ArgumentValueError,
    checked_count,
    checked_flag,
    checked_positive,
)

WARM = 8  # rounds before there is a center; 1 if not ``robust``
MOST_RANKS = 64
_UP = 0.25  # m_t = 1 + floor(up sqrt(t)), up to MOST_RANKS
_LARGEST_UNIT = 1200  # 2^1025 is more than the range of finite losses; 2^-1074 is the least one
_MOST_WEIGHT = 2.0**500  # more than the sum of weights can be


class Params(NamedTuple):
    n: int
    a: float  # beta_t = a n / (2 a n + sqrt(n t))
    robust: bool  # whether losses above the m_t-th largest one are clipped (step 2)
    trim: int  # r: losses below the (r + 1)-th smallest one are clipped; 0: none are (step 2)


class State(NamedTuple):
    t: Round
    clipped: Count
    B: Center  # B_t
    W: Annotated[float, Values(0.0, _MOST_WEIGHT)]  # the sum of the weights w of the mean B
    A: Mantissa  # the largest |v - B| so far, in units of 2^e: in [0.5, 1), or 0 if all were 0
    e: Annotated[int, Values(-_LARGEST_UNIT, _LARGEST_UNIT)]
    largest: Vector  # (K,) the largest observed losses, descending; filled up with -inf
    smallest: Vector  # (max(2, trim + 1),) the smallest ones, ascending; filled up with inf
    arms: Arms  # estimates and S = 1 / eta, in units of 2^e; q_t

    def check(self, params: Params) -> None:
        n, t, arms = params.n, self.t, self.arms
        largest, smallest = self.largest, self.smallest
        require(np.all(largest[1:] <= largest[:-1]), "the largest losses are in no order")
        require(np.all(smallest[1:] >= smallest[:-1]), "the smallest losses are in no order")
        for values in (largest, smallest):
            seen = np.isfinite(values).sum()
            require(seen == min(t - 1, values.size), "there were no so many losses")
        require(t == 1 or (largest[0] < np.inf and smallest[0] > -np.inf), "a loss is infinite")
        require(self.clipped < t, "there are no so many losses")
        if t > warm(params):
            B = center.as_told(self.B)
            require(smallest[0] <= B <= largest[0], "the center is not within the losses")
        else:
            require(self.B.at == 0.0 and self.A == 0.0, "there is no center yet")
        require(n == 1 or (self.A > 0.0) == (arms.S > 0.0), "the scale does not fit the rate")
        arms.check_for(exploring(params, t) if arms.S > 0.0 else 0.0)


def init(params: Params) -> State:
    """Start without observations, with uniform q_1."""
    largest = np.full(MOST_RANKS if params.robust else 1, -math.inf)
    smallest = np.full(max(2, params.trim + 1), math.inf)
    arms = signed_arms.new_arms(params.n)
    return State(1, 0, ORIGIN, W=0.0, A=0.0, e=0, largest=largest, smallest=smallest, arms=arms)


@kernel
def warm(params: Params) -> int:
    """Return the number of rounds without a center."""
    return WARM if params.robust else 1


@kernel
def exploring(params: Params, t: int) -> float:
    """Return beta_t = a n / (2 a n + sqrt(n t)), divided by a so that no ``a`` overflows."""
    return params.n / (2.0 * params.n + math.sqrt(params.n * t) / params.a)


@kernel
def rank(t: int) -> int:
    """Return m_t: losses are clipped at the m_t-th largest one observed."""
    return 1 + int(min(MOST_RANKS - 1.0, _UP * math.sqrt(t)))


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``q_k``."""
    return learned(params, state, arm, q_k, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: v - B is added to the estimates of those
    (docs/theory/sleeping.md; no regret bound is known)."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(params: Params, state: State, arm: int, q_k: float, note: Any, loss: float) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    n = params.n
    t, clipped, B, W, A, e, largest, smallest, arms = state
    if t > warm(params) and n > 1:
        v, u = clip(params, state, B, loss)  # step 2, and u of step 4
        if center.misfits(B, v):  # tiny losses only, or no longer: change the unit of B
            B = center.refitted(B)
            v, u = clip(params, state, B, loss)
        clipped += v != center.seen_by(B, loss)
        l = center.distance(B, v, e)  # v - B, in units of 2^e
        if abs(l) > A:  # the largest so far: it sets the unit
            A, unit = center.furthest(B, v)
            arms = signed_arms.rescale(arms, ldexp(1.0, e - unit))
            l, e = math.copysign(A, l), unit
        if note is None:
            r = signed_arms.root(arms, arm)  # sqrt(p_k), before L changes
            w = r * r * r / (q_k * q_k)  # of step 4
            arms, delta = signed_arms.add(arms, arm, l / q_k)  # step 3: x, gap; step 5: L_k += x
        else:
            w = signed_arms.cubes(arms, note)
            if arm >= 0:  # else the arm was retired since
                r = signed_arms.root(arms, arm)
                w += r * r * r / (q_k * q_k)
            arms, delta = signed_arms.add_with(arms, arm, l / q_k, note, l)
        S = arms.S + delta / (4.0 * (math.sqrt(n) - 1.0))  # step 5: S += delta / h
        W += w  # step 4
        if W > 0.0:
            B = center.towards(B, u, w / W)
        if S > 0.0:  # until then q stays uniform
            arms = signed_arms.solve(arms, S, exploring(params, t + 1))  # step 1 of the next round
    insert(largest, smallest, loss)
    if t == warm(params):  # end of step 1's first rounds
        B = Center(largest[t // 2], B.lifted)  # the lower median
    return State(t + 1, clipped, B, W, A, e, largest, smallest, arms)


@kernel
def clip(params: Params, state: State, B: Center, loss: float) -> tuple[float, float]:
    """Return v (step 2) and u (step 4), in the unit of ``B``: the loss as clipped for the estimate
    and for the center."""
    v = center.seen_by(B, loss)
    if params.robust:
        v = min(v, max(center.seen_by(B, state.largest[rank(state.t) - 1]), B.at))
    if params.trim > 0:
        v = max(v, min(center.seen_by(B, state.smallest[params.trim]), B.at))
    return v, max(v, min(center.seen_by(B, state.smallest[1]), B.at)) if params.robust else v


@kernel
def insert(largest: Vector, smallest: Vector, loss: float) -> None:
    """Insert a loss into the sorted lists of the largest and the smallest ones."""
    k = largest.size - 1
    if loss > largest[k]:
        while k > 0 and largest[k - 1] < loss:
            largest[k] = largest[k - 1]
            k -= 1
        largest[k] = loss
    k = smallest.size - 1
    if loss < smallest[k]:
        while k > 0 and smallest[k - 1] > loss:
            smallest[k] = smallest[k - 1]
            k -= 1
        smallest[k] = loss


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates, the scale and the center when arms come or go."""
    if params.n == 1:
        return state._replace(A=0.0, arms=signed_arms.with_arms(state.arms, keep, 0.0))
    beta = interpreted(exploring)(params, state.t)
    return state._replace(arms=signed_arms.with_arms(state.arms, keep, beta))


@kernel
def scale(params: Params, state: State) -> float:
    """Return the largest |v - B| so far."""
    return capped(state.A, state.e)


def usual_exploration(n: int) -> float:
    """Return the default of a, n / (2 (n - 1)): 1 for two arms, about 1/2 for many."""
    return n / (2.0 * (n - 1.0)) if n > 1 else 1.0


def bound(
    n: int, T: int, exploration: float | None = None, robust: bool = True, trim: int = 0
) -> float:
    """Bound expected regret for losses of range 1, with the best kappa.

    Theorem 1 of docs/theory/ada-inf.md, with the additions of its section 4.
    """
    a = usual_exploration(n) if exploration is None else exploration
    root = math.sqrt(n * T)
    h = 4.0 * (math.sqrt(n) - 1.0)
    reach = root / a + 2.0 * n  # 1 / eps_T
    beta = n / reach
    S = 0.5 * math.sqrt(reach / (1.0 - beta))  # S*, so that H = h S*
    weight = 0.92 * math.sqrt(reach)  # no w_t is larger
    squares = (1.0 - 1.0 / math.sqrt(n)) * (n * T + 4.0 * a * n * root)
    squares += h * weight * (1.0 + math.log(T + 4.0 * a * root) + (4.0 if robust else 0.0))  # Q
    learning = math.inf
    for j in range(120):
        kappa = 1.1**j
        early, c = kappa * h * S + reach, 1.0 / (1.0 - 0.5 / kappa)
        learning = min(learning, 4.0 + 2.0 * math.sqrt(early * early + c * squares))
    first = (WARM + rank(T)) if robust else 1.0
    low = (trim + 1.0) * reach if trim > 0 else 0.0
    return first + 2.0 * a * (1.0 - 1.0 / n) * root + learning + low


class AdaINF(Learner):
    """Bandit for losses of either sign whose range is not known.

    Gains and losses, scores, returns: where neither end of the range is known, this learns about
    as fast as learners that are given the range. Where a lower bound on the losses is known (costs,
    seconds, errors) and rare huge losses matter, there is `CostSCB`, whose ``outliers`` says what
    they mean, and which has a smaller regret bound. With many arms a round touches only a few of
    them.

    Parameters
    ----------
    exploration : float, optional
        a in the share of uniform exploration, a n / (2 a n + sqrt(n t)); n / (2 (n - 1)) by
        default. Less of it is cheaper, unless an arm that was bad for long turns good.
    robust : bool
        Whether rare huge losses count no more than the m-th largest one, m = 1 + sqrt(t) / 4 up to
        64. False gives the algorithm of the theorem without its additions, and is right where rare
        huge losses are what is wrong with an arm.
    trim : int
        How many rare losses far *below* the others are to be ignored for ever; 0 by default,
        because such a loss may as well be a hidden good arm.
    half_life : int, timedelta or "auto", optional
        For arms, a scale or an offset that change: the number of tells after which a loss counts
        half. About a tenth of the rounds between changes, and at least 30 n, is a good choice
        (docs/guide/changing.md). ``robust`` and ``trim`` then count per half-life. Without it,
        nothing is forgotten. "auto" mixes copies with half-lives of 100, 1,000, 10,000 and none by
        what they would have paid; no useful regret bound is known for it, and a round takes about
        six times as long. A time is for `Durable`, as in `CostSCB`.

    Notes
    -----
    ``clipped`` counts the losses that counted less than they were. The first eight rounds (one
    without ``robust``) are played at random.

    Examples
    --------
    >>> from unbounded import AdaINF
    >>> learner = AdaINF(n_arms=3, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[5e9, -1e9, 4e9][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = BanditSpec.of(
        __name__,
        reference="docs/theory/ada-inf.md",
        guarantee="expected regret (max - min) (5.48 sqrt(n T) + O(n^(3/4) T^(1/4) + n)), up to "
        "logarithms in the lower order, docs/theory/ada-inf.md",
        scale_free=True,
        translation_invariant=True,
        bound=bound,
        examples=(
            {},
            {"robust": False},
            {"robust": False, "exploration": 1.0},
            {"trim": 2},
            {"half_life": 40},
            {"half_life": 100, "robust": False},
            {"half_life": "auto"},
        ),
    )

    _remedy = "where such {} say nothing about their arms, make the learner with trim=1 or more"

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        exploration: float | None = None,
        robust: bool = True,
        trim: SupportsIndex = 0,
        half_life: SupportsIndex | timedelta | str | None = None,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        if exploration is not None:
            exploration = checked_positive("exploration", exploration)
        robust = checked_flag("robust", robust)
        trim = checked_count("trim", trim, least=0)
        a = usual_exploration(n_arms) if exploration is None else exploration
        params: Any = Params(n_arms, a, robust, trim)
        checked: dict[str, str] = {}
        if half_life == "auto":
            if trim >= auto_ada_inf.OF_WEIGHTS:
                most = auto_ada_inf.OF_WEIGHTS - 1
                raise ArgumentValueError(
                    "trim", f"must be at most {most} with half_life='auto', got {trim}"
                )
            self.spec = auto_ada_inf.SPEC
            params = auto_ada_inf.params_for(n_arms, a, robust, trim)
        elif half_life is not None:
            weights, checked = rounds_or_time("half_life", half_life, n_arms=n_arms)
            if weights.h <= trim:
                raise ArgumentValueError("half_life", f"must exceed trim={trim}, got {weights.h}")
            self.spec = discounted_ada_inf.IN_TIME if checked else discounted_ada_inf.SPEC
            params = discounted_ada_inf.params_for(n_arms, a, robust, trim, weights)
        self._start(params, seed, checked)
        self._watching = trim > 0

    def _tenfold(self) -> tuple[float, float]:
        B = ldexp(self._scalar("B.at"), -LIFT if self._scalar("B.lifted") else 0)
        far = 10.0 * self.scale
        return B - far, math.inf if self._params.robust else B + far
