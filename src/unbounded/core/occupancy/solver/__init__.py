"""Solve the two programs over occupancy measures, with certificates.

- The program of FTRL: `ftrl`, by `newton` on its smoothed `dual` if warm, by `interior_point`
  (`elimination`) if cold, over `sparse` lists where few transitions are possible.
- The program of mirror descent: `kl`.
- What both share: `work`, `certificate`, `linear_algebra`; what they return: `Outcome`.

As values that kernels call, and do not copy: `ftrl.PROGRAM`, `kl.PROGRAM`.
"""

from __future__ import annotations

from typing import NamedTuple

CLOSED_FORM, WARM, COLD, FALLBACK = range(4)
UNSOLVED, ROUGH, SOLVED = range(3)  # gap <= tolerance times: neither, the largest, smallest weight


class SolverWarning(RuntimeWarning):
    """Warn that programs over occupancy measures were not solved to the tolerance.

    The learner plays the best policy that was certified instead.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", SolverWarning)  # stop at the first
    >>> warnings.simplefilter("default", SolverWarning)
    """


class Outcome(NamedTuple):
    """Hold what the kernels `ftrl.solve` and `kl.kl_step` return."""

    gap: float  # F(q) - min F <= gap, in the units of the losses
    gap_over_least: float  # the gap over the smallest weight
    gap_over_largest: float
    steps: int  # of Newton's method
    certificates: int
    iterations: int  # of the interior point method
    method: int  # CLOSED_FORM, WARM, COLD or FALLBACK
    status: int  # UNSOLVED, ROUGH or SOLVED
