"""A treasure where hardly anybody goes."""

from __future__ import annotations

from unbounded.adversaries.mdps._losses import mix
from unbounded.adversaries.mdps._spikes import Spiked, spike
from unbounded.core.arrays import Integers, Vector
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, SCALE


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    mix(params[SCALE], 0.5, 0.0, False, params[KEY], t, out)
    spike(-1.0, params, t, out)


class GoodSpike(Spiked):
    """As `Stochastic`; late, now and then a large negative loss in the state hardest to reach.

    That state is the one which uniform play reaches least often, and all its actions get the spike.

    Parameters
    ----------
    height : float
        The spike, as an absolute value.
    chance : float
        The probability of a spike in an episode, once there are any.
    at : float
        From when on there are spikes, as a share of the episodes.
    scale : float
        Multiplies every loss.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded import UniformPolicy, simulate_mdp, worlds
    >>> from unbounded.adversaries.mdps import GoodSpike
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, GoodSpike(height=32), 100, seed=1)
    >>> float(result.low.min())
    -32.0
    """

    fill = _fill
