"""The scale of the losses grows all the time."""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.mdps._losses import growth, mix
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import EPISODES, KEY, OWN, SCALE, MDPAdversary
from unbounded.validation import checked_within


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    factor = params[SCALE] * growth(params[OWN], t, params[EPISODES])
    mix(factor, 0.5, 0.0, False, params[KEY], t, out)


class Growth(MDPAdversary):
    """As `Stochastic`, with losses that double ``doublings`` times.

    Parameters
    ----------
    doublings : float
        How often, from 0 to 1000; 2^20-fold by default.
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Growth
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Growth(doublings=10), 100, seed=1)
    >>> bool(100.0 < result.high.max() < 1024.0)
    True
    """

    fill = _fill

    def __init__(self, doublings: float = 20.0, *, scale: float = 1.0) -> None:
        self.doublings = checked_within("doublings", doublings, 0.0, 1000.0)
        super().__init__(scale=scale)

    @property
    def largest(self) -> float:
        return 2.0**self.doublings

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        return (self.doublings,)
