"""Random losses around means that stay."""

from __future__ import annotations

from unbounded.adversaries.mdps._losses import mix
from unbounded.core.arrays import Integers, Vector
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, SCALE, MDPAdversary


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    mix(params[SCALE], 0.5, 0.0, False, params[KEY], t, out)


class Stochastic(MDPAdversary):
    """Half a pair's mean and half noise: losses in [0, 1).

    Parameters
    ----------
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import Stochastic
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Stochastic(), 100, seed=1)
    >>> bool(result.low.min() >= 0.0), bool(result.high.max() < 1.0)
    (True, True)
    """

    fill = _fill
