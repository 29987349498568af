"""Losses of which none is positive."""

from __future__ import annotations

from unbounded.adversaries.mdps._losses import mix
from unbounded.core.arrays import Integers, Vector
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, SCALE, MDPAdversary


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    mix(params[SCALE], 0.5, -1.0, False, params[KEY], t, out)


class Negative(MDPAdversary):
    """As `Stochastic`, less 1: losses in [-1, 0).

    Parameters
    ----------
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Negative
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Negative(), 100, seed=1)
    >>> bool(result.low.min() >= -1.0), bool(result.high.max() < 0.0)
    (True, True)
    """

    fill = _fill
