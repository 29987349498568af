"""Spikes in the state that is hardest to reach, and losses by the learner's occupancy measure."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from unbounded.adversaries.mdps.stochastic import mix
from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.layout import ACTIONS, PAIR, SIZE, horizon
from unbounded.core.occupancy.mdp import LayeredMDP, Markov, best_policy, occupancy
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, OWN, SCALE, MDPAdversary, adversary
from unbounded.validation import checked_positive, checked_share, setting

# Slots of the params: the losses that are no spikes, the spike, its chance, the last episode
# without one, and the pairs that get it. From _PATH on, for the lures: 1 for the pairs that lead to
# the spike, 0 for all others.
_USUAL, _HEIGHT, _CHANCE, _QUIET, _FIRST, _END, _PATH = range(OWN, OWN + 7)
_MIXED, _LURE, _QUIET_LURE = range(3)


def hardest_state(mdp: LayeredMDP) -> tuple[int, int]:
    """Layer 1..H and number of the state that uniform play reaches least often, but does; not the
    end of episodes that end early, which costs nothing."""
    q = occupancy(mdp, Markov.uniform(mdp.layers))
    mass = [table.sum(axis=1) for table in mdp.layers.unpack_pairs(q)]
    states = [
        (m[s], h, s)
        for h, m in enumerate(mass, start=1)
        for s in range(len(m))
        if m[s] > 0 and not mdp.layers.is_end(h, s)
    ]
    return min(states)[1:]


def path_to_spike(mdp: LayeredMDP) -> Vector:
    """1 for the pairs of the hardest state and for those of a policy that leads there best."""
    h, s = hardest_state(mdp)
    first = mdp.layers.index(h, s)
    path = np.zeros(mdp.layers.n_pairs)
    path[first : first + mdp.layers.n_actions] = 1.0
    _, policy = best_policy(mdp, -path)
    before = mdp.layers.table[PAIR, h]
    path[1:before] = policy.pi[1:before]
    return path


@kernel
def _lure(quiet: bool, params: Vector, t: int, out: Vector) -> None:
    """1/2 + u/2 for the pairs that lead to the spike, u/2 for all others, or 0 if ``quiet``."""
    factor = params[SCALE]
    noise = stream_of(params[KEY], t)
    out[0] = 0.0
    for p in range(1, out.size):
        if params[_PATH + p] > 0.0:
            out[p] = factor * (0.5 + 0.5 * uniform_at(noise, p))
        else:
            out[p] = 0.0 if quiet else factor * (0.5 * uniform_at(noise, p))


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    if params[_USUAL] == _MIXED:
        mix(params[SCALE], 0.5, 0.0, False, params[KEY], t, out)
    else:
        _lure(params[_USUAL] == _QUIET_LURE, params, t, out)
    if t > params[_QUIET] and uniform_at(stream_of(params[KEY], t), out.size) < params[_CHANCE]:
        for p in range(int(params[_FIRST]), int(params[_END])):
            out[p] = params[SCALE] * params[_HEIGHT]


@adversary
class BadSpike(MDPAdversary):
    """As `Stochastic`; late, now and then a large loss in the state that is hardest to reach.

    That state is the one which uniform play reaches least often, and all its actions get the spike.
    """

    height: float = setting(64.0, checked_positive, doc="The spike, as an absolute value.")
    chance: float = setting(
        0.2, checked_share, doc="The probability of a spike in an episode, once there are any."
    )
    at: float = setting(
        0.5, checked_share, doc="From when on there are spikes, as a share of the episodes."
    )

    fill = _fill
    _sign: ClassVar[float] = 1.0
    _usual: ClassVar[int] = _MIXED

    @property
    def largest(self) -> float:
        return max(1.0, self.height)

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        first = mdp.layers.index(*hardest_state(mdp))
        spike = self._sign * self.height, self.chance, self.at * episodes
        path = () if self._usual == _MIXED else path_to_spike(mdp)
        return np.concatenate([(self._usual, *spike, first, first + mdp.layers.n_actions), path])


@adversary
class GoodSpike(BadSpike):
    """As `Stochastic`; late, now and then a large negative loss in the state hardest to reach.

    That state is the one which uniform play reaches least often, and all its actions get the spike.
    """

    _sign = -1.0


@adversary
class Lure(GoodSpike):
    """As `GoodSpike`; but until there are spikes, what leads to them costs more than all the rest.

    Losses are in [1/2, 1) on the way to the spike and in [0, 1/2) elsewhere, without any means.
    """

    _usual = _LURE


@adversary
class QuietLure(Lure):
    """As `Lure`, and all the rest costs exactly 0, the smallest loss of its layer.

    Who clips to the range of the losses learns nothing where it is lured to.
    """

    _usual = _QUIET_LURE


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
