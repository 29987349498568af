"""Where in a TOML text a key stands: Python's parser does not say."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Sequence
from typing import Any

Keys = tuple[str | int, ...]
"""A path into a document: ``("learners", 0, "clip")``."""

_ATTEMPTS = 500  # to parse a part of the text; a matrix of many lines may need more


def line_of(text: str, path: Keys) -> int | None:
    """The line on which the statement begins that brings ``path`` into a TOML document.

    A prefix of the lines parses exactly if no statement is cut in two, so TOML's own parser
    finds it: by bisection, for the first such prefix that contains the path.
    """
    lines = text.split("\n")
    attempts = 0

    def holds(end: int) -> bool | None:
        nonlocal attempts
        attempts += 1
        try:
            value: Any = tomllib.loads("\n".join(lines[:end]))
        except (ValueError, RecursionError):
            return None
        for step in path:
            inside = step in value if isinstance(step, str) and isinstance(value, dict) else (
                isinstance(value, Sequence) and isinstance(step, int) and step < len(value)
            )  # fmt: skip
            if not inside:
                return False
            value = value[step]
        return True

    if not path or not holds(len(lines)):
        return None
    without, within = 0, len(lines)
    while within - without > 1 and attempts < _ATTEMPTS:
        middle = (without + within) // 2
        for end in itertools.chain(range(middle, without, -1), range(middle + 1, within)):
            found = holds(end)
            if found is not None or attempts >= _ATTEMPTS:
                break
        if found is None:
            break
        without, within = (without, end) if found else (end, within)
    return without + 1 if attempts < _ATTEMPTS else None
