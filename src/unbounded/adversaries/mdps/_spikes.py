"""What the adversaries with a spike share: the state that is hard to reach, and who leads there."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import PAIR
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.occupancy.policies import Markov, best_policy, occupancy
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import KEY, OWN, SCALE, MDPAdversary
from unbounded.validation import checked_positive, checked_share

# Slots of the params: the spike, its chance, the last episode without one, and the pairs that get
# it. From _PATH on, for the lures: 1 for the pairs that lead to the spike, 0 for all others.
_HEIGHT, _CHANCE, _QUIET, _FIRST, _END, _PATH = range(OWN, OWN + 6)


class Spiked(MDPAdversary):
    """Base of the adversaries with a spike in the state that uniform play reaches least."""

    def __init__(
        self, height: float = 64.0, chance: float = 0.2, at: float = 0.5, *, scale: float = 1.0
    ) -> None:
        self.height = checked_positive("height", height)
        self.chance = checked_share("chance", chance)
        self.at = checked_share("at", at)
        super().__init__(scale=scale)

    @property
    def largest(self) -> float:
        return max(1.0, self.height)

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        first = mdp.layers.index(*hardest_state(mdp))
        return self.height, self.chance, self.at * episodes, first, first + mdp.layers.n_actions


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
def spike(sign: float, params: Vector, t: int, out: Vector) -> None:
    """Overwrite the losses of the hardest state, if there is a spike in episode t."""
    if t > params[_QUIET] and uniform_at(stream_of(params[KEY], t), out.size) < params[_CHANCE]:
        for p in range(int(params[_FIRST]), int(params[_END])):
            out[p] = params[SCALE] * (sign * params[_HEIGHT])


@kernel
def lure(quiet: bool, params: Vector, t: int, out: Vector) -> None:
    """1/2 + u/2 for the pairs that lead to the spike, u/2 for all others, or 0 if ``quiet``."""
    factor = params[SCALE]
    noise = stream_of(params[KEY], t)
    out[0] = 0.0
    for p in range(1, out.size):
        if params[_PATH + p] > 0.0:
            out[p] = factor * (0.5 + 0.5 * uniform_at(noise, p))
        else:
            out[p] = 0.0 if quiet else factor * (0.5 * uniform_at(noise, p))
