"""Tsallis-INF with importance weighting (Zimmert & Seldin 2021, Algorithm 1).

FTRL with the 1/2-Tsallis entropy for losses in a known range: minimax-optimal against
adversaries and log-optimal against stochastic losses. Told the true range, it is the oracle
that SCB is compared with. Algorithm and bound as read in the paper (JMLR 22(28)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex import tsallis_arms
from unbounded.core.simplex.tsallis_arms import Arms
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
    arms: Arms  # cumulative loss estimates, and p_t

    def check(self, params: Params) -> None:
        self.arms.check_for(self.t)


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    return learned(params, state, arm, p_k, None, loss)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those are charged what was paid, as in
    docs/theory/sleeping.md."""
    return learned(params, state, arm, ask.info, ask.note, loss)


@kernel
def learned(params: Params, state: State, arm: int, p_k: float, note: Any, loss: float) -> State:
    """Return the state after a loss; without sleepers ``note`` is None."""
    t = state.t + 1
    x, clipped = to_unit(loss, params.low, params.high)
    arms = state.arms
    if arm >= 0:  # else the arm was retired since
        arms = tsallis_arms.add(arms, arm, x / p_k)
    if note is not None:
        arms = tsallis_arms.charge(arms, note, x)
    if params.n > 1:
        arms = tsallis_arms.solve(arms, 2.0 / math.sqrt(t), 0.0)
    return State(t, state.clipped + clipped, arms)


def with_arms(old_params: Params, state: State, params: Params, keep: Vector) -> State:
    """Keep the estimates when arms come or go."""
    eta = 2.0 / math.sqrt(state.t) if state.t > 1 else 0.0
    return state._replace(arms=tsallis_arms.with_arms(state.arms, keep, eta))


def bound(n: int, T: int) -> float:
    """Zimmert & Seldin 2021, Theorem 1, for losses in [0, 1]."""
    return 4.0 * math.sqrt(n * T) + 1.0


class TsallisINF(Learner):
    """Minimax-optimal bandit for losses in a known range."""

    spec = BanditSpec.of(
        __name__,
        reference="Zimmert & Seldin 2021, Algorithm 1 (importance-weighted)",
        guarantee="expected regret 4 sqrt(n T) + 1 for losses in a known range of width 1",
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
