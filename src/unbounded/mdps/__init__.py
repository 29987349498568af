"""Learners for layered MDPs: one algorithm, one file (SCB-RL: one idea, one file)."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbounded.play.mdp_learner import MDPLearner


def algorithms() -> dict[str, type[MDPLearner]]:
    """Every learner for MDPs in this package, by name; imports them all.

    Examples
    --------
    >>> from unbounded.mdps import algorithms
    >>> algorithms()["UOBREPS"].spec.reference
    'Jin, Jin, Luo, Sra & Yu 2020, Algorithm 2'
    """
    from unbounded.play.mdp_learner import MDPLearner  # who wants one learner need not load this

    found: dict[str, type[MDPLearner]] = {}
    for module in pkgutil.iter_modules(__path__):
        names = vars(importlib.import_module(f"{__name__}.{module.name}"))
        found |= {
            name: value
            for name, value in names.items()
            if isinstance(value, type) and issubclass(value, MDPLearner) and value is not MDPLearner
        }
    return dict(sorted(found.items()))
