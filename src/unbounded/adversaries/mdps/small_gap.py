"""Random losses with small differences between the means."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.mdps._losses import mix
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, OWN, SCALE, MDPAdversary
from unbounded.validation import checked_share


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    mix(params[SCALE], params[OWN], 0.0, False, params[KEY], t, out)


class SmallGap(MDPAdversary):
    """As `Stochastic`, with less of the mean and more of the noise.

    Parameters
    ----------
    weight : float
        That of the mean, in [0, 1]; the noise has the rest.
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import SmallGap
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, SmallGap(0.1), 100, seed=1)
    >>> bool(result.low.min() >= 0.0), bool(result.high.max() < 1.0)
    (True, True)
    """

    fill = _fill

    def __init__(self, weight: float = 0.05, *, scale: float = 1.0) -> None:
        self.weight = checked_share("weight", weight)
        super().__init__(scale=scale)

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        return (self.weight,)
