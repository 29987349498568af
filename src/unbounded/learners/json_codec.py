"""Values as JSON, NumPy's included: what learners in Python keep of themselves.

Every value comes back as it was, of the same type and to the last bit. There is no pickle: what is
read can be wrong, and cannot run anything.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import numpy as np

_ARRAY, _TUPLE = "__array__", "__tuple__"
_DTYPE = re.compile(r"[<>|][biufc]\d{1,2}\Z")


def to_json(value: Any, where: str) -> Any:
    """``value`` for `from_json`; ``where`` it stands is named if it cannot be kept.

    Examples
    --------
    >>> import numpy as np
    >>> from unbounded.learners.json_codec import from_json, to_json
    >>> from_json(to_json({"L": np.array([1, 2]), "window": (0.5, None)}, "state"))
    {'L': array([1, 2]), 'window': (0.5, None)}
    >>> to_json({"seen": {1, 2}}, "state")
    Traceback (most recent call last):
    TypeError: state['seen'] is of type set, which cannot be kept as JSON: state() may return
    numbers, texts, lists, tuples, dicts with texts as keys, and arrays of numbers
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (list, tuple):
        parts = [to_json(one, f"{where}[{i}]") for i, one in enumerate(value)]
        return parts if type(value) is list else {_TUPLE: parts}
    if type(value) is dict:
        named = all(type(key) is str for key in value)
        if named and _ARRAY not in value and _TUPLE not in value:
            return {key: to_json(one, f"{where}[{key!r}]") for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic) and _DTYPE.match(value.dtype.str):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_ARRAY: value.dtype.str, "shape": list(value.shape), "data": data}
    raise TypeError(
        f"{where} is of type {type(value).__name__}, which cannot be kept as JSON: state() may "
        "return numbers, texts, lists, tuples, dicts with texts as keys, and arrays of numbers"
    )


def from_json(kept: Any) -> Any:
    """The value that `to_json` was given, or a ValueError."""
    if isinstance(kept, list):
        return [from_json(one) for one in kept]
    if not isinstance(kept, dict):
        return kept
    if _TUPLE in kept:
        return tuple(map(from_json, kept[_TUPLE]))
    if _ARRAY not in kept:
        return {key: from_json(one) for key, one in kept.items()}
    kind, shape, data = kept[_ARRAY], kept["shape"], base64.b64decode(kept["data"], validate=True)
    whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not isinstance(kind, str) or not _DTYPE.match(kind) or not whole:
        raise ValueError("an array in it has no such type or shape")
    dtype = np.dtype(kind)
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array in it is not of its shape")
    array = np.frombuffer(data, dtype).reshape(shape).copy()
    return array if shape else array[()]  # a NumPy number has no shape
