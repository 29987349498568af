"""Learners for layered MDPs: one algorithm, one file. Adding a file is enough.

Files without a learner are what several algorithms share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbounded.learners.mdp import MDPLearner


def algorithms() -> dict[str, type[MDPLearner]]:
    """Return every learner for MDPs in this package, by name; imports them all."""
    from unbounded.learners import discovered
    from unbounded.learners.mdp import MDPLearner  # who wants one learner need not load this

    found = discovered(__name__, MDPLearner) | discovered(f"{__name__}.baselines", MDPLearner)
    return dict(sorted(found.items()))
