"""Learning when nobody knows the scale of the losses."""

from unbounded.bandits.ahb import AHB
from unbounded.bandits.doubling_tsallis_inf import DoublingTsallisINF
from unbounded.bandits.epsilon_greedy import EpsilonGreedy
from unbounded.bandits.exp3 import Exp3
from unbounded.bandits.exp3_ix import Exp3IX
from unbounded.bandits.scb import SCB
from unbounded.bandits.scb_ix import SCBIX
from unbounded.bandits.tsallis_inf import TsallisINF
from unbounded.bandits.uniform import Uniform
from unbounded.learner import Choice, Learner
from unbounded.simulate import Simulation, simulate

__all__ = [
    "AHB",
    "SCB",
    "SCBIX",
    "Choice",
    "DoublingTsallisINF",
    "EpsilonGreedy",
    "Exp3",
    "Exp3IX",
    "Learner",
    "Simulation",
    "TsallisINF",
    "Uniform",
    "simulate",
]
