"""Where in a TOML text a key stands: Python's parser does not say."""

from __future__ import annotations

import re
import tomllib
from typing import Any

Keys = tuple[str | int, ...]
"""A path into a document: ``("learners", 0, "clip")``."""

_STATEMENT = re.compile(r"[^=]*=|\s*\[\[?[^\[\],]+\]\]?\s*(#.*)?\r?$")  # what one may begin with
_ATTEMPTS = 200  # to parse a part of the text


def line_of(text: str, keys: Keys) -> int | None:
    """The line on which the statement begins that brings ``keys`` into a TOML document.

    The text up to some line parses exactly if it cuts no statement in two, so TOML's own parser
    finds the place: by bisection, for the first such line with the keys above it.

    Examples
    --------
    >>> from unbounded.experiments.toml_lines import line_of
    >>> line_of("a = [\\n  1,\\n]\\nb.c = 2", ("b", "c"))
    4
    """
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _STATEMENT.match(line)]
    places = [*starts, len(lines)]
    answers: dict[int, bool | None] = {}

    def holds(place: int) -> bool | None:
        """Whether the keys are above this place; None if it is inside of a statement."""
        if place not in answers:
            answers[place] = _contains("\n".join(lines[: places[place]]), keys)
        return answers[place]

    without, within = 0, len(places) - 1
    if not keys or not starts or not holds(within):
        return None
    while within - without > 1 and len(answers) < _ATTEMPTS:
        middle = (without + within) // 2
        outward = [*range(middle, without, -1), *range(middle + 1, within)]
        whole = next(
            (p for p in outward if len(answers) < _ATTEMPTS and holds(p) is not None), None
        )
        if whole is None:
            break
        if holds(whole):
            within = whole
        else:
            without = whole
    return places[without] + 1 if len(answers) < _ATTEMPTS else None


def _contains(text: str, keys: Keys) -> bool | None:
    try:
        value: Any = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in keys:
        if isinstance(key, str):
            inside = isinstance(value, dict) and key in value
        else:
            inside = isinstance(value, list) and key < len(value)
        if not inside:
            return False
        value = value[key]
    return True
