"""Checks of a state that comes from a file: what cannot be right is refused before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from unbounded.core.arrays import Vector

ROUNDING = 1e-6  # relative; what is kept and computed again agrees much better
_LATE = 2.0**20  # with much to spare


def require(condition: Any, what: str) -> None:
    """A ValueError that says ``what``, unless the condition holds; nan never fulfils one."""
    if not condition:
        raise ValueError(what)


def require_distribution(q: Vector, name: str) -> None:
    """Refuse what is not a distribution."""
    require(np.all(q >= 0.0) and abs(q.sum() - 1.0) <= ROUNDING, f"{name} is not a distribution")


def require_counts(*counts: Vector) -> None:
    """Refuse counts that are negative."""
    require(all(np.all(n >= 0.0) for n in counts), "there are no such counts")


def require_numbers(numbers: Vector, below: float, what: str) -> None:
    """Refuse what are not whole numbers in 0 .. below - 1."""
    legal = (numbers >= 0.0) & (numbers < below) & (numbers == np.floor(numbers))
    require(np.all(legal), f"there are no such {what}")


def require_boxes(lo: Vector, hi: Vector) -> None:
    """Refuse what are not boxes of probabilities."""
    require(np.all((lo >= 0.0) & (lo <= hi) & (hi <= 1.0)), "there are no such boxes")


def require_growth(L: Vector, t: int) -> None:
    """Refuse estimates that have all grown further than those of ``t`` losses below 1 can.

    An estimate of the arm with the least sum is at most n, as that arm is the likeliest; late
    losses may bring more. A solver needs the least sum to be small beside 2^53.
    """
    require(np.min(L) <= _LATE * L.size * t, "there are no such estimates")


def close(a: Any, b: Any) -> Any:
    """Whether two numbers, or vectors, agree but for rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.all(np.abs(np.subtract(a, b)) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)))
