"""Checks of arguments: the value as it should be, or an error that names the argument.

The errors of this module are `ArgumentValueError` and `ArgumentTypeError`, ordinary ValueErrors and
TypeErrors whose ``argument`` says which one it was, so that nobody has to read their text.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, fields
from decimal import Decimal
from numbers import Real
from operator import index
from typing import Any, NamedTuple, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SUM_TOLERANCE = 1e-9  # distributions this close to one are renormalized, others are rejected
_REAL = (Real, Decimal)
_NOT_REAL = (bool, np.timedelta64)  # although they are registered as such
_LARGE = 2**1000  # well inside the range of floats
_MOST_LAYERS = 1_000_000  # each takes some hundred bytes beside its numbers
_CONSTANTS = 1e-50, 1e50  # of learners


_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_COMPILING = os.path.join(_PACKAGE, "jit", "schedule.py")


def warn(text: str, category: type[Warning]) -> None:
    """Warn of the line of the user's program that led here; not of a learner made to compile it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename == _COMPILING:
            return
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def warn_all(heard: Iterable[tuple[str, type[Warning]]]) -> None:
    """`warn` of each of them."""
    for text, category in heard:
        warn(text, category)


class Nested(NamedTuple):
    """The depth of nested lists of one value, where the annotation does not say it."""

    depth: int


class ArgumentError(Exception):
    """An argument is not as it must be; ``argument`` is its name, without the index of an entry.

    Examples
    --------
    >>> from unbounded import SCB
    >>> try:
    ...     SCB(n_arms=0)
    ... except ValueError as error:
    ...     error.argument, str(error)
    ('n_arms', 'n_arms must be at least 1, got 0')
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.argument = name.partition("[")[0]

    def __str__(self) -> str:
        name, problem = self.args
        return name + ("" if problem.startswith("=") else " ") + problem


class ArgumentValueError(ArgumentError, ValueError):
    """The value of an argument is not legal."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument is of a wrong type, or does not go with the others."""


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Let the ValueErrors and TypeErrors of a block carry the name of an argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.__dict__.setdefault("argument", argument)
        raise


def shown(value: object) -> str:
    """Return ``value`` as an error quotes it: on one line, and of bounded length whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an int of 5,000 digits has no repr
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:197]}..."


def checked_function(name: str, function: Callable[..., Any], *takes: str) -> None:
    """Reject what cannot be called with so many arguments, before anything else is done."""
    try:
        inspect.signature(function).bind(*takes)
    except TypeError:
        raise ArgumentTypeError(
            name, f"must take ({', '.join(takes)}), and {shown(function)} does not"
        ) from None
    except ValueError:  # of some that are not written in Python nobody knows
        pass


def checked_whole(name: str, value: SupportsIndex | Sequence[str]) -> int:
    """Return ``value`` as an int, or a clear error."""
    try:
        if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsIndex):
            raise TypeError
        return index(value)
    except TypeError:
        raise ArgumentTypeError(name, f"must be an integer, not {shown(value)}") from None


def checked_count(
    name: str, value: SupportsIndex | Sequence[str], least: int = 1, *, below: int | None = 2**53
) -> int:
    """Return ``value`` as an int of at least ``least``, or a clear error.

    Below 2**53, by default, every integer is a float, as which learners are kept.
    """
    count = checked_whole(name, value)
    if count < least:
        raise ArgumentValueError(name, f"must be at least {least}, got {shown(count)}")
    if below is not None and count >= below:
        raise ArgumentValueError(name, f"must be below 2**53, got {shown(count)}")
    return count


def checked_horizon(value: SupportsIndex) -> int:
    """Return ``value`` as a number of layers, each of which has a table in memory."""
    horizon = checked_count("horizon", value)
    if horizon > _MOST_LAYERS:
        raise ArgumentValueError(
            "horizon", f"must be at most {_MOST_LAYERS:,} layers, got {shown(horizon)}"
        )
    return horizon


def checked_sizes(name: str, value: Sequence[SupportsIndex]) -> list[int]:
    """Return integers of at least 1, one per layer, or a clear error."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ArgumentTypeError(name, f"must be integers, one per layer; got {shown(value)}")
    sizes = [checked_count(f"{name}[{h}]", n) for h, n in enumerate(value)]
    if not sizes:
        raise ArgumentValueError(name, f"must hold at least one layer, got {shown(value)}")
    return sizes


def checked_real(name: str, value: Any) -> float:
    """Return ``value`` as the nearest float, perhaps not a finite one, or a clear error.

    Real numbers are those of Python and NumPy, `fractions.Fraction`, `decimal.Decimal`, and
    arrays of no dimensions that hold one. Booleans, strings and complex numbers are not.
    """
    if isinstance(value, float) or (type(value) is int and -_LARGE < value < _LARGE):
        return float(value)  # the usual cases, at the least cost
    number = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(number, _NOT_REAL) or not isinstance(number, _REAL):
        raise ArgumentTypeError(name, f"must be a real number, not {shown(value)}")
    try:
        return float(number)
    except OverflowError:  # of an int or a Fraction
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def checked_where(
    name: str, value: object, legal: Callable[[float], bool], must: str, *, remedy: str = ""
) -> float:
    """Return ``value`` as a float that is ``legal``, or an error that says what it ``must`` be."""
    number = checked_real(name, value)
    if not legal(number):
        raise ArgumentValueError(name, f"must be {must}, got {shown(value)}{remedy}")
    return number


