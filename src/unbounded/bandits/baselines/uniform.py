"""The learner that learns nothing: what every other one must beat."""

from __future__ import annotations

from typing import NamedTuple

from unbounded.core.arrays import Count, Round
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count


class Params(NamedTuple):
    n: int


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    law: Law  # q


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Count the round."""
    return State(state.t + 1, 0, state.law)


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


class Uniform(Learner):
    """Every arm with equal probability, whatever the losses.

    Examples
    --------
    >>> from unbounded import Uniform
    >>> Uniform(n_arms=4, seed=0).ask().probability
    0.25
    """

    spec = BanditSpec.of(
        __name__, reference="none", guarantee="none", scale_free=True, translation_invariant=True
    )

    def __init__(self, n_arms: NumberOrNames, *, seed: Seed = None) -> None:
        n_arms = checked_count("n_arms", n_arms)
        self._start(Params(n_arms), seed)
