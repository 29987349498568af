"""An experiment: typed, frozen, and the same thing as a TOML file.

A list where one value is expected spans a grid. Whatever is wrong with a file is said in one
sentence, with the line and the nearest name that would have been right, before anything runs.
"""

from __future__ import annotations

import difflib
import itertools
import math
import os
import re
import reprlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from unbounded.registry import REQUIRED, Parameter, Registered, adversaries, learners
from unbounded.simulate import recorded_rounds
from unbounded.toml_lines import Keys, line_of

MOST_CELLS = 1_000_000

_Count = Annotated[int, Meta(ge=1, le=10**12)]
_Arms = Annotated[int, Meta(ge=1, le=10**7)]
_ENTRIES = "[[{}]] tables, each with the name of a class and its settings"
_RESERVED = {"n_arms": "arms", "seed": "seed"}


class ConfigError(ValueError):
    """What is wrong with an experiment, where, and what would be right."""


class Entry(msgspec.Struct, frozen=True):
    """A registered class, and for each setting the values that it takes."""

    name: str
    settings: dict[str, tuple[Any, ...]] = {}

    def variants(self) -> list[dict[str, Any]]:
        """Every combination of the values."""
        combinations = itertools.product(*self.settings.values())
        return [dict(zip(self.settings, values, strict=True)) for values in combinations]


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """Learners x adversaries x arms x rounds, each combination played ``replicates`` times.

    Made by `load` from a file or by `experiment` from a dict, which check it.

    Attributes
    ----------
    name : str
        Letters, digits, ``.``, ``_`` and ``-``; by default that of the file.
    learners, adversaries : tuple of Entry
    arms, rounds : tuple of int
    replicates : int
        Replicate r has the same losses and the same random words in every cell.
    seed : int
        The root of all randomness.
    checkpoints : int or tuple of int
        At which rounds to record; an int means that many, log-spaced, the last included.
    pseudo_regret : bool
        Whether to follow pseudo-regret too, which costs a pass over the arms a round.
    """

    learners: tuple[Entry, ...]
    adversaries: tuple[Entry, ...]
    arms: tuple[int, ...]
    rounds: tuple[int, ...]
    name: str = ""
    replicates: int = 10
    seed: int = 0
    checkpoints: int | tuple[int, ...] = 20
    pseudo_regret: bool = True


_FIELDS: dict[str, tuple[Any, str]] = {
    "name": (Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\Z")],
             "letters, digits, '.', '_' and '-', at most 100 of them"),
    "learners": (Annotated[list[Any], Meta(min_length=1)], _ENTRIES.format("learners")),
    "adversaries": (Annotated[list[Any], Meta(min_length=1)], _ENTRIES.format("adversaries")),
    "arms": (_Arms | Annotated[tuple[_Arms, ...], Meta(min_length=1)],
             "a whole number from 1 to 10 million, or a list of such numbers"),
    "rounds": (_Count | Annotated[tuple[_Count, ...], Meta(min_length=1)],
               "a whole number from 1 to 10^12, or a list of such numbers"),
    "replicates": (Annotated[int, Meta(ge=1, le=10**9)], "a whole number from 1 to 10^9"),
    "seed": (Annotated[int, Meta(ge=0, le=2**63 - 1)], "a whole number from 0 to 2^63 - 1"),
    "checkpoints": (
        Annotated[int, Meta(ge=1, le=10**6)] | Annotated[tuple[_Count, ...], Meta(min_length=1)],
        "a whole number from 1 to 10^6, or a list of rounds"),
    "pseudo_regret": (bool, "true or false"),
}  # fmt: skip
_REQUIRED = ("learners", "adversaries", "arms", "rounds")

Lines = Callable[[Keys], int | None]


