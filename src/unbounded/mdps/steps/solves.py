"""The tally of a learner's solves, which `MDPLearner.certificate` shows."""

from __future__ import annotations

import sys

from unbounded.core.occupancy.solver.outcome import FALLBACK, UNSOLVED, Outcome
from unbounded.jit.kernel import kernel
from unbounded.learners.spec import NO_SOLVES, Solves

__all__ = ["NO_SOLVES", "Solves", "entered"]

_LARGEST = sys.float_info.max  # in place of infinity, which no saved learner has


@kernel
def entered(solves: Solves, outcome: Outcome) -> Solves:
    """The tally with one more solve."""
    return Solves(
        solves.solves + 1,
        max(solves.worst_gap, min(outcome.gap_over_least, _LARGEST)),
        solves.fallbacks + (1 if outcome.method == FALLBACK else 0),
        solves.unsolved + (1 if outcome.status == UNSOLVED else 0),
        solves.newton_steps + outcome.steps,
    )
