"""An adversary that punishes whatever the learner likes best."""

from __future__ import annotations

from typing import Any

from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import Adversary


@kernel
def _fill(params: Any, state: Any, t: int, last_arm: int, q: Any, out: Any) -> None:
    likeliest = 0
    for k in range(out.size):
        out[k] = 0.0
        if q[k] > q[likeliest]:
            likeliest = k
    out[likeliest] = 1.0


class Chaser(Adversary):
    """Loss 1 for the likeliest arm, 0 for all others; sees the probabilities.

    Linear regret for any deterministic learner.

    Parameters
    ----------
    scale, shift : float
        Every loss x becomes ``scale * x + shift``.

    Examples
    --------
    >>> from unbounded import UCB1, simulate
    >>> from unbounded.adversaries import Chaser
    >>> result = simulate(UCB1(n_arms=4), Chaser(), rounds=1000, seed=0)
    >>> float(result.regret[0, -1])
    750.0
    """

    fill = _fill
    looks = True
