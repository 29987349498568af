"""SCB-IX: scale-free bandit with a high-probability bound (Chen & Zhang 2024, Algorithm 2).

SCB with the Shannon entropy, and with implicit exploration (Neu 2015) in the estimator, which
makes the regret bound hold with high probability and not only in expectation (Theorem 2). With
``profile="paper"`` this is Algorithm 2; the default profile has range clipping and half the
exploration (docs/theory/range-clipping.md, Theorem 2). The paper's proof needs beta_t <= 1/2; its
own schedule, as printed, exceeds that for t < 3 n ln n: the proof covers ``beta_cap=0.5`` only
(erratum E9). `act` is line 4, with gamma_t of line 8; `update` is lines 5 to 8 of round t, then
lines 2 and 3 of round t + 1.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from unbounded.core import clipping
from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import EMPTY, NONE, Window, clip, unit_factor
from unbounded.core.simplex import shannon_arms, sleeping
from unbounded.core.simplex.shannon_arms import Arms
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_constant, checked_count, checked_option, checked_part


class Constants(NamedTuple):
    """Hold what a profile sets; every field is also an argument of `SCBIX`."""

    clip: Literal["range", "scale", "none"]
    mixing: float  # a


PRACTICAL = Constants("range", 0.5)
PAPER = Constants("scale", 1.0)
PROFILES = {"practical": PRACTICAL, "paper": PAPER}


class Params(NamedTuple):
    n: int
    clip: int  # SCALE: the paper's; RANGE: docs/theory/range-clipping.md; NONE: an ablation
    rule: int  # LAZY: the pseudo-code's threshold; LARGEST: the prose's (erratum E1)
    mixing: float  # a: multiplies beta_t after the cap; the paper has 1
    iota: float  # the paper's ln n; ln(n / delta) where the learner is given delta
    beta_cap: float  # 1: as printed; 1/2: what the proof needs (erratum E9)


class State(NamedTuple):
    t: Round
    clipped: Count
    window: Window  # what losses are clipped to; its width is 2 C_t, or R_t, the observed range
    arms: Arms  # L_hat, in units of 2^e, and q_t


def init(params: Params) -> State:
    """Start with C_1 = 0 and uniform q_1 (the input of Alg. 2; eta_1 = inf is erratum E4)."""
    return State(1, 0, EMPTY, shannon_arms.new_arms(params.n, growing=params.clip != NONE))


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw k_t from q_t; the ask_info is q_{t,k} + gamma_t."""
    # Line 8: eta_t C_t / 2, in which C_t cancels; for t = 1 too (erratum E7).
    gamma = 0.5 * math.sqrt(params.iota / (params.n * state.t))
    arm, q_k = shannon_arms.draw(state.arms, word)  # line 4
    return arm, q_k, q_k + gamma


