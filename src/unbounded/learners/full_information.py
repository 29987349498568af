"""The losses of all pairs, as learners with full information are told them: a table per layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import Layers
from unbounded.validation import checked_loss, shown


def all_losses(layers: Layers, learner: str, name: str, tables: Any) -> Vector:
    """Losses of all pairs, a new flat vector, from one table (n_h, A) per layer; or a clear error.

    What is said of actions that are not allowed, and of the end, does not count and need not be
    finite; the row of the end may be left out.

    Examples
    --------
    >>> all_losses(Layers([1, 2], n_actions=2), "APOMVP", "losses", [[[1, 2]], [[3, 4], [5, 6]]])
    array([0., 1., 2., 3., 4., 5., 6.])
    """
    shapes = [(n, layers.n_actions) for n in layers.sizes]
    try:
        given = [] if isinstance(tables, str | bytes | Mapping) else list(tables)
    except TypeError:
        given = []
    if len(given) != len(shapes) or not is_tables(given):
        raise ValueError(
            f"{learner} learns from the {name} of all states and actions: tell {name}= as one "
            f"table per layer, of shapes {shapes}, got {shown(tables)}"
        )
    flat = np.ones(layers.n_pairs)
    flat[layers.free] = 0.0
    counts, parts = layers.unpack_pairs(flat), []
    for h, shape in enumerate(shapes):
        found, n = np.shape(given[h]), shape[0]
        if layers.is_end(h + 1, n - 1) and found == (n - 1, shape[1]):
            n -= 1
        if found != (n, shape[1]):
            raise ValueError(
                f"{name}[{h}] must have shape {shape}, states and actions; got {found}"
            )
        table = np.zeros(shape)
        table[:n] = _numbers(f"{name}[{h}]", given[h], counts[h])
        parts.append(table.ravel())
    flat = np.concatenate([np.zeros(1), *parts])
    flat[layers.free] = 0.0
    if not np.isfinite(flat).all():
        h, (s, a) = next(
            (h, where)
            for h, table in enumerate(layers.unpack_pairs(flat))
            for where in np.argwhere(~np.isfinite(table)).tolist()
        )
        checked_loss(f"{name}[{h}][{s}, {a}]", float(layers.unpack_pairs(flat)[h][s, a]))
    return flat


def is_tables(values: Any) -> bool:
    """Whether these are tables, and not numbers."""
    try:
        return len(values) > 0 and all(np.ndim(value) == 2 for value in values)
    except (TypeError, ValueError):  # no list, or one of ragged rows
        return False


def _numbers(name: str, table: Any, counts: Any) -> Any:
    """The numbers of a table, of which those count where ``counts`` is not 0."""
    if type(table) is np.ndarray and table.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # of a long double; inf is found later
            return table.astype(np.float64)
    return [
        [
            checked_loss(f"{name}[{s}, {a}]", one) if counts[s, a] else 0.0
            for a, one in enumerate(row)
        ]
        for s, row in enumerate(table)
    ]
