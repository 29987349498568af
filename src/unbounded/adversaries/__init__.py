"""Loss sequences: oblivious, adaptive, and replayed from data."""

from unbounded.adversaries.base import Adversary
from unbounded.adversaries.chaser import Chaser
from unbounded.adversaries.drift import Drift
from unbounded.adversaries.growth import Growth
from unbounded.adversaries.lower_bound import LowerBound
from unbounded.adversaries.outside_window import OutsideWindow
from unbounded.adversaries.pareto import Pareto
from unbounded.adversaries.program import Phase, Program
from unbounded.adversaries.replay import Replay
from unbounded.adversaries.shrink import Shrink
from unbounded.adversaries.signs import Signs
from unbounded.adversaries.spike_least_likely import SpikeLeastLikely
from unbounded.adversaries.spikes import Spikes
from unbounded.adversaries.stochastic import StochasticGap
from unbounded.adversaries.student_t import StudentT
from unbounded.adversaries.switch import Switch
from unbounded.adversaries.worst_cases import worst_cases
from unbounded.adversaries.zeros_first import ZerosFirst

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
