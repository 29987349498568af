"""The learners as other libraries want them; a module needs the library that it is named after."""

from __future__ import annotations

from unbounded.learners.bandit import Learner
from unbounded.validation import shown


def checked_bandit(learner: type[Learner]) -> type[Learner]:
    """A learner's class, and one that learns from the arm that was played; or a clear error."""
    if not (isinstance(learner, type) and issubclass(learner, Learner)):
        raise TypeError(f"learner must be a class like SCB, not {shown(learner)}")
    if learner.spec.feedback == "full":
        raise ValueError(f"{learner.spec.name} needs the rewards of all arms: take SCB")
    return learner
