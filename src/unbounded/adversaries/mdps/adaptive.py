"""Adaptive adversaries: their losses depend on the learner's occupancy measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.adversaries.mdps.stochastic import mix
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, horizon
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, OWN, SCALE, MDPAdversary, adversary
from unbounded.validation import checked_positive, setting


@kernel
def _fill_punish(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
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


@adversary
class Punish(MDPAdversary):
    """Loss 1 for the likeliest action of each state, 0 for others; sees the occupancy measure."""

    fill = _fill_punish
    looks = True
    draws = False


@kernel
def _fill_hide(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    mix(params[SCALE], 0.5, 0.0, False, params[KEY], t, out)
    least = 0
    for p in range(1, out.size):
        if params[OWN + 1 + p] > 0.0 and (least == 0 or q[p] < q[least]):
            least = p
    out[least] = -params[OWN] * params[SCALE]


@adversary
class Hide(MDPAdversary):
    """As `Stochastic`, with a negative loss for the pair of least occupancy; sees that measure."""

    height: float = setting(8.0, checked_positive, doc="That loss, as an absolute value.")

    fill = _fill_hide
    looks = True

    @property
    def largest(self) -> float:
        return max(1.0, self.height)

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        counts = np.ones(mdp.layers.n_pairs)
        counts[mdp.layers.free] = 0.0
        return np.concatenate([(self.height,), counts])
