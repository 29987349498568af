"""Checks of what a durable learner is given."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, SupportsIndex

import numpy as np

from unbounded.durable.replica import Choice, Replica, id_of, number_of
from unbounded.durable.rows import ASK, Storage, row_of
from unbounded.learners.available import UNFIT, distinct
from unbounded.learners.bandit import Learner
from unbounded.learners.base import AskTell
from unbounded.learners.episodes import Plan
from unbounded.validation import ArgumentTypeError, ArgumentValueError, shown

LONGEST_KEY = 500


def check_key(key: str) -> None:
    """Reject what cannot be the key of a request."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or UNFIT.search(key):
        raise ValueError(f"key must be a text of 1 to {LONGEST_KEY} letters, got {shown(key)}")


def checked_each(name: str, given: Any, n: int) -> list[Any]:
    """Return the keys or contexts of n requests, or n times None."""
    if given is None:
        return [None] * n
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != n:
        raise ValueError(f"{name} must be a sequence of n = {n} {name}s, got {shown(given)}")
    return list(given)


def checked_context(context: Any) -> str:
    """Return the context of a request as it is stored, as JSON."""
    if not isinstance(context, Mapping):
        raise ArgumentTypeError(
            "context", f'must be a dict such as {{"region": "eu"}}, got {shown(context)}'
        )
    plain: dict[str, Any] = {}
    for name, value in context.items():
        value = value.item() if isinstance(value, np.generic) else value
        fits = value is None or isinstance(value, str | int)
        fits = fits or (isinstance(value, float) and math.isfinite(value))
        if not (isinstance(name, str) and fits):
            raise ArgumentValueError(
                "context",
                "must have texts, finite numbers, booleans or None by name, got "
                f"{shown(name)}: {shown(value)}",
            )
        plain[name] = value
    return json.dumps(plain)


def rows_of(n: int, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what `Durable.tell_many` was given, for each of n tickets."""
    for name, column in columns.items():
        if column is not None and (not hasattr(column, "__len__") or len(column) != n):
            raise ValueError(f"{name} must have an entry for each of {n} tickets")
    given = {name: column for name, column in columns.items() if column is not None}
    return [{name: column[k] for name, column in given.items()} for k in range(n)]


def checked_id(ticket: SupportsIndex | Choice | Plan) -> int:
    """Return the id of a ticket, or of what is one already."""
    found = getattr(ticket, "id", ticket)
    if type(found) is not int or not 0 <= found < 2**63:
        raise TypeError(f"tell() needs the id of a ticket, got {shown(ticket)}")
    return found


def checked_names(learner: AskTell[Any] | None, arms: Sequence[str] | None) -> list[str]:
    """Return names for the arms of the learner that a file is opened with; none for MDPs."""
    if learner is None:
        if arms is not None:
            raise TypeError("arms= goes with a learner: the file has names of its own")
        return []
    if not isinstance(learner, AskTell):
        raise TypeError(f"learner must be a learner, as SCB(n_arms=3) is, got {shown(learner)}")
    if learner.outstanding:
        raise ValueError(f"{learner!r} has outstanding {learner._noun}s: tell() or forget() them")
    if not isinstance(learner, Learner):
        if arms is not None:
            raise TypeError(f"{learner.spec.name} has no arms to name")
        return []
    names = list(learner.arm_names if arms is None else distinct(arms))
    if learner._arm_names is not None and names != list(learner._arm_names):
        raise ValueError(f"arms are {names}, and those of the learner {list(learner.arm_names)}")
    if len(names) != learner.n_arms:
        raise ValueError(f"arms must name {learner.n_arms} arms, got {len(names)}")
    return names


def check_agrees(
    store: Storage, replica: Replica, learner: AskTell[Any], names: list[str] | None
) -> None:
    """Raise if a file is opened with a learner, or names of arms, that are not its own."""
    for name, value in replica.learner.settings.items():
        given = json.loads(json.dumps(learner.settings[name]))
        if given != value:
            remedy = "say what it has, open it without a learner, or give another file"
            if name == "n_arms":
                remedy = "open it with Durable(path), and change its arms with add_arm, retire_arm"
            raise ValueError(
                f"{store.place} has a learner with {name}={value!r}, and not {given!r}: {remedy}"
            )
    if names is not None and names != replica.names:
        raise ValueError(
            f"{store.place} has the arms {replica.names}, and not {names}: open it with "
            "Durable(path), and change them with add_arm and retire_arm"
        )
    if learner._asked > 0 and replica.n > 0:
        raise ValueError(
            f"{store.place} has a learner of its own, and the one given was asked before: give a "
            "fresh one, or another file"
        )


def check_relaxed(learner: AskTell[Any]) -> None:
    """Reject a learner that cannot choose from a state that others change."""
    if not isinstance(learner, Learner):
        raise ValueError(f"{learner.spec.name} needs staleness=0: its plans are drawn in turns")
    if (
        not learner.spec.delayed
        or learner._counts
        or learner.spec.elapsed is not None
        or learner.spec.feedback == "full"
        or learner.spec.advised
    ):
        raise ValueError(
            f"{learner.spec.name} with these settings needs staleness=0: its asks change its state"
        )


def check_issued(store: Storage, ticket: int) -> None:
    """Reject an id that this file never gave."""
    n = number_of(ticket)
    if 1 <= n <= store.snapshot("first").n:  # it was removed, as only what is settled is
        return
    row = row_of(store, n)
    if row is None or row.kind != ASK or id_of(row) != ticket:
        raise ValueError(
            f"{store.place} has issued no ticket {ticket}: tell() what its ask() returned (if the "
            "file was restored, what was asked after the backup is lost)"
        )


def check_age(age: timedelta) -> None:
    """Reject what is no timedelta."""
    if not isinstance(age, timedelta):
        raise TypeError(f"older_than must be a timedelta, got {shown(age)}")


def time_before(age: timedelta, now: int) -> int:
    """Microseconds since 1970, so long before ``now``, as far as SQLite can count them."""
    return min(max(now - age // timedelta(microseconds=1), 0), 2**63 - 1)
