"""Checks of arguments: the value as it should be, or an error that names it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SUM_TOLERANCE = 1e-9  # distributions this close to one are renormalised, others are refused


def checked_count(name: str, value: SupportsIndex, least: int = 1) -> int:
    """``value`` as an int of at least ``least``, or a clear error."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if int(value) < least:
        raise ValueError(f"{name} must be at least {least}, got {int(value)}")
    return int(value)


def _check_real(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, not {value!r}")


def checked_positive(name: str, value: float, *, below: float = math.inf) -> float:
    """``value`` as a finite float in (0, below), or a clear error."""
    _check_real(name, value)
    if not 0.0 < value < below or math.isinf(value):
        limit = "" if math.isinf(below) else f" and below {below:g}"
        raise ValueError(f"{name} must be above 0{limit}, got {value!r}")
    return float(value)


def checked_within(name: str, value: float, low: float, high: float) -> float:
    """``value`` as a float in [low, high], or a clear error."""
    _check_real(name, value)
    if not low <= value <= high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {value!r}")
    return float(value)


def checked_at_least(name: str, value: float, least: float) -> float:
    """``value`` as a finite float of at least ``least``, or a clear error."""
    _check_real(name, value)
    if not least <= value < math.inf:
        raise ValueError(f"{name} must be at least {least:g} and finite, got {value!r}")
    return float(value)


def checked_finite(name: str, value: float) -> float:
    """``value`` as a finite float, or a clear error."""
    _check_real(name, value)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return float(value)


def checked_share(name: str, value: float) -> float:
    """``value`` as a float in [0, 1], or a clear error."""
    return checked_within(name, value, 0.0, 1.0)


def checked_flag(name: str, value: bool) -> bool:
    """``value`` as True or False, or a clear error."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, not {value!r}")
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
        low, high = (float(x) for x in value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be two numbers (low, high), not {value!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be finite with low < high, got {value!r}")
    return low, high


def checked_option(name: str, value: str, options: tuple[str, ...]) -> int:
    """The position of ``value`` among the ``options``, or a clear error."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
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
    if given.shape != (len(limits),):
        raise ValueError(
            f"{name} must have shape ({len(limits)},), one per layer; got {given.shape}"
        )
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be whole numbers, not of type {given.dtype}")
    with np.errstate(invalid="ignore"):  # nan and inf are found below
        numbers = given.astype(np.int64)
    if np.any(numbers != given) or np.any(numbers < 0) or np.any(numbers >= np.array(limits)):
        raise ValueError(
            f"{name} must be whole numbers in 0..{[n - 1 for n in limits]}, got {given.tolist()}"
        )
    return numbers