def checked_finite(name: str, value: float) -> float:
    """Return ``value`` as a finite float, or a clear error."""
    return checked_where(name, value, math.isfinite, "finite")


def checked_loss(name: str, value: object) -> float:
    """``value`` as the nearest finite float, or a clear error; `checked_real` says of what."""
    remedy = "; if it is not known, forget() it instead"
    return checked_where(name, value, math.isfinite, "finite", remedy=remedy)


def checked_losses(name: str, values: ArrayLike, size: int, per: str) -> NDArray[np.float64]:
    """Return a new vector of ``size`` finite float64, one ``per`` something, or a clear error."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # of a long double; inf is found below
            numbers = values.astype(np.float64)
        if numbers.shape == (size,) and np.isfinite(numbers).all():
            return numbers
    try:
        given = values if isinstance(values, list | tuple) else np.asarray(values)
        shape = (len(given),) if isinstance(given, list | tuple) else given.shape
    except ValueError:
        raise ArgumentTypeError(name, f"must be real numbers, not {shown(values)}") from None
    if shape != (size,):
        raise ArgumentValueError(name, f"must have shape ({size},), one per {per}; got {shape}")
    return np.array([checked_loss(f"{name}[{k}]", one) for k, one in enumerate(given)])


def checked_within(name: str, value: float, low: float, high: float) -> float:
    """Return ``value`` as a float in [low, high], or a clear error."""
    return checked_where(name, value, lambda x: low <= x <= high, f"in [{low:g}, {high:g}]")


def checked_at_least(name: str, value: float, least: float) -> float:
    """Return ``value`` as a finite float of at least ``least``, or a clear error."""
    must = f"at least {least:g} and finite"
    return checked_where(name, value, lambda x: least <= x < math.inf, must)


def checked_positive(name: str, value: float, *, below: float = math.inf) -> float:
    """Return ``value`` as a finite float in (0, below), or a clear error."""
    must = "above 0" if math.isinf(below) else f"above 0 and below {below:g}"
    return checked_where(name, value, lambda x: 0.0 < x < below, must)


def checked_share(name: str, value: float) -> float:
    """Return ``value`` as a float in [0, 1], or a clear error."""
    return checked_within(name, value, 0.0, 1.0)


def checked_part(name: str, value: float) -> float:
    """Return ``value`` as a float in (0, 1], or a clear error."""
    return checked_where(name, value, lambda x: 0.0 < x <= 1.0, "above 0 and at most 1")


def checked_constant(name: str, value: float, *, below: float = math.inf) -> float:
    """``value`` as a float in (0, below) whose products with others do not overflow, or a clear
    error."""
    number, (low, high) = checked_positive(name, value, below=below), _CONSTANTS
    return checked_within(name, number, low, min(high, below))


def checked_factor(name: str, value: float) -> float:
    """Return the same for a constant that may be 0."""
    number = checked_at_least(name, value, 0.0)
    return number if number == 0.0 else checked_constant(name, number)


def checked_flag(name: str, value: bool) -> bool:
    """Return ``value`` as True or False, or a clear error."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(name, f"must be True or False, not {shown(value)}")
    return bool(value)


def checked_ablation(clip: str, mixing: float, ablation: bool) -> None:
    """Reject what can fail for want of clipping or exploration, unless that is the purpose."""
    checked_flag("ablation", ablation)
    if clip == "none" and not ablation:
        raise ArgumentValueError(
            "clip", "='none' can fail: choose 'scale' or 'range', or ablation=True to try it"
        )
    if clip == "range" and mixing == 0.0 and not ablation:
        raise ArgumentValueError(
            "clip",
            "='range' needs exploration: choose mixing above 0, or ablation=True to go without",
        )