def load(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment from a TOML file; `ConfigError` says what is wrong with it."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}): {error.reason}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    e = loads(text, os.fspath(path))
    if e.name:
        return e
    return msgspec.structs.replace(e, name=re.sub(r"[^A-Za-z0-9_-]", "-", Path(path).stem)[:100])


def loads(text: str, source: str = "experiment") -> Experiment:
    """Read an experiment from TOML text; ``source`` is named in errors.

    Examples
    --------
    >>> from unbounded import config
    >>> config.loads("rounds = 100\\nreplicate = 3")
    Traceback (most recent call last):
    unbounded.config.ConfigError: experiment, line 2: unknown key 'replicate'; the nearest valid
    one is 'replicates' (valid: learners, adversaries, arms, rounds, name, replicates, seed,
    checkpoints, pseudo_regret)
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an int of 5,000 digits is a ValueError too
        message = str(error)
        place = re.search(r" \(at (line \d+), column \d+\)", message)
        if place:
            message = message.replace(place[0], "")
        where = f"{source}, {place[1]}" if place else source
        raise ConfigError(f"{where}: not valid TOML: {message}") from None
    return _Reader(source, lambda path: line_of(text, path)).experiment(document)


def experiment(document: Mapping[str, Any]) -> Experiment:
    """Make an experiment from a dict with the keys of the TOML file.

    Examples
    --------
    >>> from unbounded import config
    >>> e = config.experiment({
    ...     "learners": [{"name": "SCB", "clip": ["scale", "range"]}],
    ...     "adversaries": [{"name": "StochasticGap", "scale": [1e-6, 1e6]}],
    ...     "arms": 5,
    ...     "rounds": [100, 1000],
    ... })
    >>> e.rounds, e.learners[0].variants()
    ((100, 1000), [{'clip': 'scale'}, {'clip': 'range'}])
    """
    return _Reader("experiment", lambda path: None).experiment(document)


def to_dict(e: Experiment) -> dict[str, Any]:
    """The dict that makes an equal experiment."""
    document = {field: getattr(e, field) for field in e.__struct_fields__}
    for field in ("learners", "adversaries"):
        document[field] = [
            {"name": entry.name, **{k: _shortest(v) for k, v in entry.settings.items()}}
            for entry in document[field]
        ]
    document |= {"arms": _shortest(e.arms), "rounds": _shortest(e.rounds)}
    if not e.name:
        del document["name"]
    return {k: list(v) if isinstance(v, tuple) else v for k, v in document.items()}


def dumps(e: Experiment) -> str:
    """The TOML text that makes an equal experiment.

    Examples
    --------
    >>> from unbounded import config
    >>> e = config.experiment({
    ...     "learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...     "arms": 5, "rounds": 100})
    >>> config.loads(config.dumps(e)) == e
    True
    """
    import tomli_w

    return tomli_w.dumps(to_dict(e))


def _shortest(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else list(values)


class _Reader:
    """Checks a document and makes an `Experiment` of it; knows where to point in errors."""

    def __init__(self, source: str, lines: Lines) -> None:
        self._source = source
        self._lines = lines

    def _fail(self, path: Keys, message: str) -> NoReturn:
        line = self._lines(path)
        where = self._source if line is None else f"{self._source}, line {line}"
        raise ConfigError(f"{where}: {message}")

    def experiment(self, document: Mapping[str, Any]) -> Experiment:
        for key in document:
            if key not in _FIELDS:
                order = Experiment.__struct_fields__
                self._fail((key,), f"unknown key {_short(key)}; {nearest(key, order)}")
        for key in _REQUIRED:
            if key not in document:
                self._fail((), f"{key} is missing; it must be {_FIELDS[key][1]}")
        fields = {}
        for key, value in document.items():
            kind, description = _FIELDS[key]
            try:
                fields[key] = msgspec.convert(value, kind)
            except msgspec.ValidationError:
                self._fail((key,), f"{key} must be {description}, got {_short(value)}")
        for key in ("arms", "rounds"):
            value = fields[key]
            fields[key] = value if isinstance(value, tuple) else (value,)
        for key, known in (("learners", learners()), ("adversaries", adversaries())):
            fields[key] = tuple(
                self._entry((key, i), value, known) for i, value in enumerate(fields[key])
            )
        e = Experiment(**fields)
        self._check_sizes(e)
        self._check_settings(e)
        return e

    def _entry(self, path: Keys, table: Any, known: Mapping[str, Registered]) -> Entry:
        where = f"{path[0]}[{path[1]}]"
        if not isinstance(table, Mapping):
            self._fail(path, f"{where} must be a table with a name, got {_short(table)}")
        name = table.get("name")
        if not isinstance(name, str) or name not in known:
            what = "needs a name" if name is None else f"has an unknown name {_short(name)}"
            at = path if name is None else (*path, "name")
            self._fail(at, f"{where} {what}; {nearest(name, known)}")
        parameters = known[name].parameters
        settings = {}
        for key, value in table.items():
            if key == "name":
                continue
            at = (*path, key)
            if key in _RESERVED and key not in parameters:
                top = _RESERVED[key]
                self._fail(at, f"{where}.{key} is set by {top!r} at the top of the experiment")
            if key not in parameters:
                self._fail(at, f"{name} has no setting {_short(key)}; {nearest(key, parameters)}")
            settings[key] = self._values(at, f"{where}.{key}", parameters[key], value)
        for key, parameter in parameters.items():
            if parameter.default is REQUIRED and key not in settings:
                self._fail(path, f"{where}: {name} needs {key}, {parameter.text or 'a value'}")
        return Entry(name, settings)

    def _values(self, path: Keys, where: str, parameter: Parameter, value: Any) -> tuple[Any, ...]:
        if _depth(value) <= parameter.depth:
            value = [value]
        if not value:
            self._fail(path, f"{where} is an empty list: nothing would be run")
        return tuple(self._value(path, where, parameter, one) for one in value)

    def _value(self, path: Keys, where: str, parameter: Parameter, value: Any) -> Any:
        options = parameter.options
        if options and not (isinstance(value, str) and value in options):
            self._fail(path, f"{where} cannot be {_short(value)}; {nearest(value, options)}")
        try:
            value = msgspec.convert(value, parameter.annotation)
        except msgspec.ValidationError:
            kind = parameter.text or parameter.annotation
            self._fail(path, f"{where} must be {kind}, got {_short(value)}")
        except (TypeError, OverflowError):  # an annotation that says nothing to msgspec
            pass
        if not _finite(value):
            self._fail(path, f"{where} must be finite, got {_short(value)}")
        return value

    def _check_sizes(self, e: Experiment) -> None:
        cells = len(e.arms) * len(e.rounds)
        for entries in (e.learners, e.adversaries):
            cells *= sum(math.prod(len(v) for v in entry.settings.values()) for entry in entries)
        if cells > MOST_CELLS:
            self._fail((), f"the grid has {cells} cells; the most is {MOST_CELLS}: split it")
        for rounds in e.rounds:
            try:
                recorded_rounds(e.checkpoints, rounds)
            except ValueError as error:
                self._fail(("checkpoints",), str(error))

    def _check_settings(self, e: Experiment) -> None:
        """Make every learner and adversary once: their own checks know what is legal."""
        for i, entry in enumerate(e.learners):
            cls = learners()[entry.name].cls
            for settings in entry.variants():
                with self._blaming(("learners", i), settings):
                    for n in e.arms:
                        cls(n, seed=0, **settings)
        for i, entry in enumerate(e.adversaries):
            cls = adversaries()[entry.name].cls
            for settings in entry.variants():
                with self._blaming(("adversaries", i), settings):
                    adversary = cls(**settings)
                    for n, rounds in itertools.product(e.arms, e.rounds):
                        adversary.begin(n, rounds, 0)

    def _blaming(self, path: tuple[str, int], settings: Mapping[str, Any]) -> _Blame:
        return _Blame(self._fail, path, settings)


class _Blame:
    """Turns an error of a constructor into a `ConfigError` at the setting that it names."""

    def __init__(
        self, fail: Callable[[Keys, str], NoReturn], path: tuple[str, int], settings: Iterable[str]
    ) -> None:
        self._fail, self._path, self._settings = fail, path, settings

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> Literal[False]:
        if isinstance(error, TypeError | ValueError | OverflowError | MemoryError | IndexError):
            words = re.findall(r"\w+", str(error))
            named = [key for key in self._settings if key in words]
            message = str(error) or type(error).__name__
            where = f"{self._path[0]}[{self._path[1]}]"
            self._fail((*self._path, *named[:1]), f"{where}: {message}")
        return False


def resolved(known: Registered, settings: Mapping[str, Any]) -> dict[str, Any]:
    """``settings`` with the defaults of all others."""
    defaults = {
        name: parameter.default
        for name, parameter in known.parameters.items()
        if parameter.default is not REQUIRED
    }
    return defaults | dict(settings)


def nearest(word: Any, valid: Iterable[str]) -> str:
    """The end of a sentence about a wrong ``word``: what is valid, and the most similar of it."""
    names = list(valid)
    if not names:
        return "it has no settings"

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, str(word)[:200].lower(), name.lower()).ratio()

    listed = f"(valid: {', '.join(names)})"
    if word is None:
        return listed
    return f"the nearest valid one is {max(names, key=likeness)!r} {listed}"


def _short(value: Any) -> str:
    """A repr of bounded length, whatever the value."""
    shortener = reprlib.Repr()
    shortener.maxstring = shortener.maxother = shortener.maxlong = 60
    return shortener.repr(value)


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list | tuple):
        depth += 1
        if not value:
            break
        value = value[0]
    return depth


def _finite(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_finite(one) for one in value)
    return not isinstance(value, float) or math.isfinite(value)
