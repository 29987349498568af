"""Tsallis-INF with reduced-variance loss estimates (Zimmert & Seldin 2021, Algorithm 1, RV).

Tsallis-INF that estimates the deviation of a loss from B_i = 1/2 where the arm is likely enough
that this keeps the estimate from becoming too negative: the leading constant halves. As read in the
paper (JMLR 22(28)); for its bound see docs/theory/errata.md, O3.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex import tsallis_arms
from unbounded.core.simplex.ftrl import Anchor, check_start, tsallis_cold, tsallis_mixed
from unbounded.core.simplex.sampling import Law, new_law
from unbounded.jit.interpreter import interpreted
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float


class State(NamedTuple):
    t: Round
    clipped: Count
    x: float  # the normalizer of p_t: where the next solve starts
    L_hat: Vector  # (n,) cumulative loss estimates
    law: Law  # p_t

    def check(self, params: Params) -> None:
        check_start(self.x, self.L_hat, 4.0 / math.sqrt(self.t))


def init(params: Params) -> State:
    """Start with p_1 uniform."""
    L_hat = np.zeros(params.n)
    x = tsallis_cold(L_hat, 4.0).x
    return State(t=1, clipped=0, x=x, L_hat=L_hat, law=new_law(params.n))


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    return learned(params, state, arm, p_k, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those are charged what was paid, as in
    docs/theory/sleeping.md (no regret bound is known)."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(params: Params, state: State, arm: int, p_k: float, note: Any, loss: float) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    loss_01, clipped = to_unit(loss, params.low, params.high)
    t, x, L_hat, p = state.t, state.x, state.L_hat, state.law.q
    if params.n > 1:
        likely = 16.0 / t  # eta_t^2
        smallest = math.inf
        for i in range(params.n):
            B = 0.5 if p[i] >= likely else 0.0
            if note is not None and note[i] != 0.0:
                L_hat[i] += loss_01
            else:
                L_hat[i] += (loss_01 - B) / p_k + B if i == arm else B  # B is added on every arm
            smallest = min(smallest, L_hat[i])
        eta = 4.0 / math.sqrt(t + 1.0)
        # From x of round t, but below min L: no p_i exceeds 1, so x <= min L - 2 / eta.
        start = Anchor(min(x, smallest - 2.0 / eta), 0.0, 0.0, 0.0)
        x = tsallis_mixed(L_hat, eta, start, 0.0, state.law).x
    return State(t + 1, state.clipped + clipped, x, L_hat, state.law)


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates when arms come or go."""
    eta, law = 4.0 / math.sqrt(state.t), new_law(params.n)
    L_hat = np.zeros(params.n)
    x = tsallis_cold(L_hat, eta).x
    if params.n > 1 and old_params.n > 1:
        L_hat = tsallis_arms.losses_with(state.L_hat, keep, eta)
        anchor = interpreted(tsallis_cold)(L_hat, eta)
        x = interpreted(tsallis_mixed)(L_hat, eta, anchor, 0.0, law).x
    return state._replace(x=x, L_hat=L_hat, law=law)


def bound(n: int, T: int) -> float:
    """Zimmert & Seldin 2021, Theorem 1, with the 14 of its proof where the theorem prints 10."""
    return 2.0 * math.sqrt(n * T) + 14.0 * n * math.log(max(T, 2)) + 16.0


class TsallisINFRV(Learner):
    """Tsallis-INF with reduced variance, for losses in a known range."""

    spec = BanditSpec.of(
        __name__,
        reference="Zimmert & Seldin 2021, Algorithm 1 (reduced variance)",
        guarantee="expected regret 2 sqrt(n T) + 14 n ln T + 16 for losses in a known "
        "range of width 1",
        delayed=False,
        bound=bound,
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        loss_range = checked_range("loss_range", loss_range)
        self._start(Params(n_arms, *loss_range), seed)
