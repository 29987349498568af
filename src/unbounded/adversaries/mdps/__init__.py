"""Loss sequences for layered MDPs. Adding a class or a file is enough to be found.

Every pair has a mean in [0, 1), drawn once for each play. The losses of episode t are a function of
(key, t, pair), so that they do not depend on the learner unless the adversary looks at its
occupancy measure q_t.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unbounded.learners import discovered
from unbounded.simulation.adversary import MDPAdversary


def adversaries() -> dict[str, type[MDPAdversary]]:
    """Return every adversary for MDPs in this package, by name; imports them all."""
    return discovered(__name__, MDPAdversary)


globals().update(adversaries())

__all__ = ["MDPAdversary", "adversaries", *adversaries()]


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # what was found
