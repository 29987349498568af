"""Exp3.P: Exp3 with optimistic gain estimates, for regret bounds with high probability.

Three published forms, all with p = (1 - gamma) softmax(eta G) + gamma / n for gains g in [0, 1]:

- "auer" (Auer, Cesa-Bianchi, Freund & Schapire 2002, section 6): every arm's estimate is raised,
  G_i += (g 1{i = k} + b) / p_i. Reconstructed; its initial weight is the same for all arms
  and cancels.
- "bubeck" (Bubeck & Cesa-Bianchi 2012, figure 3.1 and theorem 3.2): the same update with better
  constants, from secondary sources.
- "audibert" (Audibert & Bubeck 2010, theorem 12): G_k += -ln(1 - b g / p_k) / b. One tuning
  serves every delta and every adversary. As read in the paper.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, SupportsIndex

from unbounded.core.arrays import Count, Round, Vector
from unbounded.core.clipping import to_unit
from unbounded.core.simplex.ftrl import shannon_mixed
from unbounded.core.simplex.sampling import Law
from unbounded.jit.kernel import kernel
from unbounded.learners.bandit import BanditSpec, Learner, NumberOrNames, Seed
from unbounded.validation import checked_constant, checked_count, checked_option, checked_range

_FORMS = ("auer", "bubeck", "audibert")


class Params(NamedTuple):
    n: int
    low: float
    high: float
    eta: float
    gamma: float
    b: float  # of the estimators above
    logarithmic: bool  # the estimator of "audibert"


class State(NamedTuple):
    t: Round
    clipped: Count
    L_hat: Vector  # (n,) minus the cumulative gain estimates
    law: Law  # p_t


@kernel
def update(params: Params, state: State, arm: int, p_k: float, loss: float) -> State:
    """Learn from the loss of ``arm``, which was drawn with probability ``p_k``."""
    x, clipped = to_unit(loss, params.low, params.high)  # the gain is g = 1 - x; L_hat is -G
    L_hat, b = state.L_hat, params.b
    if params.n > 1:
        if params.logarithmic:
            p_k = max(p_k, params.gamma / params.n)  # less only in the log of another policy
            L_hat[arm] += math.log1p(-b * (1.0 - x) / p_k) / b
        else:
            for i in range(params.n):
                L_hat[i] -= b / state.law.q[i]
            L_hat[arm] -= (1.0 - x) / p_k
        shannon_mixed(L_hat, params.eta, params.gamma, state.law)
    return State(state.t + 1, state.clipped + clipped, L_hat, state.law)


def tuning(form: str, n: int, T: int, delta: float) -> tuple[float, float, float]:
    """Return eta, gamma and b of a form."""
    if n == 1:
        return 1.0, 1.0, 1.0
    if form == "auer":
        gamma = min(0.6, 2.0 * math.sqrt(0.6 * n * math.log(n) / T))
        alpha = 2.0 * math.sqrt(math.log(n * T / delta))
        return gamma / (3.0 * n), gamma, alpha / math.sqrt(n * T)
    if form == "bubeck":
        eta = 0.95 * math.sqrt(math.log(n) / (n * T))
        gamma = min(1.0, 1.05 * math.sqrt(n * math.log(n) / T))
        return eta, gamma, min(1.0, math.sqrt(math.log(n / delta) / (n * T)))
    iota = math.log(3 * n)
    gamma = min(2.0 / 3.0, 2.0 * math.sqrt(n * iota / T))
    b = math.sqrt(iota / (2.0 * n * T))
    # b / p stays below 1/2 as it is, unless gamma is at its cap: then T < 9 n ln(3 n), and the
    # theorem's bound exceeds T.
    return 2.0 * math.sqrt(iota / (n * T)), gamma, min(b, 0.5 * gamma / n)


class Exp3P(Learner):
    """Exp3 with regret bounded with high probability, for losses in a known range.

    Parameters
    ----------
    delta : float
        The bound is to hold with probability 1 - delta; not used by "audibert".
    form : {"bubeck", "auer", "audibert"}
        Which publication to follow.
    """

    spec = BanditSpec.of(
        __name__,
        reference="Auer et al. 2002, section 6; Bubeck & Cesa-Bianchi 2012, figure 3.1; "
        "Audibert & Bubeck 2010, theorem 12",
        guarantee='regret 5.15 sqrt(n T ln(n / delta)) with probability 1 - delta (form "bubeck"), '
        "for losses in a known range of width 1",
        delayed=False,
        examples=tuple({"rounds": 2000, "form": form} for form in _FORMS),
    )

    def __init__(
        self,
        n_arms: NumberOrNames,
        *,
        rounds: SupportsIndex,
        delta: float = 0.05,
        form: Literal["bubeck", "auer", "audibert"] = "bubeck",
        loss_range: tuple[float, float] = (0.0, 1.0),
        seed: Seed = None,
    ) -> None:
        n_arms, rounds = checked_count("n_arms", n_arms), checked_count("rounds", rounds)
        delta = checked_constant("delta", delta, below=1.0)
        loss_range = checked_range("loss_range", loss_range)
        logarithmic = checked_option("form", form, _FORMS) == 2
        eta, gamma, b = tuning(form, n_arms, rounds, delta)
        self._start(Params(n_arms, *loss_range, eta, gamma, b, logarithmic), seed)
