"""Stochastic losses: means and noise, whose scale may grow and whose means may flip.

Pair p has the mean mu_p, and in episode t the noise u_tp, both uniform in [0, 1): functions of
(key, p) and of (key, t, p), and so the same in whatever order they are asked for.
"""

from __future__ import annotations

import math
from typing import Any

from unbounded.core.arrays import Integers, Vector
from unbounded.core.occupancy.mdp import LayeredMDP
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel
from unbounded.simulation.adversary import EPISODES, KEY, OWN, SCALE, MDPAdversary, adversary
from unbounded.validation import checked_share, checked_within, setting


@kernel
def mix(
    factor: float, weight: float, shift: float, flip: bool, key: float, t: int, out: Vector
) -> None:
    """out[p] = factor (weight mu_p + (1 - weight) u_tp + shift); ``flip``: with 1 - mu_p."""
    means = stream_of(key, 0)
    noise = stream_of(key, t)
    out[0] = 0.0
    for p in range(1, out.size):
        mu = uniform_at(means, p)
        if flip:
            mu = 1.0 - mu
        out[p] = factor * (weight * mu + (1.0 - weight) * uniform_at(noise, p) + shift)


# Slots of the params: the weight of the means, a shift, how often losses double, after which
# episode means mu are 1 - mu, and whether they are so in every second episode.
_WEIGHT, _SHIFT, _DOUBLINGS, _FLIPPED, _ALTERNATING = range(OWN, OWN + 5)


@kernel
def _fill(params: Vector, t: int, q: Vector, lay: Integers, out: Vector) -> None:
    factor = params[SCALE] * math.exp2(params[_DOUBLINGS] * t / params[EPISODES])
    flip = t > params[_FLIPPED] or (params[_ALTERNATING] > 0.0 and t % 2 == 0)
    mix(factor, params[_WEIGHT], params[_SHIFT], flip, params[KEY], t, out)


class _Mixed(MDPAdversary):
    """Base: means, noise and what may happen to them."""

    fill = _fill
    weight = 0.5
    shift = 0.0
    doublings = 0.0
    at = math.inf
    alternating = False

    @property
    def largest(self) -> float:
        return 2.0**self.doublings

    def params(self, mdp: LayeredMDP, episodes: int) -> Any:
        return self.weight, self.shift, self.doublings, self.at * episodes, self.alternating


@adversary
class Stochastic(_Mixed):
    """Half a pair's mean and half noise: losses in [0, 1)."""


@adversary
class SmallGap(_Mixed):
    """As `Stochastic`, with less of the mean and more of the noise."""

    weight: float = setting(
        0.05, checked_share, doc="Of the mean, in [0, 1]; the noise has the rest."
    )


@adversary
class Negative(_Mixed):
    """As `Stochastic`, less 1: losses in [-1, 0)."""

    shift = -1.0


@adversary
class Alternating(_Mixed):
    """As `Stochastic`, with 1 - mu for every mean mu in every second episode."""

    alternating = True


@adversary
class Switch(_Mixed):
    """As `Stochastic`, until every mean mu becomes 1 - mu."""

    at: float = setting(0.5, checked_share, doc="When, as a share of the episodes.")


@adversary
class Growth(_Mixed):
    """As `Stochastic`, with losses that double ``doublings`` times."""

    doublings: float = setting(
        20.0, checked_within, 0.0, 1000.0, doc="How often, from 0 to 1000; 2^20-fold by default."
    )


@adversary
class GrowthSwitch(_Mixed):
    """`Growth` and `Switch` at once."""

    doublings: float = setting(
        20.0, checked_within, 0.0, 1000.0, doc="How often, from 0 to 1000; 2^20-fold by default."
    )
    at: float = setting(0.5, checked_share, doc="When means flip, as a share of the episodes.")
