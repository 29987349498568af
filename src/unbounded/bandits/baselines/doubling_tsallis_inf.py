"""Tsallis-INF with doubling restarts: the obvious way to deal with an unknown scale.

Tsallis-INF on [-R, R], where R is twice the absolute value of the first loss other than 0; when
|loss| > R, R becomes 2 |loss| and everything that was learned is discarded. A control for SCB,
which does the same without restarts.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from unbounded.core.arrays import Count, Exponent, Mantissa, Round, Values, Vector
from unbounded.core.scaled import capped, ldexp
from unbounded.core.simplex import ftrl
from unbounded.core.simplex.ftrl import NO_ANCHOR, Anchor
from unbounded.core.simplex.sampling import Law, make_uniform, new_law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count

_MOST = 2.0**200  # of estimates of losses in [0, 1]


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: Round
    clipped: Count  # losses that exceeded R
    age: Annotated[int, Values(0, below="t")]  # rounds since the last restart
    R: Mantissa  # in units of 2^e; 0 before the first loss other than 0
    e: Exponent
    anchor: Anchor  # where the next solve starts
    L_hat: Annotated[Vector, Values(0.0, _MOST)]  # of (loss + R) / (2 R) since the restart
    law: Law  # p_t

    def check(self, params: Params) -> None:
        self.anchor.check_for(self.L_hat)


def init(params: Params) -> State:
    """Start with p_1 uniform."""
    return State(
        t=1, clipped=0, age=0, R=0.0, e=0, anchor=NO_ANCHOR,
        L_hat=np.zeros(params.n), law=new_law(params.n),
    )  # fmt: skip


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    age, R, e, anchor, L_hat = state.age, state.R, state.e, state.anchor, state.L_hat
    value = ldexp(loss, -e)
    exceeds = abs(value) > R
    if exceeds:
        R, exponent = math.frexp(abs(loss))
        e, age = exponent + 1, 0  # R = 2 |loss|; restart
        L_hat[:] = 0.0
        anchor = NO_ANCHOR
        make_uniform(state.law)
    elif R > 0.0 and params.n > 1:
        age += 1
        L_before = L_hat[arm]
        L_hat[arm] += 0.5 * (value / R + 1.0) / p_k
        eta = 2.0 / math.sqrt(age + 1)  # of the next round, counted from the restart
        if anchor.S2 > 0.0:
            anchor = ftrl.tsallis_moved(anchor, L_before, L_hat[arm])
        else:
            anchor = ftrl.tsallis_cold(L_hat, eta)
        anchor = ftrl.tsallis_mixed(L_hat, eta, anchor, 0.0, state.law)
    return State(state.t + 1, state.clipped + exceeds, age, R, e, anchor, L_hat, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return R."""
    return capped(state.R, state.e)


class DoublingTsallisINF(Learner):
    """Tsallis-INF that doubles its range and starts again when a loss exceeds it."""

    spec = BanditSpec.of(
        __name__,
        reference="folklore; Tsallis-INF of Zimmert & Seldin 2021",
        guarantee="none that holds against adversaries: it never explores an arm on purpose",
        scale_free=True,
    )

    def __init__(self, n_arms: NumberOrNames, *, seed: Seed = None) -> None:
        n_arms = checked_count("n_arms", n_arms)
        self._start(Params(n_arms), seed)
