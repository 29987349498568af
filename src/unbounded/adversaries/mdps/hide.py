"""An adversary that hides its best losses where the learner hardly looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.adversaries.mdps._losses import mix
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, OWN, SCALE, MDPAdversary
from unbounded.validation import checked_positive


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    mix(params[SCALE], 0.5, 0.0, False, params[KEY], t, out)
    least = 0
    for p in range(1, out.size):
        if params[OWN + 1 + p] > 0.0 and (least == 0 or q[p] < q[least]):
            least = p
    out[least] = -params[OWN] * params[SCALE]


class Hide(MDPAdversary):
    """As `Stochastic`, with a negative loss for the pair of least occupancy; sees that measure.

    Parameters
    ----------
    height : float
        That loss, as an absolute value.
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Hide
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Hide(height=4), 100, seed=1)
    >>> float(result.low.min())
    -4.0
    """

    fill = _fill
    looks = True

    def __init__(self, height: float = 8.0, *, scale: float = 1.0) -> None:
        self.height = checked_positive("height", height)
        super().__init__(scale=scale)

    @property
    def largest(self) -> float:
        return max(1.0, self.height)

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        counts = np.ones(mdp.layers.n_pairs)
        counts[mdp.layers.free] = 0.0
        return np.concatenate([(self.height,), counts])
