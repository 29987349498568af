"""What a solve of an occupancy program proves, and how it came to it."""

from __future__ import annotations

from typing import NamedTuple

from unbounded.core.arrays import Vector

METHODS = ("closed form", "warm", "cold", "fallback")
CLOSED_FORM, WARM, COLD, FALLBACK = range(4)
STATUSES = ("unsolved", "rough", "solved")
UNSOLVED, ROUGH, SOLVED = range(3)  # gap <= tolerance times: neither, the largest, smallest weight


class SolverWarning(RuntimeWarning):
    """Programs over occupancy measures were not solved to the tolerance.

    What was played in their place is the best that was certified.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", SolverWarning)  # stop at the first
    >>> warnings.simplefilter("default", SolverWarning)
    """


class Outcome(NamedTuple):
    """What the kernels `ftrl.solve` and `kl.kl_step` return.

    Examples
    --------
    >>> outcome = Outcome(2e-9, 2e-9, 1e-9, 3, 1, 0, WARM, SOLVED, 1e-9, 0.0)
    >>> certificate(outcome).method, certificate(outcome).solved
    ('warm', True)
    """

    gap: float  # F(q) - min F <= gap, in the units of the losses
    gap_over_least: float  # the gap over the smallest weight
    gap_over_largest: float
    steps: int  # of Newton's method
    certificates: int
    iterations: int  # of the interior point method
    method: int  # CLOSED_FORM, WARM, COLD or FALLBACK
    status: int  # UNSOLVED, ROUGH or SOLVED
    kl_part: float  # of the gap, over the largest weight
    slack_part: float


class Certificate(NamedTuple):
    """What is proved about a solve: F(q) - min F <= gap, in the units of the losses.

    ``solved`` says that the gap is at most tolerance times the *smallest* weight, or at most 1e-13
    times the largest where that is more (rounding); ``relative_gap`` is the gap over the largest.
    ``status`` is "solved"; "rough": the gap is at most tolerance times the largest weight; or
    "unsolved". Then q is the best that was certified, or the last one if the gap is infinite.
    """

    gap: float
    relative_gap: float
    solved: bool
    method: str
    newton_steps: int
    interior_iterations: int
    status: str


class Solution(NamedTuple):
    """Occupancy measure, policy, certificate, and the dual point that proves it.

    ``q`` and ``pi`` are flat over pairs; ``transitions`` (a P in the boxes that carries q), ``v``
    (over states) and ``theta`` (over pairs) reproduce the certificate, see
    `unbounded.core.occupancy.solver.certificate`.
    """

    q: Vector
    pi: Vector
    certificate: Certificate
    transitions: Vector
    v: Vector
    theta: Vector


def certificate(outcome: Outcome) -> Certificate:
    """The part of an outcome that concerns who asked for the solution."""
    return Certificate(
        gap=float(outcome.gap),
        relative_gap=float(outcome.gap_over_largest),
        solved=outcome.status == SOLVED,
        method=METHODS[outcome.method],
        newton_steps=outcome.steps,
        interior_iterations=outcome.iterations,
        status=STATUSES[outcome.status],
    )
