"""An adversary that punishes whatever the learner likes best."""

from __future__ import annotations

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, horizon
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import SCALE, MDPAdversary


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    out[0] = 0.0
    for h in range(1, horizon(lay) + 1):
        A = lay[ACTIONS, h]
        for s in range(lay[SIZE, h]):
            p = lay[PAIR, h] + s * A
            likeliest = 0
            for a in range(1, A):
                if q[p + a] > q[p + likeliest]:
                    likeliest = a
            for a in range(A):
                out[p + a] = params[SCALE] if a == likeliest else 0.0


class Punish(MDPAdversary):
    """Loss 1 for the likeliest action of each state, 0 for all others; sees the occupancy measure.

    Parameters
    ----------
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Punish
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Punish(), 100, seed=1)
    >>> float(result.low.min()), float(result.high.max())
    (0.0, 1.0)
    """

    fill = _fill
    looks = True
    draws = False
