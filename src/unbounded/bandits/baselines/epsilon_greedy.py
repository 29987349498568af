"""Epsilon-greedy: the smallest mean loss so far, and uniform exploration that fades.

Scale-free without trying, and hard to beat where the losses are independent draws; no guarantee
against an adversary. epsilon_t = min(1, (n / t)^(1/3)), the rate of explore-then-commit. Arms whose
means tie are told apart by rounding, which factors other than powers of two, and shifts, change.
With ``step``, means are exponential averages: the last loss of an arm has at least that weight.
"""

from __future__ import annotations

from typing import NamedTuple

from unbounded.core.arrays import Count, CountsBelowT, Round, Vector
from unbounded.core.simplex.sampling import Law, blend
from unbounded.core.simplex.sleeping import draw_noted
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.learners.spec import SideAsk
from unbounded.validation import checked_count, checked_part


class Params(NamedTuple):
    n: int
    epsilon: float  # 0: the fading rate
    step: float  # the least weight of a new loss; 0: means over all losses


class State(NamedTuple):
    t: Round
    clipped: Count  # nothing is ever clipped
    pulls: CountsBelowT  # (n,)
    means: Vector  # (n,) of the losses
    law: Law  # q_t


@kernel
def update(params: Params, state: State, arm: int, ask_info: float, loss: float) -> State:
    """Learn from the loss of ``arm``."""
    n, t, pulls, means, q = params.n, state.t + 1, state.pulls, state.means, state.law.q
    pulls[arm] += 1.0
    weight = max(1.0 / pulls[arm], params.step)
    means[arm] = (1.0 - weight) * means[arm] + weight * loss  # loss - mean could overflow
    best = 0  # the smallest mean among the arms that were pulled
    unpulled = 0
    for k in range(n):
        if pulls[k] == 0.0:
            unpulled += 1
        elif pulls[best] == 0.0 or means[k] < means[best]:
            best = k
    if unpulled > 0:  # every arm once, in random order
        for k in range(n):
            q[k] = 1.0 if pulls[k] == 0.0 else 0.0
        blend(state.law, 1.0 / unpulled, 0.0)
    else:
        epsilon = params.epsilon if params.epsilon > 0.0 else min(1.0, (n / t) ** (1.0 / 3.0))
        q[:] = 0.0
        q[best] = 1.0
        blend(state.law, 1.0 - epsilon, epsilon / n)
    return State(t, 0, pulls, means, state.law)


@kernel
def distribution_with(params: Params, state: State, side: Vector, q: Vector) -> None:
    """Fill ``q``: the least mean of the available arms, and exploration of these."""
    n, pulls, means = params.n, state.pulls, state.means
    best, some, unpulled = -1, 0, 0
    for k in range(n):
        if side[k] != 0.0:
            some += 1
            if pulls[k] == 0.0:
                unpulled += 1
            elif best < 0 or means[k] < means[best]:
                best = k
    epsilon = params.epsilon if params.epsilon > 0.0 else min(1.0, (n / state.t) ** (1.0 / 3.0))
    for k in range(n):
        q[k] = 0.0
        if side[k] != 0.0 and unpulled > 0:  # every arm once
            q[k] = 1.0 / unpulled if pulls[k] == 0.0 else 0.0
        elif side[k] != 0.0:
            q[k] = epsilon / some + (1.0 - epsilon if k == best else 0.0)


@kernel
def act_with(
    params: Params, state: State, word: int, side: Vector, note: Vector
) -> tuple[int, float, float]:
    """Draw an available arm; the ask_info is its probability."""
    distribution_with(params, state, side, note[: params.n])
    arm, q_k = draw_noted(side, note, word)
    return arm, q_k, q_k


@kernel
def update_with(params: Params, state: State, arm: int, ask: SideAsk, loss: float) -> State:
    """Learn from the loss of ``arm`` while others slept: those stay as they are."""
    return update(params, state, arm, ask.info, loss)


class EpsilonGreedy(Learner):
    """Play the arm of smallest mean loss, and now and then any arm.

    Parameters
    ----------
    epsilon : float, optional
        The share of uniform exploration; by default it fades as (n / t)^(1/3).
    step : float, optional
        For losses whose means change: the weight that the last loss of an arm has in its mean, once
        it was pulled 1 / step times. Set ``epsilon`` with it, because exploration that fades finds
        no arm that has become better.
    """

    spec = BanditSpec.of(
        __name__,
        reference="folklore; Sutton & Barto, sections 2.2 and 2.5",
        guarantee="none against adversaries; O(n^(1/3) T^(2/3)) for independent losses, without "
        "epsilon and step",
        scale_free=True,
        translation_invariant=True,
        examples=({}, {"epsilon": 0.1}, {"epsilon": 0.1, "step": 0.05}),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        epsilon: float | None = None,
        step: float | None = None,
        seed: Seed = None,
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        epsilon = None if epsilon is None else checked_part("epsilon", epsilon)
        step = None if step is None else checked_part("step", step)
        self._start(Params(n_arms, epsilon or 0.0, step or 0.0), seed)
