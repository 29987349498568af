"""SCB: minimax-optimal scale-free bandit (Chen & Zhang 2024, Algorithm 1 and Theorem 1).

FTRL with the 1/2-Tsallis entropy on losses that are clipped to what has been seen so far. The
clipping threshold starts at 0, so the scale of the losses need not be known.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsIndex

from unbounded._arguments import (
    checked_ablation,
    checked_count,
    checked_option,
    checked_positive,
    checked_share,
)
from unbounded._jit import kernel
from unbounded.core import clipping
from unbounded.core.arrays import (
    Vector,
)
from unbounded.core.clipping import NONE, RANGE, Window
from unbounded.core.simplex import tsallis_arms
from unbounded.core.simplex.tsallis_arms import Arms
from unbounded.play.bandit_learner import Learner
from unbounded.play.contract import BanditSpec
from unbounded.play.seeds import Seed


class Params(NamedTuple):
    n: int
    clip: int  # SCALE: the paper's; RANGE: docs/range-clipping.md; NONE: an ablation
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    rate: float  # c: eta_t = c / (W sqrt(t)); the paper has 1
    mixing: float  # multiplies beta_t; 1 except in ablations


class State(NamedTuple):
    t: int
    clipped: int
    W: float  # width of the clipping window, 2 C_t, in units of 2^e
    e: int
    low: float  # extreme losses seen, for range clipping
    high: float
    arms: Arms  # L_hat, in units of 2^e, and q_t


def init(params: Params) -> State:
    """C_1 = 0 and q_1 uniform."""
    W, e, low, high = clipping.EMPTY
    return State(
        1, 0, W, e, low, high, tsallis_arms.new_arms(params.n, growing=params.clip != NONE)
    )


@kernel
def distribution(params: Params, state: State, q: Vector) -> None:
    """Fill ``q`` with q_t."""
    tsallis_arms.fill(state.arms, q)


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from q_t; the memo is q_{t,k}."""
    arm, q_k = tsallis_arms.draw(state.arms, word)
    return arm, q_k, q_k


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``q_k``."""
    n, t = params.n, state.t + 1
    before = Window(state.W, state.e, state.low, state.high)
    l_plus, clipped, window = clipping.clip(before, params.clip, params.rule, loss)  # lines 5, 7
    arms = tsallis_arms.add(state.arms, arm, l_plus / q_k)  # line 6
    if l_plus < 0.0:  # only where nothing is clipped
        arms = tsallis_arms.unsettled(arms)
    if n > 1 and window.W > 0.0:
        if window.e != before.e and before.W > 0.0:
            arms = tsallis_arms.rescale(arms, math.ldexp(1.0, before.e - window.e))
        eta = params.rate / (window.W * math.sqrt(t))  # line 8, in units of 2^-e
        beta = params.mixing * n / (2.0 * n + math.sqrt(n * t))
        arms = tsallis_arms.solve(arms, eta, beta)  # lines 2 and 3, for the next round
    return State(
        t, state.clipped + clipped, window.W, window.e, window.low, window.high, arms
    )  # fmt: skip


@kernel
def scale(params: Params, state: State) -> float:
    """C_t, or the observed range."""
    W = state.W if params.clip == RANGE else 0.5 * state.W
    return math.ldexp(W, state.e)


def scale_bound(n: int, T: int) -> float:
    """Theorem 1 with explicit constants, over l_inf: docs/range-clipping.md, section 7."""
    return 27.0 * math.sqrt(n * T) + 2.0 * n


def range_bound(n: int, T: int, rate: float = 1.0) -> float:
    """The theorem of range clipping, over max - min: docs/range-clipping.md, section 4."""
    x = math.sqrt(T / n)
    growth = rate if rate <= 2.0 else rate * (1.0 + math.log1p(x) / x)
    return (3.0 + 4.0 / rate + growth) * math.sqrt(n * T) + 2.0 * n + 1.0


SPEC = BanditSpec(
    name="SCB",
    reference="Chen & Zhang 2024, Algorithm 1",
    guarantee="expected regret O(l_inf (n + sqrt(n T))), Theorem 1",
    Params=Params,
    State=State,
    init=init,
    distribution=distribution,
    act=act,
    update=update,
    scale=scale,
    scale_free=True,
    bound=scale_bound,
    bound_unit="scale",
    examples=(
        {},
        {"clip": "range"},
        {"clip": "range", "rate": 2.0},
        {"threshold": "largest"},
        {"mixing": 0.0},
        {"clip": "none", "ablation": True},
    ),
)


class SCB(Learner):
    """Scale Clipping Bound: the minimax-optimal bandit for losses of unknown scale.

    Expected regret is O(l_inf (n + sqrt(n T))) for losses of any size l_inf, with neither l_inf
    nor the number of rounds T known.

    Parameters
    ----------
    n_arms : int
        The number of arms.
    clip : {"scale", "range", "none"}
        "scale" is the paper's: losses are clipped to [-C, C], C twice the largest seen. "range"
        clips to the range of the losses seen, so that losses in [1000, 1001] are learned as
        fast as losses in [0, 1]; regret is then O(range * sqrt(n T)). "none" is an ablation: C
        is learned as in the paper and used in the learning rate, but a loss that exceeds it is
        used as it is, l + C, so that estimates are unbiased and unbounded, and may be negative.
    threshold : {"lazy", "largest"}
        With ``clip="scale"``: whether C changes only when a loss exceeds it, as in the paper's
        pseudo-code, or is always twice the largest loss, as in its text.
    rate : float
        Multiplies the learning rate; 1 is the paper's.
    mixing : float
        Multiplies the share of uniform exploration, from 0 (none) to 1 (the paper's).
    ablation : bool
        Permit ``clip="none"``, and ``clip="range"`` with ``mixing=0``, which can fail.
    seed : int or SeedSequence, optional
        For the choices.

    Examples
    --------
    >>> from unbounded import SCB
    >>> learner = SCB(n_arms=3, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, loss=[5e9, 1e9, 4e9][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = SPEC

    def __init__(
        self,
        n_arms: SupportsIndex,
        *,
        clip: str = "scale",
        threshold: str = "lazy",
        rate: float = 1.0,
        mixing: float = 1.0,
        ablation: bool = False,
        seed: Seed = None,
    ) -> None:
        params = Params(
            n=checked_count("n_arms", n_arms),
            clip=checked_option("clip", clip, ("scale", "range", "none")),
            rule=checked_option("threshold", threshold, ("lazy", "largest")),
            rate=checked_positive("rate", rate),
            mixing=checked_share("mixing", mixing),
        )
        checked_ablation(clip, params.mixing, ablation)
        settings = {
            "n_arms": params.n, "clip": clip, "threshold": threshold, "rate": params.rate,
            "mixing": params.mixing, "ablation": ablation,
        }  # fmt: skip
        self._start(params, settings, seed)
