"""The losses of all pairs, as learners with full information are told them: a table per layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unbounded._arguments import checked_loss, shown
from unbounded.core.arrays import Vector
from unbounded.core.occupancy.layout import Layers


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
    parts = []
    for h, shape in enumerate(shapes):
        table = _numbers(f"{name}[{h}]", given[h])
        if layers.is_end(h + 1, shape[0] - 1) and table.shape == (shape[0] - 1, shape[1]):
            table = np.concatenate([table, np.zeros((1, shape[1]))])
        if table.shape != shape:
            raise ValueError(
                f"{name}[{h}] must have shape {shape}, states and actions; got {table.shape}"
            )
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


def _numbers(name: str, table: Any) -> Any:
    array = np.asarray(table)
    if array.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # of a long double; inf is found later
            return array.astype(np.float64)
    rows = [
        [checked_loss(f"{name}[{s}, {a}]", one) for a, one in enumerate(row)]
        for s, row in enumerate(array)
    ]
    return np.array(rows, dtype=np.float64).reshape(array.shape)
