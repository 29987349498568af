"""Checks a document and makes an `Experiment` of it: behind `unbounded.experiments.config`."""

from __future__ import annotations

import itertools
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta

from unbounded.experiments import names
from unbounded.experiments.experiment import VIEWS, ConfigError, Entry, Experiment
from unbounded.experiments.names import FAMILIES, TRUE, Field, Kind, known, nearest
from unbounded.experiments.plugins import ForeignError
from unbounded.experiments.registered import REQUIRED, Parameter, Registered
from unbounded.simulation.adversary import Adversary, MDPAdversary
from unbounded.simulation.dynamic import checked_switches
from unbounded.validation import recorded_rounds

MOST_CELLS = 1_000_000

_Count = Annotated[int, Meta(ge=1, le=10**12)]
_Arms = Annotated[int, Meta(ge=1, le=10**7)]
_ENTRIES = "[[{}]] tables, each with the name of a class and its settings"
_FIELDS: dict[str, tuple[Any, str]] = {
    "name": (Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\Z")],
             "letters, digits, '.', '_' and '-', at most 100 of them"),
    "learners": (Annotated[list[Any], Meta(min_length=1)], _ENTRIES.format("learners")),
    "adversaries": (Annotated[list[Any], Meta(min_length=1)], _ENTRIES.format("adversaries")),
    "worlds": (Annotated[list[Any], Meta(min_length=1)],
               "[[worlds]] tables, each with the name of a function of unbounded.worlds"),
    "arms": (_Arms | Annotated[tuple[_Arms, ...], Meta(min_length=1)],
             "an integer from 1 to 10 million, or a list of such numbers"),
    "rounds": (_Count | Annotated[tuple[_Count, ...], Meta(min_length=1)],
               "an integer from 1 to 10^12, or a list of such numbers"),
    "episodes": (_Count | Annotated[tuple[_Count, ...], Meta(min_length=1)],
                 "an integer from 1 to 10^12, or a list of such numbers"),
    "title": (str, "text"),
    "claim": (str, "text"),
    "views": (tuple[str, ...], "a list of texts"),
    "replicates": (Annotated[int, Meta(ge=1, le=10**9)], "an integer from 1 to 10^9"),
    "seed": (Annotated[int, Meta(ge=0, le=2**63 - 1)], "an integer from 0 to 2^63 - 1"),
    "checkpoints": (
        Annotated[int, Meta(ge=1, le=10**6)] | Annotated[tuple[_Count, ...], Meta(min_length=1)],
        "an integer from 1 to 10^6, or a list of rounds"),
    "pseudo_regret": (bool, "true or false"),
    "dynamic": (bool, "true or false"),
    "switches": (Annotated[int, Meta(ge=0, le=10**9)], "an integer from 0 to 10^9"),
}  # fmt: skip
_SIZES: dict[Kind, tuple[str, str]] = {
    "bandits": ("arms", "rounds"),
    "MDPs": ("worlds", "episodes"),
}
_QUICK = ("learners", "adversaries", "arms", "rounds", "worlds", "episodes", "replicates",
          "checkpoints", "pseudo_regret", "dynamic", "switches")  # fmt: skip

Keys = tuple[str | int, ...]
"""A path into a document: ``("learners", 0, "clip")``."""

Lines = Callable[[Keys], int | None]


def read(
    document: Mapping[str, Any], source: str, lines: Lines, quick: bool, folder: Path
) -> Experiment:
    """Return the experiment in a document, or the shorter one that its table ``quick`` makes of it.

    Both are checked, whichever is wanted. Files that it names are sought from ``folder``.
    """
    whole = {key: value for key, value in document.items() if key != "quick"}
    e = _Reader(source, lines, folder).experiment(whole)
    if "quick" not in document:
        if quick:
            raise ConfigError(f"{source}: it has no [quick] table that would say what is shorter")
        return e
    short = _Reader(source, lambda path: lines(("quick", *path)) or lines(path), folder)
    shorter = short.experiment({**whole, **short.overrides(document["quick"])})
    return shorter if quick else e


