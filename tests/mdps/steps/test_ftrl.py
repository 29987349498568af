"""The tally of solves."""

from unbounded.core.occupancy.solver import (
    COLD,
    FALLBACK,
    ROUGH,
    SOLVED,
    UNSOLVED,
    WARM,
    Outcome,
)
from unbounded.learners.spec import NO_SOLVES
from unbounded.mdps.steps.ftrl import entered


def outcome(gap, method, status, steps):
    return Outcome(9.0, gap, 9.0, steps, 9, 9, method, status)


def test_solves_are_entered():
    solves = NO_SOLVES
    assert solves == (0, 0.0, 0, 0, 0)
    for part in (
        outcome(1e-9, WARM, SOLVED, 3), outcome(1e-5, FALLBACK, ROUGH, 4),
        outcome(1e-7, FALLBACK, UNSOLVED, 5), outcome(0.0, COLD, SOLVED, 0),
    ):  # fmt: skip
        solves = entered(solves, part)
    assert solves == (4, 1e-5, 2, 1, 12)
