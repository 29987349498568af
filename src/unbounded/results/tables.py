"""Results as frames, and as Parquet files that give them back bit for bit.

A file has the columns of the frame, for whoever reads it as a table, then the fields of the
results with ``_`` before their names, and what is the same in all rows as JSON in its metadata.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from unbounded.io import printable, read_regular, write_atomic
from unbounded.results import Played
from unbounded.validation import checked_option

_KEY, _FORMAT, _VERSION = "unbounded", b"unbounded.results", 1
_NO_DIGEST = 64 * "0"
_PLACES = {"Simulation": "unbounded.simulation.bandit", "MDPSimulation": "unbounded.simulation.mdp"}
_NO_POLARS = "{} needs polars: pip install 'unbounded[experiments]'"


def frame(named: Mapping[str, Played], library: str) -> Any:
    """Return a row for each learner, replicate and checkpoint."""
    checked_option("library", library, ("polars", "pandas"))
    columns = _columns(named)
    if library == "polars":
        return _frame(columns)
    try:
        import pandas as pd
    except ImportError:
        raise ModuleNotFoundError("to_frame('pandas') needs pandas: pip install pandas") from None
    return pd.DataFrame(columns)


def _frame(columns: dict[str, Any]) -> Any:
    pl = _polars("to_frame")
    return pl.DataFrame(columns).with_columns(pl.col("^reach$").fill_nan(None))  # as in the lab


def _polars(what: str) -> Any:
    try:
        import polars as pl
    except ImportError:
        raise ModuleNotFoundError(_NO_POLARS.format(what)) from None
    return pl


def _columns(named: Mapping[str, Played]) -> dict[str, Any]:
    parts = [_rows(name, one) for name, one in named.items()]
    columns: dict[str, Any] = {}
    for name in parts[0]:
        pieces = [part[name] for part in parts]
        if isinstance(pieces[0], list):
            columns[name] = [text for piece in pieces for text in piece]
        else:
            columns[name] = np.concatenate(pieces)
    return columns


def _rows(name: str, one: Played) -> dict[str, Any]:
    replicates, points = one.clipped.shape
    count = replicates * points
    return {
        "learner": [name] * count,
        "adversary": [one.adversary] * count,
        "replicate": np.repeat(np.arange(one._first, one._first + replicates), points),
        "round": np.tile(one.checkpoints, replicates),
        **{column: values.reshape(count) for column, values in one.columns().items()},
    }


# ------------------------------------------------------------------------- files


def save(path: str | os.PathLike[str], kind: str, named: Mapping[str, Played]) -> None:
    """Write results to a Parquet file."""
    _polars("save")  # or a sentence that it is missing
    learners = []
    arrays: dict[str, list[NDArray[Any]]] = {}
    for name, one in named.items():
        own, facts = _taken_apart(one)
        learners.append({"name": name, **facts})
        for field, values in own.items():
            arrays.setdefault(field, []).append(values)
    first = next(iter(named.values()))
    replicates, points = first.clipped.shape
    whole = {field: np.stack(values) for field, values in arrays.items()}
    about = {
        "format": _FORMAT.decode(),
        "digest": _NO_DIGEST,
        "version": _VERSION,
        "kind": kind,
        "of": type(first).__name__,
        "learners": learners,
        "checkpoints": first.checkpoints.tolist(),
        "replicates": replicates,
        "dimensions": {field: values.ndim - 1 for field, values in whole.items()},
    }
    columns = _columns(named)
    for field, values in whole.items():
        if values.ndim == 2:  # one value for each replicate
            values = np.repeat(values[:, :, None], points, axis=2)
        columns[f"_{field}"] = values.reshape(
            len(learners) * replicates * points, *values.shape[3:]
        )
    buffer = io.BytesIO()
    _frame(columns).write_parquet(buffer, metadata={_KEY: json.dumps(about)})
    write_atomic(os.path.realpath(path), _sealed(buffer.getvalue()))  # a link stays one


def load(path: str | os.PathLike[str], kind: str) -> dict[str, Played]:
    """Return the results in a file, by the names of the learners."""
    pl = _polars("load")
    content = read_regular(path)
    try:
        if _sealed(content) != content:  # polars can panic on what is damaged
            raise ValueError("its digest does not fit its content: it was damaged or changed")
        about = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[_KEY])
        return _put_together(about, pl.read_parquet(io.BytesIO(content)), kind)
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from None


def _sealed(content: bytes) -> bytes:
    """A file with the digest of all of its other bytes, in the place that its metadata have."""
    marks = list(re.finditer(rb'"format": "%b", "digest": "([0-9a-f]{64})"' % _FORMAT, content))
    if not marks:
        raise ValueError("it holds no results that `save` has written")
    begin, end = marks[-1].span(1)  # metadata are at the end
    before, after = content[:begin], content[end:]
    digest = hashlib.sha256(before + after).hexdigest()
    return before + digest.encode() + after


def _put_together(about: dict[str, Any], rows: Any, kind: str) -> dict[str, Played]:
    if about["version"] != _VERSION:
        raise ValueError(f"its version is {about['version']!r}, not {_VERSION}")
    if about["kind"] != kind:
        held = printable(about["kind"])
        raise ValueError(f"it holds a {held}: use {held}.load")
    points = np.array(about["checkpoints"], dtype=np.int64)
    shape = len(about["learners"]), about["replicates"], points.size
    whole = {}
    for field, dimensions in about["dimensions"].items():
        values = rows[f"_{field}"].to_numpy()
        values = values.reshape(*shape, *values.shape[1:])
        whole[field] = values[:, :, 0] if dimensions == 1 else values
    cls = getattr(import_module(_PLACES[about["of"]]), about["of"])
    found = {}
    for k, facts in enumerate(about["learners"]):
        name = facts.pop("name")
        facts["_root"] = SeedSequence(**facts.pop("_root"))
        own = {field: np.ascontiguousarray(values[k]) for field, values in whole.items()}
        found[name] = cls(checkpoints=points, **own, **facts)
    return found


def _taken_apart(one: Played) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the fields that are arrays, and the others as JSON can hold them."""
    arrays: dict[str, NDArray[Any]] = {}
    facts: dict[str, Any] = {}
    for field in fields(one):
        value = getattr(one, field.name)
        if isinstance(value, SeedSequence):
            facts[field.name] = {"entropy": value.entropy, "spawn_key": list(value.spawn_key)}
        elif not isinstance(value, np.ndarray):
            facts[field.name] = value
        elif field.name != "checkpoints":
            arrays[field.name] = value
    return arrays, facts
