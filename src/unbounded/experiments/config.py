"""Where an experiment is read and written: the one place that knows its TOML file.

A list where one value is expected spans a grid. Whatever is wrong with a file is said in one
sentence, with the line and the nearest name that would have been right, before anything runs.
`reader` checks a document.
"""

from __future__ import annotations

import os
import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from unbounded.experiments.experiment import ConfigError, Experiment
from unbounded.experiments.reader import Keys, read
from unbounded.io import read_regular


def load(path: str | os.PathLike[str], *, quick: bool = False) -> Experiment:
    """Read an experiment from a TOML file; `ConfigError` says what is wrong with it.

    With ``quick``, what its table ``quick`` says comes before what is said outside of it. Files
    that it names (``path = ...``) are sought from the directory that it is in.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}): {error.reason}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    e = _loads(text, os.fspath(path), quick, Path(path).parent)
    if e.name:
        return e
    return msgspec.structs.replace(e, name=re.sub(r"[^A-Za-z0-9_-]", "-", Path(path).stem)[:100])


def loads(text: str, source: str = "experiment", *, quick: bool = False) -> Experiment:
    """Read an experiment from TOML text; ``source`` is named in errors. Files that it names are
    sought from the current directory.
    """
    return _loads(text, source, quick, Path())


def _loads(text: str, source: str, quick: bool, folder: Path) -> Experiment:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an int of 5,000 digits is a ValueError too
        message = str(error)
        place = re.search(r" \(at (line \d+), column \d+\)", message)
        if place:
            message = message.replace(place[0], "")
        where = f"{source}, {place[1]}" if place else source
        raise ConfigError(f"{where}: not valid TOML: {message}") from None
    return read(document, source, lambda path: line_of(text, path), quick, folder)


def experiment(document: Mapping[str, Any], *, quick: bool = False) -> Experiment:
    """Make an experiment from a dict with the keys of the TOML file."""
    return read(document, "experiment", lambda path: None, quick, Path())


def to_dict(e: Experiment) -> dict[str, Any]:
    """Return the dict that makes an equal experiment."""
    empty = ((), "", None)
    document = {
        field: value for field in e.__struct_fields__ if (value := getattr(e, field)) not in empty
    }
    for field in ("learners", "adversaries", "worlds"):
        if field in document:
            document[field] = [
                {"name": entry.name, **{k: _shortest(v) for k, v in entry.settings.items()}}
                for entry in document[field]
            ]
    for field in ("arms", "rounds", "episodes"):
        if field in document:
            document[field] = _shortest(document[field])
    return {k: list(v) if isinstance(v, tuple) else v for k, v in document.items()}


def dumps(e: Experiment) -> str:
    """Return the TOML text that makes an equal experiment."""
    import tomli_w

    return tomli_w.dumps(to_dict(e))


def _shortest(values: tuple[Any, ...]) -> Any:
    """One value stands for itself, unless it is a list of lists, which would look like several."""
    one = values[0]
    nested = isinstance(one, list | tuple) and any(isinstance(part, list | tuple) for part in one)
    return one if len(values) == 1 and not nested else list(values)


_STATEMENT = re.compile(r"[^=]*=|\s*\[\[?[^\[\],]+\]\]?\s*(#.*)?\r?$")  # what one may begin with
_ATTEMPTS = 50  # to find the end of a statement


def line_of(text: str, keys: Keys) -> int | None:
    """Find the line on which the statement begins that brings ``keys`` into a TOML document.

    The text up to some line parses exactly if it cuts no statement in two: TOML's own parser finds
    the place, by bisection.

    Examples
    --------
    >>> from unbounded.experiments.config import line_of
    >>> line_of("a = [\\n  1,\\n]\\nb.c = 2", ("b", "c"))
    4
    """
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if _STATEMENT.match(line)] + [len(lines)]

    def above(place: int) -> bool:
        """Return whether the keys are above a place, or the end of the statement that it is in."""
        tried = (_contains("\n".join(lines[:end]), keys) for end in places[place:][:_ATTEMPTS])
        return next(found for found in tried if found is not None)

    try:
        place = bisect_left(range(len(places)), True, key=above)
    except StopIteration:  # a statement of very many lines
        return None
    return places[place - 1] + 1 if keys and 0 < place < len(places) else None


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
