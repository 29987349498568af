"""The arrays that kernels work on, the kinds of fields that a state has, and checks of a state.

A kind says which values a field can hold. `unbounded.learners.buffer.Packing` checks all of them
when a learner is loaded, so that a state's own ``check`` only relates its fields to one another, by
`require`. Whatever its kind, an entry may be what a fresh learner has there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_WHOLE = 2.0**53  # from there on, not every integer is a float
ROUNDING = 1e-6  # relative; what is kept and computed again agrees much better
_LATE = 2.0**20  # with much to spare
LARGEST_EXPONENT = 1100  # 2^1026 is four times the largest loss; 2^-1074 the smallest


@dataclass(frozen=True)
class Values:
    """Which numbers the entries of a field can be; infinite ones are never legal.

    Examples
    --------
    >>> Values(0.0, 1.0).legal(np.array([0.5, 2.0, np.nan])).tolist()
    [True, False, False]
    """

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False  # whether they are integers
    below: str = ""  # a field of ``State`` or ``Params`` that all entries are below
    total: float | None = None  # what they add up to, but for rounding

    def legal(self, entries: Vector, limit: float = math.inf) -> Any:
        """Return whether each of the ``entries`` is such a number, and below the ``limit``."""
        legal = np.isfinite(entries) & (entries >= self.low) & (entries <= self.high)
        if self.whole:
            legal &= (np.abs(entries) < MOST_WHOLE) & (entries == np.floor(entries))
        return legal & (entries < limit)

    @property
    def first(self) -> float:
        """The legal number nearest to 0."""
        return min(max(self.low, 0.0), self.high)


@dataclass(frozen=True)
class NotKept:
    """Marks vectors that hold nothing from one step to the next; they are not saved."""


Scratch = Annotated[Vector, NotKept()]
IntScratch = Annotated[Integers, NotKept()]

_COUNT, _SIZE, _SHARE = Values(0.0, whole=True), Values(0.0), Values(0.0, 1.0)
_MANTISSA = Values(0.5, math.nextafter(1.0, 0.0))
_EXPONENT = Values(-LARGEST_EXPONENT, LARGEST_EXPONENT, whole=True)

Count = Annotated[int, _COUNT]
Round = Annotated[int, Values(1.0, whole=True)]  # t, which is 1 before the first tell
Arm = Annotated[int, Values(0.0, whole=True, below="n")]
Size = Annotated[float, _SIZE]  # at least 0
Share = Annotated[float, _SHARE]
Mantissa = Annotated[float, _MANTISSA]  # or 0, if that is what a fresh learner has
Exponent = Annotated[int, _EXPONENT]

Counts = Annotated[Vector, _COUNT]
CountsBelowT = Annotated[Vector, Values(0.0, whole=True, below="t")]  # of tells
Sizes = Annotated[Vector, _SIZE]
Shares = Annotated[Vector, _SHARE]
Flags = Annotated[Vector, Values(0.0, 1.0, whole=True)]
Mantissas = Annotated[Vector, _MANTISSA]
Exponents = Annotated[Vector, _EXPONENT]
Distribution = Annotated[Vector, Values(0.0, total=1.0)]


def require(condition: Any, what: str) -> None:
    """A ValueError that says ``what``, unless the condition holds; nan never fulfils one."""
    if not condition:
        raise ValueError(what)


def require_distribution(q: Vector, name: str) -> None:
    """Reject what is not a distribution."""
    require(np.all(q >= 0.0) and abs(q.sum() - 1.0) <= ROUNDING, f"{name} is not a distribution")


def require_counts(*counts: Vector) -> None:
    """Reject counts that are negative."""
    require(all(np.all(n >= 0.0) for n in counts), "there are no such counts")


def require_numbers(numbers: Vector, below: float, what: str) -> None:
    """Reject what are not integers in 0 .. below - 1."""
    legal = (numbers >= 0.0) & (numbers < below) & (numbers == np.floor(numbers))
    require(np.all(legal), f"there are no such {what}")


def require_boxes(lo: Vector, hi: Vector) -> None:
    """Reject what are not boxes of probabilities."""
    require(np.all((lo >= 0.0) & (lo <= hi) & (hi <= 1.0)), "there are no such boxes")


def require_growth(L: Vector, t: int) -> None:
    """Reject estimates that have all grown further than those of ``t`` losses below 1 can.

    An estimate of the arm with the least sum is at most n, as that arm is the likeliest; late
    losses may bring more. A solver needs the least sum to be small beside 2^53.
    """
    require(np.min(L) <= _LATE * L.size * t, "there are no such estimates")


def close(a: Any, b: Any) -> Any:
    """Return whether two numbers, or vectors, agree but for rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.all(np.abs(np.subtract(a, b)) <= ROUNDING * np.maximum(np.abs(a), np.abs(b)))
