"""A treasure at the end of an expensive way, and nothing to learn elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.adversaries.mdps._spikes import Spiked, lure, path_to_spike, spike
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    lure(True, params, t, out)
    spike(-1.0, params, t, out)


class QuietLure(Spiked):
    """As `Lure`, and all the rest costs exactly 0, the least loss of its layer.

    Who clips to the range of the losses learns nothing where it is lured to.

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
    >>> from unbounded.adversaries.mdps import QuietLure
    >>> mdp = worlds.dirichlet([2, 2], 2, np.random.default_rng(0))
    >>> learner = UniformPolicy([2, 2], 2)
    >>> result = simulate_mdp(learner, mdp, QuietLure(height=32), 100, seed=1)
    >>> float(result.low.min())
    -32.0
    """

    fill = _fill

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        return np.concatenate([super().params(mdp, episodes), path_to_spike(mdp)])
