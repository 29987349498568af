"""A treasure at the end of an expensive way."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.adversaries.mdps._spikes import Spiked, lure, path_to_spike, spike
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    lure(False, params, t, out)
    spike(-1.0, params, t, out)


class Lure(Spiked):
    """As `GoodSpike`; but until there are spikes, what leads to them costs more than all the rest.

    Losses are in [1/2, 1) on the way to the spike and in [0, 1/2) elsewhere, without any means.

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
    >>> from unbounded.adversaries.mdps import Lure
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, Lure(height=32), 100, seed=1)
    >>> float(result.low.min())
    -32.0
    """

    fill = _fill

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        return np.concatenate([super().params(mdp, episodes), path_to_spike(mdp)])
