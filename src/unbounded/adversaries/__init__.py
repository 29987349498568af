"""Loss sequences: oblivious, adaptive, and replayed from data.

Those for bandits have their names here, ``from unbounded.adversaries import Switch``; those for
MDPs in `unbounded.adversaries.mdps`.
"""

from __future__ import annotations

from typing import Any

from unbounded.adversaries.bandits import adversaries
from unbounded.adversaries.bandits.program import Phase
from unbounded.adversaries.bandits.worst_cases import worst_cases
from unbounded.play.adversary import Adversary

__all__ = ["Adversary", "Phase", "adversaries", "worst_cases"]


def __getattr__(name: str) -> Any:
    if name[0] != "_" and name in (found := adversaries()):
        return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *adversaries()]
