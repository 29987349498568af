"""SCB: minimax-optimal scale-free bandit (Chen & Zhang 2024, Algorithm 1 and Theorem 1).

FTRL with the 1/2-Tsallis entropy on clipped losses. The clipping threshold starts at 0 and follows
the observed losses, so that the learner is scale-free. With ``profile="paper"`` this is Algorithm
1; the default profile has the clipping and the constants of docs/theory/range-clipping.md,
Theorem 1, which work better. `act` is line 4; `update` is lines 5 to 8 of round t, then lines 2 and
3 of round t + 1.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from unbounded.core import clipping
from unbounded.core.arrays import Count, Round
from unbounded.core.clipping import EMPTY, NONE, Window, clip, unit_factor
from unbounded.core.simplex import tsallis_arms
from unbounded.core.simplex.tsallis_arms import Arms
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_constant, checked_count, checked_option


class Constants(NamedTuple):
    """Hold what a profile sets; every field is also an argument of `SCB`."""

    clip: Literal["range", "scale", "none"]
    rate: float  # c
    mixing: float  # a


# Theorem 1 of docs/theory/range-clipping.md has 2 a + 1/a + 4/c + c before sqrt(n T): 7 for these,
# and 8 for a = c = 1. Half the exploration makes the worst cases milder.
PRACTICAL = Constants("range", 2.0, 0.5)
PAPER = Constants("scale", 1.0, 1.0)
PROFILES = {"practical": PRACTICAL, "paper": PAPER}


class Params(NamedTuple):
    n: int
    clip: int  # SCALE: the paper's; RANGE: docs/theory/range-clipping.md; NONE: an ablation
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    mixing: float  # a: multiplies beta_t; the paper has 1
    rate: float  # c: eta_t = c / (W sqrt(t)); the paper has 1


class State(NamedTuple):
    t: Round
    clipped: Count
    window: Window  # what losses are clipped to; its width is 2 C_t, or R_t, the observed range
    arms: Arms  # L_hat, in units of 2^e, and q_t

    def check(self, params: Params) -> None:
        self.arms.check_for(self.t)


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform q_1 (the input of Alg. 1; eta_1 = inf is erratum E4)."""
    return State(1, 0, EMPTY, tsallis_arms.new_arms(params.n, growing=params.clip != NONE))


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from q_t; the ask_info is q_{t,k}."""
    arm, q_k = tsallis_arms.draw(state.arms, word)  # line 4
    return arm, q_k, q_k


@kernel
def update(params: Params, state: State, arm: int, q_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``q_k``."""
    n, t = params.n, state.t + 1  # t + 1 in the paper: of the next round
    # Lines 5 and 7: l_plus = l^c + C_t by the window of round t, then the window of round t + 1.
    l_plus, clipped, window = clip(state.window, params.clip, params.rule, loss)
    arms = tsallis_arms.add(state.arms, arm, l_plus / q_k)  # line 6, in units of 2^e
    if n > 1 and window.W > 0.0:  # until then q stays uniform: errata E4, E8
        arms = tsallis_arms.rescale(arms, unit_factor(state.window, window))  # to the new 2^e
        eta = params.rate / (window.W * math.sqrt(t))  # line 8: W is 2 C_{t+1}; units of 2^-e
        beta = params.mixing * n / (2.0 * n + math.sqrt(n * t))  # line 8
        arms = tsallis_arms.solve(arms, eta, beta)  # lines 2 and 3, for the next round
    return State(t, state.clipped + clipped, window, arms)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t, or with range clipping the observed range."""
    return clipping.scale_of(state.window, params.clip)


def scale_bound(n: int, T: int) -> float:
    """Bound the paper's SCB, in units of l_inf: docs/theory/range-clipping.md, section 7."""
    return 27.0 * math.sqrt(n * T) + 2.0 * n


