"""Exp3-IX for losses in a known range (Neu 2015).

Exp3 whose estimator divides by p + gamma: a small bias towards optimism (implicit exploration)
that makes the regret bound hold with high probability. gamma = eta / 2 in each of three tunings:

- anytime, eta_t = sqrt(ln n / (n t));
- T rounds, eta = sqrt(2 ln n / (n T)): regret at most
  2 sqrt(2 n T ln n) + (sqrt(2 n T / ln n) + 1) ln(2 / delta) for every delta at once;
- T rounds and one delta, eta = sqrt((ln n + ln((n + 1) / delta)) / (n T)) (Lattimore &
  Szepesvari 2020, Theorem 12.1, reconstructed).

The bounds are reconstructed, not checked against Neu's text. A derivation of our own gives the same
leading terms, and half of those in ln(2 / delta).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsIndex

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex import shannon_arms, sleeping
from unbounded.core.simplex.shannon_arms import Arms
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import ArgumentTypeError, checked_constant, checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float
    eta: float  # of a known number of rounds; 0: anytime


class State(NamedTuple):
    t: Round
    clipped: Count
    arms: Arms  # cumulative loss estimates, and p_t


@kernel
def _eta(params: Params, t: int) -> float:
    return params.eta if params.eta > 0.0 else math.sqrt(math.log(params.n) / (params.n * t))


@kernel
def act(params: Params, state: State, word: int) -> tuple[int, float, float]:
    """Draw from p_t; the ask_info is p_{t,k} + gamma_t, gamma_t = eta_t / 2."""
    arm, p_k = shannon_arms.draw(state.arms, word)
    return arm, p_k, p_k + 0.5 * _eta(params, state.t)


@kernel
def update(params: Params, state: State, arm: int, p_k_gamma: float, loss: float) -> State:
    """Learn from the loss of ``arm``; ``p_k_gamma`` is p_{t,k} + gamma_t of its ask."""
    return learned(params, state, arm, p_k_gamma, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those are charged what was paid, as in
    docs/theory/sleeping.md."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(
    params: Params, state: State, arm: int, p_k_gamma: float, note: Any, loss: float
) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    t, arms = state.t + 1, state.arms
    x, clipped = to_unit(loss, params.low, params.high)
    shannon_arms.add(arms, arm, x / p_k_gamma)
    if note is not None:
        shannon_arms.charge(arms, note, x)
    shannon_arms.solve(arms, _eta(params, t), 0.0)
    return State(t, state.clipped + clipped, arms)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw from p_t on the available arms; the ask_info is its probability + gamma_t."""
    shannon_arms.fill(state.arms, note[: params.n])
    arm, q_k = sleeping.draw_noted(side, note, word)
    return arm, q_k, q_k + 0.5 * _eta(params, state.t)


class Exp3IX(Learner):
    """Exponential weights with implicit exploration, for losses in a known range.

    Parameters
    ----------
    rounds : int, optional
        How many rounds will be played. Without it the rate falls with time and any number will do.
    delta : float, optional
        With ``rounds``: tunes the rate for regret that holds with probability 1 - delta for this
        delta. Without it one run serves all delta.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Neu 2015, Algorithm 1 with anytime rates",
        guarantee="regret 4 sqrt(n T ln n) + (2 sqrt(n T / ln n) + 1) ln(2/delta) with probability "
        "1 - delta, for losses in a known range of width 1",
        examples=({}, {"rounds": 2000}, {"rounds": 2000, "delta": 0.05}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex | None = None,
        delta: float | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        rounds = None if rounds is None else checked_count("rounds", rounds)
        loss_range = checked_range("loss_range", loss_range)
        iota = 2.0 * math.log(n_arms)
        if delta is not None:
            delta = checked_constant("delta", delta, below=1.0)
            if rounds is None:
                raise ArgumentTypeError("delta", "needs rounds too: pass rounds=, or leave it out")
            iota = math.log(n_arms) + math.log((n_arms + 1) / delta)
        eta = 0.0 if rounds is None else math.sqrt(iota / (n_arms * rounds))
        self._start(Params(n_arms, *loss_range, eta), seed)
