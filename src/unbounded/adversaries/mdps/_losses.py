"""What several adversaries share: the losses of most of them are means and noise, mixed.

Pair p has the mean mu_p, and in episode t the noise u_tp, both uniform in [0, 1): functions of
(key, p) and of (key, t, p), and so the same in whatever order they are asked for.
"""

from __future__ import annotations

import math

from unbounded.core.arrays import Vector
from unbounded.core.random import stream_of, uniform_at
from unbounded.jit.kernel import kernel


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


@kernel
def growth(doublings: float, t: int, episodes: float) -> float:
    """The factor that has doubled ``doublings`` times when the last episode is played."""
    return math.exp2(doublings * t / episodes)