def range_bound(
    n: int, T: int, rate: float = PRACTICAL.rate, mixing: float = PRACTICAL.mixing
) -> float:
    """Bound range clipping, in units of max - min: docs/theory/range-clipping.md, Theorem 1."""
    x = math.sqrt(T / n)
    growth = rate if rate <= 2.0 else rate * (1.0 + math.log1p(x) / x)
    exploring = 2.0 * mixing + 1.0 / mixing
    return (exploring + 4.0 / rate + growth) * math.sqrt(n * T) + 2.0 * n / mixing + 1.0


class SCB(Learner):
    """Scale Clipping Bound: the minimax-optimal bandit for losses of unknown scale.

    Expected regret is at most (max - min) (7 sqrt(n T) + 4 n + 1) for losses of any size and
    offset; neither they nor the number of rounds T need be known. Where a lower bound on the losses
    is known (costs, seconds, errors), `CostSCB` is better.

    Parameters
    ----------
    profile : {"practical", "paper"}
        Defaults of ``clip``, ``rate`` and ``mixing``: "range", 2 and 1/2, or what Chen & Zhang
        published, "scale", 1 and 1, with their theorem: O(l_inf (n + sqrt(n T))) for the largest
        absolute loss l_inf.
    clip : {"range", "scale", "none"}
        "range" clips to the observed range, so that losses in [1000, 1001] are learned as fast as
        losses in [0, 1]. "scale" is the paper's: losses are clipped to [-C, C], where C is between
        the largest absolute loss observed and twice that. "none" is an ablation: C grows as in the
        paper and sets the learning rate, but no loss is clipped, so that estimates are unbiased and
        unbounded, and may be negative.
    threshold : {"lazy", "largest"}
        Not with ``clip="range"``. Whether C changes only when a loss exceeds it, as in the paper's
        pseudo-code, or is always twice the largest absolute loss, as in its text (erratum E1).
    rate : float
        Multiplies the paper's learning rate.
    mixing : float
        Multiplies the paper's share of uniform exploration, from 0 (none) to 1.
    ablation : bool
        Permit ``clip="none"``, and ``clip="range"`` with ``mixing=0``, which can fail.

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

    spec = BanditSpec.of(
        __name__,
        reference="Chen & Zhang 2024, Algorithm 1",
        guarantee="expected regret (max - min) (7 sqrt(n T) + 4 n + 1), "
        "docs/theory/range-clipping.md; with profile='paper' O(l_inf (n + sqrt(n T))), Theorem 1",
        scale_free=True,
        bound=range_bound,
        examples=(
            {},
            {"mixing": 1.0},
            {"profile": "paper"},
            {"profile": "paper", "clip": "range"},
            {"profile": "paper", "threshold": "largest"},
            {"profile": "paper", "mixing": 0.0},
            {"profile": "paper", "clip": "none", "ablation": True},
        ),
    )

    _remedy = "clip those that say nothing about their arm before you tell them"
    _instead = "CostSCB", "outliers='sqrt'"

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        profile: Literal["practical", "paper"] = "practical",
        clip: Literal["range", "scale", "none"] | None = None,
        threshold: Literal["lazy", "largest"] = "lazy",
        rate: float | None = None,
        mixing: float | None = None,
        ablation: bool = False,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        checked_option("profile", profile, tuple(PROFILES))
        usual = PROFILES[profile]
        clip = usual.clip if clip is None else clip
        mixing = usual.mixing if mixing is None else mixing
        code, rule, mixing = clipping.checked_clipping(clip, threshold, mixing, ablation)
        rate = checked_constant("rate", usual.rate if rate is None else rate)
        chosen = {"clip": clip, "rate": rate, "mixing": mixing}
        self._start(Params(n_arms, code, rule, mixing, rate), seed, chosen)

    def _tenfold(self) -> tuple[float, float]:
        low, high = self._scalar("window.low"), self._scalar("window.high")
        return clipping.tenfold(low, high, self.scale, self._params.clip)
