"""The tally of a learner's solves, which `MDPLearner.certificate` shows."""

from __future__ import annotations

from unbounded._jit import kernel
from unbounded.core.occupancy.outcome import FALLBACK, UNSOLVED, Outcome
from unbounded.play.contract import NO_SOLVES, Solves

__all__ = ["NO_SOLVES", "Solves", "entered"]


@kernel
def entered(solves: Solves, outcome: Outcome) -> Solves:
    """The tally with one more solve."""
    return Solves(
        solves.solves + 1,
        max(solves.worst_gap, outcome.gap_over_least),
        solves.fallbacks + (1 if outcome.method == FALLBACK else 0),
        solves.unsolved + (1 if outcome.status == UNSOLVED else 0),
        solves.newton_steps + outcome.steps,
    )
