"""Checks of arguments: the value as it should be, or an error that names it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from operator import index
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SUM_TOLERANCE = 1e-9  # distributions this close to one are renormalised, others are refused
_REAL = (Real, Decimal)
_NOT_REAL = (bool, np.timedelta64)  # although they are registered as such
_LARGE = 2**1000  # well inside the range of floats
_CONSTANTS = 1e-50, 1e50  # of learners


def shown(value: object) -> str:
    """``value`` as an error quotes it: on one line, and of bounded length whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an int of 5,000 digits has no repr
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:197]}..."


def checked_function(name: str, function: Callable[..., Any], *takes: str) -> None:
    """Refuse what cannot be called with so many arguments, before anything else is done."""
    try:
        inspect.signature(function).bind(*takes)
    except TypeError:
        raise TypeError(
            f"{name} must take ({', '.join(takes)}), and {shown(function)} does not"
        ) from None
    except ValueError:  # of some that are not written in Python nobody knows
        pass


def checked_whole(name: str, value: SupportsIndex) -> int:
    """``value`` as an int, or a clear error."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {shown(value)}") from None


def checked_count(
    name: str, value: SupportsIndex, least: int = 1, *, below: int | None = 2**53
) -> int:
    """``value`` as an int of at least ``least``, or a clear error.

    Below 2**53, by default, every whole number is a float, as which learners are kept.
    """
    count = checked_whole(name, value)
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(count)}")
    if below is not None and count >= below:
        raise ValueError(f"{name} must be below 2**53, got {shown(count)}")
    return count


def checked_sizes(name: str, value: Sequence[SupportsIndex]) -> list[int]:
    """Whole numbers of at least 1, one per layer, or a clear error."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be whole numbers, one per layer; got {shown(value)}")
    sizes = [checked_count(f"{name}[{h}]", n) for h, n in enumerate(value)]
    if not sizes:
        raise ValueError(f"{name} must hold at least one layer, got {shown(value)}")
    return sizes


