"""Loss sequences: oblivious, adaptive, and replayed from data.

Those for bandits have their names here, ``from unbounded.adversaries import Switch``; those for
MDPs in `unbounded.adversaries.mdps`. `Outage`, `AtRandom` and `FavoriteSleeps` say which arms are
available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unbounded.adversaries.availability import AtRandom, FavoriteSleeps, Outage
from unbounded.adversaries.bandits import adversaries as _adversaries
from unbounded.adversaries.bandits.changing import changing
from unbounded.adversaries.bandits.program import Phase, worst_cases
from unbounded.simulation.adversary import Adversary

globals().update(_adversaries())

__all__ = [
    "Adversary", "AtRandom", "FavoriteSleeps", "Outage", "Phase", "changing", "worst_cases",
    *_adversaries(),
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # what was found