def checked_range(name: str, value: Sequence[float]) -> tuple[float, float]:
    """Return ``value`` as two finite floats, the first below the second, or a clear error."""
    try:
        low, high = (checked_real(name, x) for x in value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            name, f"must be two numbers (low, high), not {shown(value)}"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentValueError(name, f"must be finite with low < high, got {shown(value)}")
    return low, high


def checked_option(name: str, value: str, options: tuple[str, ...]) -> int:
    """Return the position of ``value`` among the ``options``, or a clear error."""
    if value not in options:
        listed = ", ".join(map(repr, options))
        raise ArgumentValueError(name, f"must be one of {listed}, got {shown(value)}")
    return options.index(value)


def recorded_rounds(wanted: Sequence[int] | int, rounds: int) -> NDArray[np.int64]:
    """Return the rounds at which a simulation records, from what is given as ``checkpoints``."""
    if np.ndim(wanted) == 0:
        count = checked_count("checkpoints", cast(int, wanted))
        return np.unique(np.geomspace(rounds, 1, count).round().astype(np.int64))  # the last first
    given = np.asarray(wanted)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise ArgumentTypeError(
            "checkpoints", f"must be how many, or a list of rounds; got {wanted!r}"
        )
    points = np.unique(given.astype(np.int64))
    if points[0] < 1 or points[-1] > rounds:
        raise ArgumentValueError("checkpoints", f"must lie in 1 .. {rounds}, got {wanted!r}")
    return points


def checked_vector(name: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return ``value`` as a contiguous vector of ``size`` float64, or a clear error."""
    vector = np.ascontiguousarray(value, dtype=np.float64)
    if vector.shape != (size,):
        raise ArgumentValueError(
            name, f"must be a flat vector of shape ({size},), got {vector.shape}"
        )
    return vector


def checked_arrays(
    name: str, values: Sequence[ArrayLike], shapes: Sequence[tuple[int, ...]]
) -> list[NDArray[np.float64]]:
    """Return one array of each of the ``shapes``, or a clear error."""
    if len(values) != len(shapes):
        raise ArgumentValueError(
            name, f"must hold {len(shapes)} arrays, one per layer; got {len(values)}"
        )
    arrays = [np.asarray(a, dtype=np.float64) for a in values]
    for k, (a, shape) in enumerate(zip(arrays, shapes, strict=True)):
        if a.shape != shape:
            raise ArgumentValueError(f"{name}[{k}]", f"must have shape {shape}, got {a.shape}")
    return arrays


def checked_distributions(name: str, P: NDArray[np.float64]) -> None:
    """Reject what is not a distribution along the last axis; renormalize rounding in place."""
    if not np.all(np.isfinite(P)):
        raise ArgumentValueError(name, "has entries that are not finite")
    if np.any(P < 0):
        where: Any = np.unravel_index(int(np.argmin(P)), P.shape)
        where = tuple(int(k) for k in where)
        raise ArgumentValueError(
            f"{name}{list(where)}", f"is {P[where]:g}; a probability cannot be negative"
        )
    total = P.sum(axis=-1)
    worst: Any = np.unravel_index(int(np.argmax(np.abs(total - 1))), total.shape)
    if abs(total[worst] - 1) > _SUM_TOLERANCE:
        row = f"{name}{[int(k) for k in worst]}" if worst else name
        raise ArgumentValueError(row, f"sums to {total[worst]:g}; a distribution must sum to 1")
    P /= total[..., None]


def checked_numbers(name: str, values: ArrayLike, limits: Sequence[int]) -> NDArray[np.int64]:
    """Return integers, one per layer, of which the h-th is in 0 .. limits[h] - 1, or an error."""
    given = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise ArgumentTypeError(name, f"must be integers, not of type {given.dtype}")
    if given.shape != (len(limits),):
        raise ArgumentValueError(
            name, f"must have shape ({len(limits)},), one per layer; got {given.shape}"
        )
    with np.errstate(invalid="ignore"):  # nan and inf are found below
        numbers = given.astype(np.int64)
    if np.any(numbers != given) or np.any(numbers < 0) or np.any(numbers >= np.array(limits)):
        raise ArgumentValueError(
            name, f"must be integers in 0..{[n - 1 for n in limits]}, got {given.tolist()}"
        )
    return numbers


def check_settings(cls: type, base: type, names: Iterable[str]) -> None:
    """Reject, when ``cls`` is made, settings that would hide what its ``base`` has."""
    for name in names:
        if hasattr(base, name):
            raise ArgumentTypeError(
                name,
                f"cannot be a setting of {cls.__name__}: {base.__name__}.{name} is used otherwise; "
                "call it something else",
            )


def setting(default: Any, check: Callable[..., Any], *bounds: Any, doc: str = "") -> Any:
    """Declare a field of a dataclass whose values `check_fields` checks.

    Parameters
    ----------
    default : object
        The value if none is given.
    check : function
        ``check(name, value, *bounds)`` of `unbounded.validation`: returns the value, or raises.
    *bounds
        More arguments of ``check``.
    doc : str
        What it means, for the docstring of the class.
    """
    return field(default=default, metadata={"check": (check, bounds), "doc": doc})


def one_of(name: str, value: str, options: tuple[str, ...]) -> str:
    """Check that a setting is one of the options of its ``Literal``."""
    checked_option(name, value, options)
    return value


def check_fields(group: Any) -> None:
    """Replace the fields of a dataclass by their checked values; None as a default is legal."""
    for one in fields(group):
        value = getattr(group, one.name)
        if "check" in one.metadata and not (value is None is one.default):
            check, bounds = one.metadata["check"]
            object.__setattr__(group, one.name, check(one.name, value, *bounds))
