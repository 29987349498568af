"""Loss sequences: oblivious, adaptive, and replayed from data."""

from unbounded.adversaries.base import Adversary
from unbounded.adversaries.replay import Replay
from unbounded.adversaries.stochastic import StochasticGap

__all__ = ["Adversary", "Replay", "StochasticGap"]
