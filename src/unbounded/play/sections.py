"""One flat buffer for everything that a learner knows, seen by kernels as a NamedTuple of views.

Saving a learner is saving its buffer. The views are made once: a kernel changes them in place and
returns nothing. Every state begins with ``head``, whole numbers and a few figures, and ``pi``, the
policy that the learner would play now (without its explorers).
"""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np

from unbounded.core.arrays import (
    Integers,
    Vector,
)

Sizes = dict[str, Any]  # a length or, for a NamedTuple, its Sizes

# Slots of ``head``.
TOLD = 0  # episodes told
VERSION = 1  # changes when what the learner plays changes
PHASE = 2  # EXPLORING or PLAYING
TARGET = 3  # which state is being sought, 0 .. S - 1
SPENT = 4  # episodes spent on it
VISITS = 5  # ... of which so many reached it
LIBRARY = 6  # how many exploration policies are stored
BEGAN = 7  # the first of them that belongs to the present target
EXPLORED = 8  # episodes of exploration in all
EPOCH = 9
UNIT = 10  # losses are kept in units of 2^UNIT
SOLVES = 11
FALLBACKS = 12  # solves that needed the interior point although there was a warm start
UNSOLVED = 13  # solves whose certificate exceeds the tolerance
WORST = 14  # largest certified gap over the smallest weight
STEPS = 15  # Newton steps
CLIPPED = 16
CURRENT = 17  # the stored policy that is being played
HEAD = 20

EXPLORING, PLAYING = 0.0, 1.0


def length(sizes: Sizes) -> int:
    """Of the buffer with these sections."""
    return sum(length(x) if isinstance(x, dict) else x for x in sizes.values())


def carve(kind: Any, sizes: Sizes, buffer: Vector) -> Any:
    """The NamedTuple ``kind`` of consecutive views into ``buffer``.

    A field that is a NamedTuple itself has a dict of sizes; a field of `Integers` is a view of the
    same bytes as int64, for scratch only.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> Two = NamedTuple("Two", [("x", Vector), ("y", Vector)])
    >>> two = carve(Two, {"x": 1, "y": 2}, np.arange(3.0))
    >>> two.y.tolist()
    [1.0, 2.0]
    """
    fields, start = [], 0
    for name, hint in get_type_hints(kind).items():
        size = sizes[name]
        end = start + (length(size) if isinstance(size, dict) else size)
        part = buffer[start:end]
        if isinstance(size, dict):
            fields.append(carve(hint, size, part))
        else:
            fields.append(part.view(np.int64) if hint == Integers else part)
        start = end
    if start != buffer.size:
        raise ValueError(f"the buffer has {buffer.size} entries, its sections {start}")
    return kind(*fields)
