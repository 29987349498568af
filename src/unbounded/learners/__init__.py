"""What every learner shares: the contract of an algorithm, ask and tell, save and load."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


def discovered(package: str, base: type[T]) -> dict[str, type[T]]:
    """The classes below ``base`` that the public modules of a package define publicly, by name.

    Imports them all.
    """
    found: dict[str, type[T]] = {}
    for module in pkgutil.iter_modules(import_module(package).__path__):
        if module.name.startswith("_"):
            continue
        name = f"{package}.{module.name}"
        for value in vars(import_module(name)).values():
            own = isinstance(value, type) and issubclass(value, base) and value.__module__ == name
            if own and not value.__name__.startswith("_"):
                found[value.__name__] = value
    return dict(sorted(found.items()))
