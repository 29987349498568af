"""The two named sets of constants of CostSCBRL: docs/theory/one-sided-mdp.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unbounded.validation import checked_constant, checked_factor, checked_option, checked_share


class Constants(NamedTuple):
    """What a profile sets; every field is also an argument of `CostSCBRL`."""

    rate: float  # of eta
    implicit: float  # of gamma
    width: float  # of the boxes of Jin et al., constants 2 and 14/3
    skip: float  # how old the policy may get, in losses at uniform occupancy
    center: float  # of estimates, in means of the losses so far


PAPER = Constants(1.0, 1.0, 1.0, 0.0, 0.0)  # what the theorem is proved for
PRACTICAL = Constants(0.8, 0.2, 0.4, 0.9, 1.0)
PROFILES = {"paper": PAPER, "practical": PRACTICAL}


def chosen(profile: str, arguments: Mapping[str, Any]) -> Constants:
    """A profile's constants with those ``arguments`` that are not None instead, checked."""
    checked_option("profile", profile, tuple(PROFILES))
    given = {name: arguments[name] for name in Constants._fields if arguments[name] is not None}
    constants = PROFILES[profile]._replace(**given)
    return Constants(
        rate=checked_constant("rate", constants.rate),
        implicit=checked_constant("implicit", constants.implicit),
        width=checked_constant("width", constants.width),
        skip=checked_factor("skip", constants.skip),
        center=checked_share("center", constants.center),
    )
