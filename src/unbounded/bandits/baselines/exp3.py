"""Exp3 for losses in a known range (Auer et al. 2002; this form: Bubeck & Cesa-Bianchi 2012).

Exponential weights on importance-weighted losses. With the anytime rate
eta_t = sqrt(ln n / (n t)) regret is at most 2 sqrt(n T ln n), and with eta = sqrt(2 ln n / (n T))
for a number of rounds T that is known at most sqrt(2 n T ln n) (there, Theorem 3.1). Auer's
original form, for gains and with explicit exploration, is in exp3_auer.py. Both bounds are
re-derived, and not checked against the survey's text.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsIndex

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count, checked_range


class Params(NamedTuple):
    n: int
    low: float
    high: float
    eta: float  # of a known number of rounds; 0: anytime


class State(NamedTuple):
    t: Round
    clipped: Count
    L_hat: Vector  # (n,) cumulative loss estimates
    law: Law  # p_t


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
    n, t, L_hat = params.n, state.t + 1, state.L_hat
    x, clipped = to_unit(loss, params.low, params.high)
    L_hat[arm] += x / p_k
    if note is not None:
        for i in range(n):
            L_hat[i] += x * note[i]
    eta = params.eta if params.eta > 0.0 else math.sqrt(math.log(n) / (n * t))
    shannon_mixed(L_hat, eta, 0.0, state.law)
    return State(t, state.clipped + clipped, L_hat, state.law)


def bound(n: int, T: int) -> float:
    """Bubeck & Cesa-Bianchi 2012, Theorem 3.1, for losses in [0, 1]."""
    return 2.0 * math.sqrt(n * T * math.log(n))


class Exp3(Learner):
    """Exponential weights for losses in a known range.

    Parameters
    ----------
    rounds : int, optional
        How many rounds will be played. Without it the rate falls with time and any number will do.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Auer, Cesa-Bianchi, Freund & Schapire 2002; anytime rate of Bubeck & "
        "Cesa-Bianchi 2012",
        guarantee="expected regret 2 sqrt(n T ln n) for losses in a known range of width 1",
        bound=bound,
        examples=({}, {"rounds": 2000}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        rounds = None if rounds is None else checked_count("rounds", rounds)
        loss_range = checked_range("loss_range", loss_range)
        eta = 0.0 if rounds is None else math.sqrt(2.0 * math.log(n_arms) / (n_arms * rounds))
        self._start(Params(n_arms, *loss_range, eta), seed)
