"""Loss sequences: oblivious, adaptive, and replayed from data."""

from unbounded.adversaries.base import Adversary
from unbounded.adversaries.growth import Growth
from unbounded.adversaries.lower_bound import LowerBound
from unbounded.adversaries.replay import Replay
from unbounded.adversaries.spike_least_likely import SpikeLeastLikely
from unbounded.adversaries.stochastic import StochasticGap
from unbounded.adversaries.switch import Switch

__all__ = [
    "Adversary",
    "Growth",
    "LowerBound",
    "Replay",
    "SpikeLeastLikely",
    "StochasticGap",
    "Switch",
]
