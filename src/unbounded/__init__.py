"""Learning when nobody knows the scale of the losses."""

from unbounded.bandits.scb import SCB
from unbounded.bandits.scb_ix import SCBIX
from unbounded.bandits.tsallis_inf import TsallisINF
from unbounded.learner import Choice, Learner
from unbounded.simulate import Simulation, simulate

__all__ = ["SCB", "SCBIX", "Choice", "Learner", "Simulation", "TsallisINF", "simulate"]