def checked_real(name: str, value: Any) -> float:
    """``value`` as the nearest float, perhaps not a finite one, or a clear error.

    Real numbers are those of Python and NumPy, `fractions.Fraction`, `decimal.Decimal`, and
    arrays of no dimensions that hold one. Truth values, text and complex numbers are not.
    """
    if isinstance(value, float) or (type(value) is int and -_LARGE < value < _LARGE):
        return float(value)  # the usual cases, at the least cost
    number = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, _NOT_REAL) or not isinstance(number, _REAL):
        raise TypeError(f"{name} must be a real number, not {shown(value)}")
    try:
        return float(number)
    except OverflowError:  # of an int or a Fraction
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def checked_finite(name: str, value: float) -> float:
    """``value`` as a finite float, or a clear error."""
    number = checked_real(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    return number


def checked_loss(name: str, value: object) -> float:
    """``value`` as the nearest float, a finite one, or a clear error; `checked_real` says of what.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from unbounded.validation import checked_loss
    >>> checked_loss("loss", Decimal("0.1"))
    0.1
    """
    number = value if type(value) is float else checked_real(name, value)
    if not math.isfinite(number):
        raise ValueError(
            f"{name} must be finite, got {shown(value)}; if it is not known, forget() it instead"
        )
    return number


def checked_losses(name: str, values: ArrayLike, size: int, per: str) -> NDArray[np.float64]:
    """A new vector of ``size`` finite float64, one ``per`` something, or a clear error."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # of a long double; inf is found below
            numbers = values.astype(np.float64)
        if numbers.shape == (size,) and np.isfinite(numbers).all():
            return numbers
    try:
        given = values if isinstance(values, list | tuple) else np.asarray(values)
        shape = (len(given),) if isinstance(given, list | tuple) else given.shape
    except ValueError:
        raise TypeError(f"{name} must be real numbers, not {shown(values)}") from None
    if shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), one per {per}; got {shape}")
    return np.array([checked_loss(f"{name}[{k}]", one) for k, one in enumerate(given)])


def checked_positive(name: str, value: float, *, below: float = math.inf) -> float:
    """``value`` as a finite float in (0, below), or a clear error."""
    number = checked_real(name, value)
    if not 0.0 < number < below:
        limit = "" if math.isinf(below) else f" and below {below:g}"
        raise ValueError(f"{name} must be above 0{limit}, got {shown(value)}")
    return number


def checked_constant(name: str, value: float, *, below: float = math.inf) -> float:
    """``value`` as a float in (0, below) whose products with others do not overflow, or a clear
    error."""
    number = checked_positive(name, value, below=below)
    low, high = _CONSTANTS
    if not low <= number <= high:
        raise ValueError(f"{name} must be in [{low:g}, {min(high, below):g}], got {shown(value)}")
    return number


def checked_factor(name: str, value: float) -> float:
    """The same for a constant that may be 0."""
    number = checked_at_least(name, value, 0.0)
    return number if number == 0.0 else checked_constant(name, value)


def checked_within(name: str, value: float, low: float, high: float) -> float:
    """``value`` as a float in [low, high], or a clear error."""
    number = checked_real(name, value)
    if not low <= number <= high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {shown(value)}")
    return number


def checked_at_least(name: str, value: float, least: float) -> float:
    """``value`` as a finite float of at least ``least``, or a clear error."""
    number = checked_real(name, value)
    if not least <= number < math.inf:
        raise ValueError(f"{name} must be at least {least:g} and finite, got {shown(value)}")
    return number


def checked_share(name: str, value: float) -> float:
    """``value`` as a float in [0, 1], or a clear error."""
    return checked_within(name, value, 0.0, 1.0)


def checked_part(name: str, value: float) -> float:
    """``value`` as a float in (0, 1], or a clear error."""
    number = checked_real(name, value)
    if not 0.0 < number <= 1.0:
        raise ValueError(f"{name} must be above 0 and at most 1, got {shown(value)}")
    return number


def checked_flag(name: str, value: bool) -> bool:
    """``value`` as True or False, or a clear error."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def checked_ablation(clip: str, mixing: float, ablation: bool) -> None:
    """Refuse what can fail for want of clipping or exploration, unless that is the purpose."""
    checked_flag("ablation", ablation)
    if clip == "none" and not ablation:
        raise ValueError(
            "clip='none' can fail: choose 'scale' or 'range', or ablation=True to try it"
        )
    if clip == "range" and mixing == 0.0 and not ablation:
        raise ValueError(
            "clip='range' needs exploration: choose mixing above 0, or ablation=True to try without"
        )


def checked_range(name: str, value: Sequence[float]) -> tuple[float, float]:
    """``value`` as two finite floats, the first below the second, or a clear error."""
    try:
        low, high = (checked_real(name, x) for x in value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be two numbers (low, high), not {shown(value)}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be finite with low < high, got {shown(value)}")
    return low, high


def checked_option(name: str, value: str, options: tuple[str, ...]) -> int:
    """The position of ``value`` among the ``options``, or a clear error."""
    if value not in options:
        listed = ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {listed}, got {shown(value)}")
    return options.index(value)


def recorded_rounds(wanted: Sequence[int] | int, rounds: int) -> NDArray[np.int64]:
    """The rounds at which a simulation records, from what is given as ``checkpoints``."""
    if np.ndim(wanted) == 0:
        count = checked_count("checkpoints", cast(int, wanted))
        return np.unique(np.geomspace(rounds, 1, count).round().astype(np.int64))  # the last first
    given = np.asarray(wanted)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise TypeError(f"checkpoints must be how many, or a list of rounds; got {wanted!r}")
    points = np.unique(given.astype(np.int64))
    if points[0] < 1 or points[-1] > rounds:
        raise ValueError(f"checkpoints must lie in 1 .. {rounds}, got {wanted!r}")
    return points


def checked_vector(name: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """``value`` as a contiguous vector of ``size`` float64, or a clear error."""
    vector = np.ascontiguousarray(value, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"{name} must be a flat vector of shape ({size},), got {vector.shape}")
    return vector


def checked_arrays(
    name: str, values: Sequence[ArrayLike], shapes: Sequence[tuple[int, ...]]
) -> list[NDArray[np.float64]]:
    """One array of each of the ``shapes``, or a clear error."""
    if len(values) != len(shapes):
        raise ValueError(f"{name} must hold {len(shapes)} arrays, one per layer; got {len(values)}")
    arrays = [np.asarray(a, dtype=np.float64) for a in values]
    for k, (a, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if a.shape != shape:
            raise ValueError(f"{name}[{k}] must have shape {shape}, got {a.shape}")
    return arrays


def checked_distributions(name: str, P: NDArray[np.float64]) -> None:
    """Refuse what is not a distribution along the last axis; renormalise rounding in place."""
    if not np.all(np.isfinite(P)):
        raise ValueError(f"{name} has entries that are not finite")
    if np.any(P < 0):
        where: Any = np.unravel_index(int(np.argmin(P)), P.shape)
        where = tuple(int(k) for k in where)
        raise ValueError(f"{name}{list(where)} is {P[where]:g}; a probability cannot be negative")
    total = P.sum(axis=-1)
    worst: Any = np.unravel_index(int(np.argmax(np.abs(total - 1))), total.shape)
    if abs(total[worst] - 1) > _SUM_TOLERANCE:
        row = f"{name}{[int(k) for k in worst]}" if worst else name
        raise ValueError(f"{row} sums to {total[worst]:g}; a distribution must sum to 1")
    P /= total[..., None]


def checked_numbers(name: str, values: ArrayLike, limits: Sequence[int]) -> NDArray[np.int64]:
    """Whole numbers, one per layer, of which the h-th is in 0 .. limits[h] - 1, or an error."""
    given = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be whole numbers, not of type {given.dtype}")
    if given.shape != (len(limits),):
        raise ValueError(
            f"{name} must have shape ({len(limits)},), one per layer; got {given.shape}"
        )
    with np.errstate(invalid="ignore"):  # nan and inf are found below
        numbers = given.astype(np.int64)
    if np.any(numbers != given) or np.any(numbers < 0) or np.any(numbers >= np.array(limits)):
        raise ValueError(
            f"{name} must be whole numbers in 0..{[n - 1 for n in limits]}, got {given.tolist()}"
        )
    return numbers