@kernel
def update(params: Params, state: State, arm: int, q_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``q_k_gamma`` is q_{t,k} + gamma_t of its ask."""
    return learned(params, state, arm, q_k_gamma, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those are charged what was paid, as in
    docs/theory/sleeping.md (no regret bound is known)."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, q_k_gamma: float, note: Any, loss: float
) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    n, t, arms = params.n, state.t + 1, state.arms  # t + 1 in the paper: of the next round
    # Lines 5 and 7: l_plus = l^c + C_t by the window of round t, then the window of round t + 1.
    l_plus, clipped, window = clip(state.window, params.clip, params.rule, loss)
    if arm >= 0:  # else the arm was retired since
        shannon_arms.add(arms, arm, l_plus / q_k_gamma)  # line 6, in units of 2^e
    if note is not None:
        shannon_arms.charge(arms, note, l_plus)
    if n > 1 and window.W > 0.0:  # until then q stays uniform: errata E4, E8
        shannon_arms.rescale(arms, unit_factor(state.window, window))  # to the new 2^e
        eta, beta = rates(params, t, window.W)
        shannon_arms.solve(arms, eta, beta)  # lines 2 and 3, for the next round
    return State(t, state.clipped + clipped, window, arms)


@kernel
def rates(params: Params, t: int, W: float) -> tuple[float, float]:
    """Return eta_t and beta_t of line 8."""
    n = params.n
    # 1 / C_t is 2 / W, in units of 2^-e; beta as printed, capped (erratum E9).
    eta = 2.0 / W * math.sqrt(params.iota / (n * t))
    beta = min(params.beta_cap, math.sqrt(n * params.iota / (n * params.iota + t)))
    return eta, beta * params.mixing


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw k_t from q_t on the available arms; the ask_info is its probability + gamma_t."""
    shannon_arms.fill(state.arms, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    return arm, q_k, q_k + 0.5 * math.sqrt(params.iota / (params.n * state.t))


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates and the scale when arms come or go."""
    eta, beta = 0.0, 0.0
    if params.n > 1 and state.window.W > 0.0:
        eta, beta = interpreted(rates)(params, state.t, state.window.W)
    growing = params.clip != NONE
    arms = shannon_arms.with_arms(state.arms, keep, eta, beta, growing=growing)
    return state._replace(arms=arms)


@kernel
def scale(params: Params, state: State) -> float:
    """Return C_t, or with range clipping the observed range."""
    return clipping.scale_of(state.window, params.clip)


def range_bound(n: int, T: int, delta: float, mixing: float = PRACTICAL.mixing) -> float:
    """Bound realized regret with probability 1 - delta, in units of max - min.

    For range clipping and iota = ln n: docs/theory/range-clipping.md, Theorem 2.
    """
    log_n, log_3 = math.log(n), math.log(3.0 / delta)
    kappa = 4.0 / (2.0 - mixing) + 1.0 + 2.0 * mixing  # stability, bias, mixing: times gamma_t
    reach = max(2.0 * n, math.sqrt(n * n + n * T / log_n)) / mixing  # n / beta_T
    clipping_error = 1.59 * reach * (log_3 + 1.0)
    estimates = (kappa + 1.5) * math.sqrt(n * T * log_n) + math.sqrt(n * T / log_n) * log_3
    return estimates + clipping_error + 0.5 * kappa * log_3 + 2.0


class SCBIX(Learner):
    """SCB with implicit exploration: regret bounded with high probability.

    By default with range clipping, which has a theorem of its own (docs/theory/range-clipping.md).
    Where a lower bound on the losses is known, `CostSCBIX` has a smaller regret bound; in the
    catalogue this one had less regret all the same. With ``profile="paper"`` the paper's proof
    covers ``beta_cap=0.5``, not the default (erratum E9).

    Parameters
    ----------
    profile : {"practical", "paper"}
        Defaults of ``clip`` and ``mixing``: "range" and 1/2, or what Chen & Zhang published,
        "scale" and 1.
    clip, threshold, mixing, ablation : see `SCB`
    delta : float, optional
        Tunes the rates for regret that holds with probability 1 - delta for this delta. Without
        it, as in the paper's algorithm, one run serves all delta.
    beta_cap : float, optional
        The largest share of uniform exploration. By default there is no cap with
        ``clip="scale"``, as printed in the paper, and 1/2 with ``clip="range"``, which the proofs
        need (erratum E9). ``mixing`` multiplies what it leaves.

    Examples
    --------
    >>> from unbounded import SCBIX
    >>> learner = SCBIX(n_arms=3, seed=0)
    >>> for _ in range(1000):
    ...     choice = learner.ask()
    ...     learner.tell(choice, reward=[0.001, 0.003, 0.002][choice])
    >>> int(learner.probabilities().argmax())
    1
    """

    spec = BanditSpec.of(
        __name__,
        reference="Chen & Zhang 2024, Algorithm 2",
        guarantee="regret O((max - min) (sqrt(n T ln n) + sqrt((n^2 + n T) / ln n) ln(1/delta))) "
        "with probability 1 - delta, docs/theory/range-clipping.md; with profile='paper' l_inf for "
        "max - min, Theorem 2",
        scale_free=True,
        examples=(
            {},
            {"mixing": 1.0},
            {"profile": "paper"},
            {"profile": "paper", "beta_cap": 0.5, "delta": 0.01},
            {"profile": "paper", "threshold": "largest"},
            {"profile": "paper", "mixing": 0.0},
            {"profile": "paper", "clip": "none", "ablation": True},
        ),
    )

    _remedy = "clip those that say nothing about their arm before you tell them"
    _instead = "CostSCBIX", "outliers=k"

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        profile: Literal["practical", "paper"] = "practical",
        clip: Literal["range", "scale", "none"] | None = None,
        threshold: Literal["lazy", "largest"] = "lazy",
        delta: float | None = None,
        beta_cap: float | None = None,
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
        iota = math.log(n_arms)
        if delta is not None:
            delta = checked_constant("delta", delta, below=1.0)
            iota -= math.log(delta)
        cap = 0.5 if clip == "range" else 1.0
        if beta_cap is not None:
            cap = checked_part("beta_cap", beta_cap)
        chosen = {"clip": clip, "mixing": mixing}
        self._start(Params(n_arms, code, rule, mixing, iota, cap), seed, chosen)

    def _tenfold(self) -> tuple[float, float]:
        low, high = self._scalar("window.low"), self._scalar("window.high")
        return clipping.tenfold(low, high, self.scale, self._params.clip)
