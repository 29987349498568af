"""Make layered MDPs from tables in memory or in a file.

Episodes that end early go on in a state of its own, *the end*: the last of every layer but the
first. It costs nothing and is never left, so that all episodes have the same length and nothing is
added to what they cost.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import Layers
from unbounded.validation import checked_distributions, checked_horizon, shown

_NAMES = ("P", "initial", "horizon", "allowed", "ends")  # what a file may hold
_MOST = 250_000_000  # transitions, 2 GB of them
_REMEDY = "if the episode ends there, say so by ends=, and if there is no such action, by allowed="


class Given(NamedTuple):
    """Hold the arguments of `LayeredMDP`."""

    initial: Vector
    transitions: list[Vector]
    n_actions: int
    allowed: list[Vector]
    ends: bool


def with_end(sizes: Sequence[int]) -> list[int]:
    """Return the sizes of the layers when each but the first has the end as one more state."""
    return [sizes[0], *(n + 1 for n in sizes[1:])]


def layered(
    P: Any,
    initial: Any,
    horizon: SupportsIndex | None = None,
    allowed: Any = None,
    ends: Any = None,
) -> Given:
    """Turn what `LayeredMDP.from_arrays` is given into what `LayeredMDP` takes, or raise."""
    first = _numbers("initial", initial)
    if first.ndim != 1 or first.size == 0:
        raise ValueError(f"initial must be a non-empty vector, got shape {first.shape}")
    H = None if horizon is None else checked_horizon(horizon)
    steps, A = _steps(P, first.size, H)
    sizes = [first.size, *(step.shape[2] for step in steps)]
    actions = [*(step.shape[1] for step in steps), A]
    legal = _allowed(allowed, sizes, actions, A)
    if ends is not None:
        kept, over = _ends(ends, steps, first)
        steps = [_with_end(h, *step) for h, step in enumerate(zip(kept, over, strict=True))]
        legal = [legal[0], *(np.concatenate([table, np.ones((1, A))]) for table in legal[1:])]
    one = isinstance(_tables("P", P, 3), np.ndarray)
    padded = []
    for h, (step, table) in enumerate(zip(steps, legal, strict=False)):
        rows = np.zeros((step.shape[0], A, step.shape[2]))
        rows[:, : step.shape[1]] = step
        _check_rows("P" if one else f"P[{h}]", rows, table)
        padded.append(rows)
    return Given(first, padded, A, legal, ends is not None and bool(steps))


def _numbers(name: str, value: Any) -> Vector:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers, not {shown(value)}") from None


def _tables(name: str, value: Any, dimensions: int) -> Vector | list[Vector]:
    """Read one table for every layer, or a list with one for each, of these ``dimensions``."""
    if isinstance(value, list | tuple):
        try:
            whole = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):  # tables of different shapes, or no numbers
            return [_numbers(f"{name}[{h}]", table) for h, table in enumerate(value)]
    else:
        whole = _numbers(name, value)
    return list(whole) if whole.ndim == dimensions + 1 else whole


def _steps(P: Any, n: int, H: int | None) -> tuple[list[Vector], int]:
    """Read a table (n_h, A_h, n_{h+1}) for each step but the last, and the most actions."""
    found = _tables("P", P, 3)
    if isinstance(found, np.ndarray):
        if found.ndim != 3 or found.shape[0] != found.shape[2] or 0 in found.shape:
            raise ValueError(
                "P must have shape (S, A, S) or (H - 1, S, A, S), or be a list of tables, one for "
                f"each step but the last; got shape {found.shape}"
            )
        if found.shape[0] != n:
            raise ValueError(f"initial has {n} states, and P has {found.shape[0]}: give both S")
        if H is None:
            raise ValueError("horizon is needed where one table serves every step")
        if (H - 1) * found.size > _MOST:
            raise ValueError(
                f"{H} layers of {n} states and {found.shape[1]} actions have more than {_MOST:,} "
                "transitions: take a shorter horizon or merge states"
            )
        return [found] * (H - 1), found.shape[1]
    if H is not None and len(found) != H - 1:
        raise ValueError(
            f"P has {len(found)} tables, and horizon = {H} needs {H - 1}: one for each step but "
            "the last, which leads nowhere"
        )
    if not found:
        raise ValueError("P is empty: for a single step give a table (S, A, S) and horizon=1")
    for h, step in enumerate(found):
        if step.ndim != 3 or step.shape[0] != n or 0 in step.shape:
            before = "initial has" if h == 0 else f"P[{h - 1}] leads to"
            raise ValueError(
                f"P[{h}] must have shape (states, actions, next states), with the {n} states that "
                f"{before}; got {step.shape}"
            )
        n = step.shape[2]
    return found, max(step.shape[1] for step in found)


def _allowed(allowed: Any, sizes: list[int], actions: list[int], A: int) -> list[Vector]:
    """Read tables (n_h, A), one per layer: 1 where an action may be taken, else 0."""
    legal = [np.zeros((n, A)) for n in sizes]
    given: list[Vector] | Vector = [np.ones((n, a)) for n, a in zip(sizes, actions, strict=True)]
    if allowed is not None:
        given = _tables("allowed", allowed, 2)
    tables = [given] * len(sizes) if isinstance(given, np.ndarray) else given
    if len(tables) != len(sizes):
        raise ValueError(
            f"allowed has {len(tables)} tables for {len(sizes)} layers: give one (S, A) for all, "
            "or one for each, the last included"
        )
    for h, (table, n, a) in enumerate(zip(tables, sizes, actions, strict=True)):
        if table.shape not in ((n, a), (n, A)):
            raise ValueError(f"allowed must have shape {(n, a)} in layer {h}, got {table.shape}")
        legal[h][:, : table.shape[1]] = table
        legal[h][:, a:] = 0.0
    return legal


def _ends(ends: Any, steps: list[Vector], first: Vector) -> tuple[list[Vector], list[Vector]]:
    """Read for each step but the last its table, and the probabilities (n_h, A_h) of the end."""
    found = _tables("ends", ends, 2)
    if isinstance(found, np.ndarray) and found.ndim == 1:
        if np.asarray(ends).dtype != np.bool_ or any(len(step) != found.size for step in steps):
            raise ValueError(
                f"ends of one dimension must be a boolean for each of the {first.size} states, "
                f"got shape {found.shape} of type {np.asarray(ends).dtype}; otherwise give a "
                "probability for each state and action"
            )
        over = found == 1.0
        if np.any(first[over] > 0.0):
            s = int(np.argmax(over & (first > 0.0)))
            raise ValueError(
                f"initial[{s}] is {first[s]:g}, and by ends the episode is over in state {s}: let "
                "it begin elsewhere"
            )
        kept = [np.where(over, 0.0, step) for step in steps]
        return kept, [step[:, :, over].sum(axis=2) for step in steps]
    tables = [found] * len(steps) if isinstance(found, np.ndarray) else found
    shapes = [step.shape[:2] for step in steps]
    if [table.shape for table in tables] != shapes:
        raise ValueError(
            "ends must have the shape of P without its last dimension, "
            f"{shapes[0] if shapes else 'or be left out'}; got {np.shape(tables[0])}"
        )
    for table in tables:
        if not np.all((table >= 0.0) & (table <= 1.0)):
            bad = table[~((table >= 0.0) & (table <= 1.0))][0]
            raise ValueError(f"ends must be probabilities, got {bad:g}")
    return steps, tables


def _with_end(h: int, step: Vector, ends: Vector) -> Vector:
    """Add the end to the table of a step as one more state: the last, which is never left."""
    n, A, after = step.shape
    whole = np.zeros((n + (h > 0), A, after + 1))
    whole[:n, :, :after] = step
    whole[:n, :, after] = ends
    whole[n:, :, after] = 1.0
    return whole


def _check_rows(name: str, rows: Vector, legal: Vector) -> None:
    """Reject what is not a distribution, of the actions that are allowed."""
    rows = rows.copy()
    rows[legal != 1.0] = np.arange(rows.shape[2]) == 0
    try:
        checked_distributions(name, rows)
    except ValueError as error:
        remedy = f": {_REMEDY}" if "sums to" in str(error) else ""
        raise ValueError(f"{error}{remedy}") from None


# ---------------------------------------------------------------------- files


def write_npz(
    path: str | os.PathLike[str], initial: Vector, transitions: list[Vector], layers: Layers
) -> None:
    """Write the arguments of `layered` as the arrays of a file."""
    arrays: dict[str, Any] = {"initial": initial}
    end = 1 if layers.ends else 0
    for h, P in enumerate(transitions):
        n = len(P) - (end if h > 0 else 0)
        arrays[f"P_{h + 1}"] = P[:n, :, : P.shape[2] - end]
        if layers.ends:
            arrays[f"ends_{h + 1}"] = P[:n, :, -1]
    for h, table in enumerate(layers.allowed if layers.forbidden else ()):
        arrays[f"allowed_{h + 1}"] = table[: len(table) - (end if h > 0 else 0)]
    if not transitions:  # a table says how many actions there are
        n, A = initial.size, layers.n_actions
        arrays |= {"P": np.broadcast_to(np.eye(n)[:, None], (n, A, n)), "horizon": 1}
        if layers.forbidden:
            arrays["allowed"] = arrays.pop("allowed_1")
    with open(path, "wb") as file:  # np.savez would add .npz to another name
        np.savez_compressed(file, **arrays)


def read_npz(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the arguments of `layered` from a file, or raise."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array")
            arrays = {key: found[key] for key in found.files}
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise ValueError(
            f"{name} is not a file of arrays ({error}): write it by LayeredMDP.save, or by np.savez"
        ) from None
    given: dict[str, Any] = {}
    lists: dict[str, dict[int, Any]] = {}
    for key, array in arrays.items():
        numbered = re.fullmatch(r"(P|allowed|ends)_([1-9][0-9]*)", key)
        if numbered:
            lists.setdefault(numbered[1], {})[int(numbered[2])] = array
        elif key in _NAMES:
            given[key] = array
        else:
            raise ValueError(
                f"{name} has an array {key!r}, which means nothing here; there may be "
                f"{', '.join(_NAMES)}, or P_1, P_2, ... for tables of different shapes"
            )
    for key, tables in lists.items():
        if key in given or sorted(tables) != list(range(1, len(tables) + 1)):
            raise ValueError(f"{name} must have either {key}, or {key}_1, {key}_2, ... in a row")
        given[key] = [tables[h] for h in sorted(tables)]
    for key in ("P", "initial"):
        if key not in given:
            raise ValueError(f"{name} has no array {key!r}; it has {', '.join(sorted(arrays))}")
    if "horizon" in given:
        H = given["horizon"]
        if H.shape != () or H.dtype.kind not in "iu":
            raise ValueError(f"{name}: horizon must be an integer, not {shown(H)}")
        given["horizon"] = int(H)
    return given
