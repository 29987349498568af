"""Which examples of a learner `make test` plays in every shared test.

All of them keep the contract of `unbounded.testing`, agree with their twins and play as they did.
The other shared tests play the first example of each profile; `make test-all` plays them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def tiered(examples: list[Any]) -> list[Any]:
    """Mark as long all but the first example of each learner and profile."""
    seen, out = set(), []
    for parameter in examples:
        (example,) = parameter.values
        kind = example.spec.name, example.settings.get("profile")
        marks = [pytest.mark.long] if kind in seen else []
        out.append(pytest.param(example, id=parameter.id, marks=marks))
        seen.add(kind)
    return out


def chosen(examples: list[Any], condition: Callable[[Any], Any]) -> list[Any]:
    """Select at collection those that a test is about."""
    return [parameter for parameter in examples if condition(*parameter.values)]


def first_only(cases: Iterable[Any]) -> list[Any]:
    """Mark as long all but the first of some cases of the same kind, which take seconds each."""
    cases = list(cases)
    return only(cases, cases[0])


def only(cases: Iterable[Any], *played: Any) -> list[Any]:
    """Mark as long all cases of the same kind but some."""
    long = pytest.mark.long
    return [case if case in played else pytest.param(case, marks=long) for case in cases]


def selected(examples: list[Any], every: bool) -> list[Any]:
    """Select all examples, or those that are not long: for programs, which pytest does not run."""
    return examples if every else [one for one in tiered(examples) if not one.marks]
