"""The document that a learner is kept as: JSON with a digest, written and read as a whole.

Nothing in a document is trusted: the digest finds accidents, and whoever reads the fields checks
each of them, because a digest can be computed by anybody. There is no pickle: what is read can be
wrong, and cannot run anything. `to_json` is for what learners in Python keep of themselves: every
value comes back as it was, of the same type and to the last bit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import PCG64

from unbounded.core.arrays import Vector
from unbounded.io import read_regular

DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip
"""What can be raised when a damaged document is read."""
_FORMAT = "unbounded.learner"
_VERSION = 3
_ARRAY, _TUPLE = "__array__", "__tuple__"
_DTYPE = re.compile(r"[<>|][biufc]\d{1,2}\Z")
_LONG = 1 << 15  # bytes, from which on what is kept is compressed


def written(algorithm: str, fields: Mapping[str, Any]) -> str:
    """Return the document of a learner with these ``fields``, as JSON."""
    document = {"format": _FORMAT, "version": _VERSION, "algorithm": algorithm, **fields}
    text = json.dumps(document)
    return f'{text[:-1]}, "digest": "{_digest(text)}"}}'


def read(text: str, algorithm: str) -> dict[str, Any]:
    """Return the fields of a document that `written` made, or a ValueError."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ValueError("it is something else")
    if document.get("version") != _VERSION:
        raise ValueError(f"its version is {document.get('version')!r}, not {_VERSION}")
    if document.pop("digest", None) != _digest(json.dumps(document)):
        raise ValueError("its digest does not fit its content: it was damaged or changed")
    if document["algorithm"] != algorithm:
        name = document["algorithm"]
        raise ValueError(f"it holds a {name}: use {name}.load")
    return document


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(saved: str | os.PathLike[str]) -> str:
    """Return what was saved: the text itself, or that of a file."""
    if isinstance(saved, str) and saved.lstrip().startswith("{"):
        return saved
    return read_regular(saved).decode()


def encoded(buffer: Vector) -> str | dict[str, Any]:
    """Return a buffer as base64 of little-endian float64, compressed if it is long.

    Most of what is long are zeros and small counts.
    """
    data = buffer.astype("<f8").tobytes()
    return _compressed(data) if len(data) >= _LONG else base64.b64encode(data).decode()


def decoded(kept: object) -> Vector:
    """Return the buffer that `encoded` was given."""
    if not isinstance(kept, str | dict):
        raise ValueError("its buffer is not text")
    try:
        data = base64.b64decode(kept, validate=True) if isinstance(kept, str) else _whole(kept)
        return np.frombuffer(data, "<f8").astype(np.float64)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise ValueError(f"its buffer cannot be read: {error}") from None


def shortened(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings as they are, or compressed if they are long: a support has an entry per triple."""
    data = json.dumps(settings).encode()
    return _compressed(data) if len(data) >= _LONG else settings


def lengthened(kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings that `shortened` was given."""
    if "zlib" not in kept:
        return kept
    try:
        settings = json.loads(_whole(kept))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"its settings cannot be read: {error}") from None
    if not isinstance(settings, dict):
        raise ValueError("its settings cannot be read")
    return settings


def _compressed(data: bytes) -> dict[str, Any]:
    return {"zlib": base64.b64encode(zlib.compress(data, 6)).decode(), "bytes": len(data)}


def _whole(kept: Mapping[str, Any]) -> bytes:
    """Return what was compressed, if it is as long as was said: what is more is not even made."""
    length = whole_number(kept["bytes"], 2**48)
    engine = zlib.decompressobj()
    data = engine.decompress(base64.b64decode(kept["zlib"], validate=True), length + 1)
    if len(data) != length or not engine.eof or engine.unused_data:
        raise ValueError(f"it is not {length} bytes")
    return data


def generator_fields(bits: PCG64) -> dict[str, str]:
    """The state of a generator; JSON's readers elsewhere may not know numbers of 128 bits."""
    return {key: str(value) for key, value in bits.state["state"].items()}


def restore_generator(bits: PCG64, fields: Mapping[str, str]) -> None:
    """Let ``bits`` go on where `generator_fields` were taken."""
    numbers = {}
    for key in ("state", "inc"):
        digits = fields[key]
        if not (isinstance(digits, str) and digits.isascii() and digits.isdigit()):
            raise ValueError("its generator cannot be read")
        if len(digits) > 39 or int(digits) >= 2**128:
            raise ValueError("its generator has no such state")
        numbers[key] = int(digits)
    if numbers["inc"] % 2 == 0:
        raise ValueError("its generator has no such state")
    state: Any = {"bit_generator": "PCG64", "state": numbers, "has_uint32": 0, "uinteger": 0}
    bits.state = state


def whole_number(value: object, below: int) -> int:
    """Return ``value``, if it is an int in 0 .. below - 1."""
    if type(value) is not int or not 0 <= value < below:
        raise ValueError(f"{value!r} is not an integer below {below}")
    return value


def to_json(value: Any, where: str) -> Any:
    """Return ``value`` for `from_json`; ``where`` it stands is named if it cannot be kept."""
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
    """Return the value that `to_json` was given, or a ValueError."""
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
