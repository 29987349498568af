"""Learning with advice: experts recommend arms, and the learner finds out whom to follow."""

from __future__ import annotations

from unbounded.advice.learner import AdvisedLearner
from unbounded.learners import discovered


def algorithms() -> dict[str, type[AdvisedLearner]]:
    """Return every learner with advice in this package, by name."""
    found = discovered(__name__, AdvisedLearner)
    return {name: cls for name, cls in found.items() if "spec" in vars(cls)}
