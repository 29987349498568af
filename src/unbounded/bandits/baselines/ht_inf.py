"""HTINF: bandit for heavy-tailed losses of known tail (Huang, Dai & Huang 2022, Algorithm 1).

FTRL with Psi = -a sum p^(1/a) and 1 / eta_t = sigma t^(1/a), for losses whose a-th moment is at
most sigma^a, 1 < a <= 2. A loss above r_t = theta_a p_k^(1/a) / eta_t is skipped, where theta_a is
the smaller of 1 - 2^(-(a - 1)/(2 a - 1)) and (2 - 2/a)^(1/(2 - a)). Reconstructed from
secondary sources, not checked against the paper's text.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from unbounded.core.arrays import Count, Round, Values, Vector
from unbounded.core.simplex.ftrl import power, power_entropy
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_count, checked_within


class Params(NamedTuple):
    n: int
    a: float
    sigma: float
    theta: float


class State(NamedTuple):
    t: Round
    clipped: Count  # skipped
    L_hat: Annotated[Vector, Values(-1e300, 1e300)]  # (n,) cumulative loss estimates
    law: Law  # p_t


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    t, L_hat, order = state.t, state.L_hat, 1.0 / params.a
    skipped = abs(loss) > params.theta * params.sigma * power(t * p_k, order)  # r_t
    if not skipped:
        L_hat[arm] += loss / p_k
    if params.n > 1:
        eta = 1.0 / (params.sigma * power(t + 1, order))
        power_entropy(L_hat, eta, params.a, state.law)
    return State(t + 1, state.clipped + skipped, L_hat, state.law)


@kernel
def scale(params: Params, state: State) -> float:
    """Return sigma."""
    return params.sigma


def theta_of(a: float) -> float:
    """Return theta_a; as a tends to 2 its second expression tends to exp(-1/2), the larger one."""
    first = 1.0 - 2.0 ** (-(a - 1.0) / (2.0 * a - 1.0))
    return first if a == 2.0 else min(first, (2.0 - 2.0 / a) ** (1.0 / (2.0 - a)))


class HTINF(Learner):
    """Tsallis-entropy bandit for heavy-tailed losses of known tail.

    Parameters
    ----------
    sigma : float
        The losses' moment of that order is at most sigma^order.
    order : float
        Of the moment, above 1 and at most 2.

    Notes
    -----
    ``clipped`` counts the losses that were left out of the estimates.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Huang, Dai & Huang 2022, Algorithm 1 (from secondary sources)",
        guarantee="expected regret of order sigma n^(1 - 1/a) T^(1/a) where losses have an a-th "
        "moment of at most sigma^a, and log T for independent draws, if truncated non-negative",
        largest_loss=1e290,
        examples=({}, {"sigma": 0.5, "order": 1.5}),
    )

    def __init__(
        self, n_arms: NumberOrNames, *, sigma: float = 1.0, order: float = 2.0, seed: Seed = None
    ) -> None:
        n_arms = checked_count("n_arms", n_arms)
        sigma = checked_within("sigma", sigma, 1e-150, 1e150)
        order = checked_within("order", order, math.nextafter(1.0, 2.0), 2.0)
        self._start(Params(n_arms, order, sigma, theta_of(order)), seed)
