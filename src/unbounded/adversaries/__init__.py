"""Loss sequences: oblivious, adaptive, and replayed from data."""

from unbounded.adversaries.bandits.chaser import Chaser
from unbounded.adversaries.bandits.drift import Drift
from unbounded.adversaries.bandits.growth import Growth
from unbounded.adversaries.bandits.lower_bound import LowerBound
from unbounded.adversaries.bandits.outside_window import OutsideWindow
from unbounded.adversaries.bandits.pareto import Pareto
from unbounded.adversaries.bandits.program import Phase, Program
from unbounded.adversaries.bandits.replay import Replay
from unbounded.adversaries.bandits.shrink import Shrink
from unbounded.adversaries.bandits.signs import Signs
from unbounded.adversaries.bandits.spike_least_likely import SpikeLeastLikely
from unbounded.adversaries.bandits.spikes import Spikes
from unbounded.adversaries.bandits.stochastic import StochasticGap
from unbounded.adversaries.bandits.student_t import StudentT
from unbounded.adversaries.bandits.switch import Switch
from unbounded.adversaries.bandits.worst_cases import worst_cases
from unbounded.adversaries.bandits.zeros_first import ZerosFirst
from unbounded.play.adversary import Adversary

__all__ = [
    "Adversary",
    "Chaser",
    "Drift",
    "Growth",
    "LowerBound",
    "OutsideWindow",
    "Pareto",
    "Phase",
    "Program",
    "Replay",
    "Shrink",
    "Signs",
    "SpikeLeastLikely",
    "Spikes",
    "StochasticGap",
    "StudentT",
    "Switch",
    "ZerosFirst",
    "worst_cases",
]
