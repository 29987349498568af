"""Loss sequences for bandits. Adding a class or a file is enough to be found."""

from __future__ import annotations

from unbounded.learners import discovered
from unbounded.simulation.adversary import Adversary


def adversaries() -> dict[str, type[Adversary]]:
    """Return every adversary for bandits in this package, by name; imports them all."""
    return discovered(__name__, Adversary)
