"""Learning when nobody knows the scale of the losses."""

from unbounded.bandits.scb import SCB
from unbounded.simulate import Simulation, simulate

__all__ = ["SCB", "Simulation", "simulate"]
