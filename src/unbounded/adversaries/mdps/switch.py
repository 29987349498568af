"""What was good becomes bad."""

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
    mix(params[SCALE], 0.5, 0.0, t > params[OWN], params[KEY], t, out)


class Switch(MDPAdversary):
    """As `Stochastic`, until every mean mu becomes 1 - mu.

    Parameters
    ----------
    at : float
        When, as a share of the episodes.
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Switch
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Switch(at=0.25), 100, seed=1)
    >>> bool(result.low.min() >= 0.0), bool(result.high.max() < 1.0)
    (True, True)
    """

    fill = _fill

    def __init__(self, at: float = 0.5, *, scale: float = 1.0) -> None:
        self.at = checked_share("at", at)
        super().__init__(scale=scale)

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        return (self.at * episodes,)