class _Reader:
    """Checks a document and makes an `Experiment` of it; knows where to point in errors."""

    def __init__(self, source: str, lines: Lines, folder: Path) -> None:
        self._source = source
        self._lines = lines
        self._folder = folder

    def _fail(self, path: Keys, message: str) -> NoReturn:
        line = self._lines(path)
        where = self._source if line is None else f"{self._source}, line {line}"
        raise ConfigError(f"{where}: {message}")

    def overrides(self, table: Any) -> Mapping[str, Any]:
        """Return the table ``quick``, if it is one."""
        if not isinstance(table, Mapping):
            self._fail((), f"quick must be a table, got {_short(table)}")
        for key in table:
            if key not in _QUICK:
                self._fail((key,), f"quick cannot change {_short(key)}; {nearest(key, _QUICK)}")
        return table

    def experiment(self, document: Mapping[str, Any]) -> Experiment:
        for key in document:
            if key not in _FIELDS:
                order = [*Experiment.__struct_fields__, "quick"]
                self._fail((key,), f"unknown key {_short(key)}; {nearest(key, order)}")
        kind: Kind = "MDPs" if "worlds" in document else "bandits"
        other = _other(kind)
        for key, instead in zip(_SIZES[other], _SIZES[kind], strict=True):
            if key in document:
                self._fail((key,), f"{key} is for {other}; an experiment with {kind} has {instead}")
        for key in ("dynamic", "switches"):
            if kind == "MDPs" and document.get(key, False) is not False:
                self._fail((key,), f"{key} is for bandits: leave it out")
        for key in ("learners", "adversaries", *_SIZES[kind]):
            if key not in document:
                self._fail((), f"{key} is missing; it must be {_FIELDS[key][1]}")
        fields = {}
        for key, value in document.items():
            form, description = _FIELDS[key]
            try:
                fields[key] = msgspec.convert(value, form)
            except msgspec.ValidationError:
                self._fail((key,), f"{key} must be {description}, got {_short(value)}")
        for view in fields.get("views", ()):
            if view not in VIEWS:
                self._fail(("views",), f"unknown view {_short(view)}; {nearest(view, VIEWS)}")
        for key in ("arms", "rounds", "episodes"):
            if isinstance(fields.get(key), int):
                fields[key] = (fields[key],)
        for field in FAMILIES[kind]:
            fields[field] = tuple(
                self._entry(kind, field, i, value) for i, value in enumerate(fields[field])
            )
        e = Experiment(**fields)
        self._check_sizes(e)
        (self._check_mdps if kind == "MDPs" else self._check_bandits)(e)
        return e

    def _entry(self, kind: Kind, field: Field, i: int, table: Any) -> Entry:
        path, where = (field, i), f"{field}[{i}]"
        valid = known(kind, field)
        if not isinstance(table, Mapping):
            self._fail(path, f"{where} must be a table with a name, got {_short(table)}")
        name = table.get("name")
        if name is None:
            self._fail(path, f"{where} needs a name; {nearest(name, valid)}")
        found, place = None, (*path, "name")
        try:
            found = valid.find(name) if isinstance(name, str) else None
        except ForeignError as error:
            self._fail(place, f"{where}: {error}")
        if found is None:
            other = _other(kind)
            if isinstance(name, str) and field in FAMILIES[other] and name in known(other, field):
                need = " and ".join(_SIZES[other])
                self._fail(place, f"{where}: {name} is for {other}, which need {need}")
            self._fail(place, f"{where} has an unknown name {_short(name)}; {nearest(name, valid)}")
        parameters = found.parameters
        settings = {}
        for key, value in table.items():
            if key == "name":
                continue
            at: Keys = (*path, key)
            if field == "learners" and key in names.SET_ABOVE and key not in parameters:
                top = names.SET_ABOVE[key]
                self._fail(at, f"{where}.{key} is set by {top!r} at the top of the experiment")
            if key not in parameters:
                self._fail(at, f"{name} has no setting {_short(key)}; {nearest(key, parameters)}")
            settings[key] = self._values(at, f"{where}.{key}", parameters[key], value)
        for key, parameter in parameters.items():
            if parameter.default is REQUIRED and key not in settings:
                self._fail(path, f"{where}: {name} needs {key}, {parameter.text or 'a value'}")
        return Entry(name, settings)

    def _values(self, path: Keys, where: str, parameter: Parameter, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Mapping):  # a group of settings, each of which may be a list
            axes = [one if isinstance(one, list) else [one] for one in value.values()]
            value = [dict(zip(value, cell, strict=True)) for cell in itertools.product(*axes)]
        elif _depth(value) <= parameter.depth:
            value = [value]
        if not value:
            self._fail(path, f"{where} is an empty list: nothing would be run")
        return tuple(self._value(path, where, parameter, one) for one in value)

    def _value(self, path: Keys, where: str, parameter: Parameter, value: Any) -> Any:
        if parameter.name == "loss_range" and isinstance(value, str):
            if value != TRUE:
                self._fail(path, f'{where} must be numbers or "{TRUE}", got {_short(value)}')
            return value
        if value is None:
            self._fail(path, f"{where} cannot be None; leave it out")
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
        if parameter.name == "path" and isinstance(value, str):
            return os.path.abspath(self._folder / value)
        return value

    def _check_sizes(self, e: Experiment) -> None:
        cells = max(len(e.arms), 1) * len(e.lengths)
        for entries in filter(None, (e.learners, e.adversaries, e.worlds)):
            cells *= sum(math.prod(len(v) for v in entry.settings.values()) for entry in entries)
        if cells > MOST_CELLS:
            self._fail((), f"the grid has {cells} cells; the most is {MOST_CELLS}: split it")
        for rounds in e.lengths:
            try:
                recorded_rounds(e.checkpoints, rounds)
            except ValueError as error:
                self._fail(("checkpoints",), str(error))

    def _check_bandits(self, e: Experiment) -> None:
        """Make every learner and adversary once: their own checks know what is legal."""
        for arms, rounds in itertools.product(e.arms, e.rounds):
            try:
                checked_switches(e.switches, rounds, arms)
            except ValueError as error:
                self._fail(("switches",), str(error))
        for learner, settings, blame in self._variants(e, "learners"):
            with blame:
                for n in e.arms:
                    learner.cls(n, seed=0, **names.without_true(settings))
        for one, settings, blame in self._variants(e, "adversaries"):
            with blame:
                adversary = one.cls(**settings)
                for n, rounds in itertools.product(e.arms, e.rounds):
                    if isinstance(adversary, Adversary):
                        adversary.begin(n, rounds, 0)

    def _check_mdps(self, e: Experiment) -> None:
        built = []
        for world, settings, blame in self._variants(e, "worlds"):
            with blame:
                built.append(names.world(world.name, settings))
        for learner, settings, blame in self._variants(e, "learners"):
            given = names.without_true(settings)
            with blame:
                for mdp, episodes in itertools.product(built, e.episodes):
                    names.mdp_learner(learner.name, given, mdp, episodes, start=False)
        for one, settings, blame in self._variants(e, "adversaries"):
            with blame:
                adversary = one.cls(**settings)
                for mdp, episodes in itertools.product(built, e.episodes):
                    if isinstance(adversary, MDPAdversary):
                        adversary.fits(mdp, episodes)

    def _variants(
        self, e: Experiment, field: Field
    ) -> Iterator[tuple[Registered, dict[str, Any], AbstractContextManager[None]]]:
        """List what a field names with all its settings, and who is to blame if that is illegal."""
        for i, entry in enumerate(getattr(e, field)):
            registered = known(e.kind, field)[entry.name]
            for settings in entry.variants():
                yield registered, settings, self._blamed(field, i, settings, registered.package)

    @contextmanager
    def _blamed(self, field: Field, i: int, given: Iterable[str], package: str) -> Iterator[None]:
        """Turn an error of a constructor into a `ConfigError` at its ``argument``, if any."""
        expected: tuple[type[Exception], ...] = (Exception,)  # somebody's code may raise anything
        if not package:
            expected = TypeError, ValueError, OverflowError, MemoryError, IndexError
        try:
            yield
        except expected as error:
            named = [key for key in given if key == getattr(error, "argument", None)]
            message = str(error) or type(error).__name__
            if package and not isinstance(error, TypeError | ValueError):
                message = f"{type(error).__name__}: {error}"
            self._fail((field, i, *named), f"{field}[{i}]: {message}")


def _other(kind: Kind) -> Kind:
    return "bandits" if kind == "MDPs" else "MDPs"


def _short(value: Any) -> str:
    """Return a repr of bounded length, whatever the value."""
    shortener = reprlib.Repr()
    shortener.maxstring = shortener.maxother = shortener.maxlong = 60
    return shortener.repr(value)


def _depth(value: Any) -> int:
    """Return how deep lists nest."""
    if not isinstance(value, list | tuple):
        return 0
    return 1 + max(map(_depth, value), default=0)


def _finite(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_finite(one) for one in value)
    return not isinstance(value, float) or math.isfinite(value)
