"""Bandit algorithms: one file each. Adding a file is enough for `algorithms` to find it."""

from __future__ import annotations

import importlib
import pkgutil

from unbounded.play.bandit_learner import Learner


def algorithms() -> dict[str, type[Learner]]:
    """Every bandit learner in this package, by name.

    Examples
    --------
    >>> from unbounded.bandits import algorithms
    >>> algorithms()["SCB"].spec.reference
    'Chen & Zhang 2024, Algorithm 1'
    """
    found: dict[str, type[Learner]] = {}
    for module in pkgutil.iter_modules(__path__):
        names = vars(importlib.import_module(f"{__name__}.{module.name}"))
        found |= {
            name: value
            for name, value in names.items()
            if isinstance(value, type) and issubclass(value, Learner) and value is not Learner
        }
    return dict(sorted(found.items()))
