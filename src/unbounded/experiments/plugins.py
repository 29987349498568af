"""Names from anywhere: code of other packages, and of the current directory.

A name is ``package.module:Name``, or an entry point of an installed package in one of ``GROUPS``.
Where it leads is found without importing anything; only what Python itself finds, or what lies in
the current directory, can be imported.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

GROUPS: Mapping[str, str] = MappingProxyType(
    {field: f"unbounded.{field}" for field in ("learners", "adversaries", "worlds")}
)
"""The groups of entry points, by the tables of an experiment."""

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z", re.ASCII)


class ForeignError(ValueError):
    """Why a name of somebody's own code cannot be used, and what to do."""


class Place(NamedTuple):
    """Where a name leads."""

    module: str
    attribute: str


def place_of(field: str, name: str) -> Place | None:
    """Return where ``name`` leads, if it is one from elsewhere; imports nothing."""
    if ":" in name:
        if not _NAME.match(name):
            raise ForeignError(f"{name!r} is not of the form 'package.module:Name'")
        return Place(*name.split(":"))
    found = {(entry.module, entry.attr) for entry in offered(field) if entry.name == name}
    if len(found) > 1:
        ways = " or ".join(sorted(f"'{module}:{attribute}'" for module, attribute in found))
        raise ForeignError(f"several packages offer {name!r}: say {ways}")
    return Place(*found.pop()) if found else None


def offered(field: str) -> list[EntryPoint]:
    """Return the entry points of installed packages, by name."""
    return _offered(field, tuple(sys.path))


@cache
def _offered(field: str, path: tuple[str, ...]) -> list[EntryPoint]:
    return sorted(entry_points(group=GROUPS[field]), key=lambda entry: entry.name)


def loaded(place: Place) -> Any:
    """Return what a name stands for; imports its module."""
    module, attribute = place
    if module == "__main__":
        raise ForeignError(
            f"workers cannot import {attribute} from __main__: put it into a file of its own, as "
            f"mine.py, and say 'mine:{attribute}'"
        )
    find(module)  # the error, if there is none
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # behind what is installed
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}"
        raise ForeignError(f"{module} does not import: {what}") from error
    if not hasattr(found, attribute):
        own = [
            name
            for name, value in vars(found).items()
            if getattr(value, "__module__", "") == module and not name.startswith("_")
        ]
        has = f"it has {', '.join(own)}" if own else "it has nothing of its own"
        raise ForeignError(f"{module} has no {attribute!r}; {has} ({origin_of(module)})")
    return getattr(found, attribute)


def described(module: str) -> str:
    """Return where a module is, and of what package: for people; imports nothing."""
    of = _installed(module)
    return f"{origin_of(module)} ({of})" if of else str(origin_of(module))


def package_of(module: str) -> str:
    """Return the package that a module belongs to with its version, or its file."""
    return _installed(module) or str(origin_of(module))


def _installed(module: str) -> str:
    packages = packages_distributions().get(module.partition(".")[0], [])
    return ", ".join(f"{name} {version(name)}" for name in sorted(set(packages)))


def imports_of(file: Path, ours: Mapping[Any, Collection[str]]) -> list[str]:
    """Return what an experiment in TOML would import, one sentence each; imports nothing of it.

    ``ours`` has the package's own names, by table.
    """
    try:
        document = tomllib.loads(file.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return []  # whoever reads it will say so
    found = []
    parts = [document, document.get("quick")]
    for part in (part for part in parts if isinstance(part, dict)):
        for field in GROUPS:
            tables = part.get(field)
            for table in tables if isinstance(tables, list) else []:
                name = table.get("name") if isinstance(table, dict) else None
                place = None
                if isinstance(name, str) and name not in ours[field]:
                    place = place_of(field, name)
                if place is not None:
                    line = f"{place.module} for {name}, from {described(place.module)}"
                    found.append(line)
    return list(dict.fromkeys(found))


# ------------------------------------------------------------------ finding


def find(module: str) -> ModuleSpec:
    """Return the spec of a module, without importing it or the packages that it is in."""
    path: Any = None
    spec: Any = None
    names = module.split(".")
    for i in range(len(names)):
        name = ".".join(names[: i + 1])
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is None:
            finders = (finder for finder in sys.meta_path if hasattr(finder, "find_spec"))
            tried = (finder.find_spec(name, path, None) for finder in finders)
            spec = next((one for one in tried if one is not None), None)
        if spec is None and i == 0:
            spec = PathFinder.find_spec(name, [os.getcwd()])
        if spec is None:
            raise ForeignError(
                f"there is no module {name}: install its package where this runs, or run it in the "
                f"directory that has {names[0]}.py or {names[0]}/"
            )
        path = spec.submodule_search_locations or []
    found: ModuleSpec = spec
    return found


def origin_of(module: str) -> Path:
    spec = find(module)
    return Path(spec.origin) if spec.has_location and spec.origin else Path(f"<{module}>")
