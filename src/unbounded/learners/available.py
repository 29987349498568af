"""Which arms are available at an ask: a mask, indices or names, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.learners.spec import SideAsk
from unbounded.validation import ArgumentTypeError, ArgumentValueError, checked_count, shown

UNFIT = re.compile("[\\0\\ud800-\\udfff]")  # what no database can keep, or no text can have


def distinct(names: Sequence[Any]) -> tuple[str, ...]:
    """Return names of arms, if they can be that.

    Examples
    --------
    >>> distinct(["eu-1", "eu-2"])
    ('eu-1', 'eu-2')
    """
    seen: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str) or not name or UNFIT.search(name):
            raise ValueError(
                f"the name of an arm must be a text, got {shown(name)}: give str() of it"
            )
        if name in seen:
            raise ValueError(f"there are two arms {name!r}: give each a name of its own")
        seen[str(name)] = None
    return tuple(seen)


def mask_of(available: Any, n: int, names: Sequence[str] | None = None) -> Vector:
    """Return 1.0 for each of the ``n`` arms that is available, and 0.0 for the others.

    Examples
    --------
    >>> mask_of([True, False, True], 3).tolist(), mask_of([2, 0], 3).tolist()
    ([1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    >>> mask_of(["us"], 2, ["eu", "us"]).tolist()
    [0.0, 1.0]
    """
    one = isinstance(available, str | bytes) or not hasattr(available, "__iter__")
    given = available if one or isinstance(available, np.ndarray) else list(available)
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        given = _indices(given, names)
    found = _array(given)
    if found.ndim != 1 or found.dtype.kind not in "biu":
        raise _wrong(f"must be a mask, indices or names of arms, got {shown(available)}")
    if found.dtype.kind == "b":
        if found.size != n:
            raise _wrong(f"must have {n} entries, one for each arm, got {found.size}")
        mask = found.astype(np.float64)
    else:
        outside = found[(found < 0) | (found >= n)]
        if outside.size:
            raise _wrong(f"must have arms in 0 .. {n - 1}, got {int(outside[0])}")
        mask = np.zeros(n)
        mask[found] = 1.0
        if mask.sum() != found.size:
            raise _wrong(f"must name each arm once, got {shown(available)}")
    if not mask.any():
        raise _wrong("must have at least one arm, got none: do not ask in such a round")
    return mask


def _array(given: Any) -> np.ndarray[Any, Any]:
    """Return an array, of floats if that cannot be a mask, or indices."""
    kinds = {isinstance(one, bool | np.bool_) for one in given} if isinstance(given, list) else {0}
    if len(kinds) == 2:  # True would be arm 1
        return np.zeros(1)
    try:
        found = np.asarray(given)
    except ValueError:  # lists of several lengths
        return np.zeros(1)
    return found.astype(np.int64) if found.shape == (0,) else found


def _indices(given: list[str], names: Sequence[str] | None) -> list[int]:
    if names is None:
        raise _wrong(f"has names, and the arms have none: got {shown(given)}")
    places = {name: k for k, name in enumerate(names)}
    for name in given:
        if name not in places:
            raise _wrong(f"must have arms among {shown(list(names))}, got {name!r}")
    return [places[name] for name in given]


def checked_arms(
    arms: Any, n: int, names: Sequence[str] | None = None
) -> tuple[Vector, tuple[str, ...] | None]:
    """Return the arms of a new learner as the indices that they had, -1 for new ones; and their
    names, if those of before have any.
    """
    if isinstance(arms, str) or not hasattr(arms, "__iter__"):
        raise ArgumentTypeError(
            "arms", f"must have the index of an arm, or None, for each, got {shown(arms)}"
        )
    given = list(arms)
    if names is not None:
        given = [one if isinstance(one, str) or one is None else _name(one, names) for one in given]
        if None in given:
            raise ArgumentValueError("arms", f"must have a name for each, got {shown(given)}")
        after = distinct(given)
        given = [names.index(one) if one in names else None for one in after]
    keep = [-1 if one is None else checked_count("arms", one, least=0) for one in given]
    old = [k for k in keep if k >= 0]
    if not old:
        raise ArgumentValueError("arms", f"must keep at least one arm, got {shown(given)}")
    if max(old) >= n or len(set(old)) < len(old):
        raise ArgumentValueError(
            "arms", f"must have indices in 0 .. {n - 1}, each at most once, got {shown(given)}"
        )
    return np.array(keep, dtype=np.float64), None if names is None else after


def _name(arm: Any, names: Sequence[str]) -> str:
    number = checked_count("arms", arm, least=0)
    if number >= len(names):
        raise ArgumentValueError("arms", f"must have arms among {shown(list(names))}, got {number}")
    return names[number]


def moved_record(record: tuple[Any, ...], keep: Vector, n: int) -> tuple[Any, ...]:
    """Return the record of an ask after arms came or went; of an arm that has gone, -1.

    New arms have slept then.
    """
    arm, probability, asked, number = record
    after = int(np.flatnonzero(keep == arm)[0]) if np.any(keep == arm) else -1
    if not isinstance(asked, SideAsk):
        if after >= 0 and np.all(keep >= 0):
            return after, probability, asked, number
        note = np.zeros(n + 2)
        note[n] = 1.0
        asked = SideAsk(asked.real, int(asked.imag), note)
    info, clock, before = asked
    note = np.ones(keep.size + 2)
    old = np.flatnonzero(keep >= 0)
    note[old] = before[keep[old].astype(np.int64)]
    note[keep.size :] = before[n:]
    return after, probability, SideAsk(info, clock, note), number


def _wrong(what: str) -> ArgumentValueError:
    return ArgumentValueError("available", what)
