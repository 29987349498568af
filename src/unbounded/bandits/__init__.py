"""Bandit algorithms: one file each. Adding a file is enough for `algorithms` to find it."""

from __future__ import annotations

from unbounded.learners import discovered
from unbounded.learners.bandit import Learner


def algorithms() -> dict[str, type[Learner]]:
    """Return every bandit learner in this package, by name."""
    found = discovered(__name__, Learner) | discovered(f"{__name__}.baselines", Learner)
    return dict(sorted(found.items()))
