"""Learners that many processes share and that survive restarts.

`Durable` stores a learner in an SQLite file (``database`` opens it, ``store`` has its tables) or in
PostgreSQL (``postgres``); ``rows`` says what a storage must do. ``replica`` is the learner in
memory, into which the journal is replayed (``feedback`` is what it is told, ``counters`` count),
``session`` gives turns to threads and processes, ``learner`` is what people use.
``log`` reads the journal as a table and writes it for other programs, ``offpolicy`` estimates from
it what another policy would have lost.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbounded.durable.errors import BusyError, DurableError
    from unbounded.durable.learner import Durable
    from unbounded.durable.log import open_bandit_feedback, vw_lines
    from unbounded.durable.offpolicy import Estimate, FewSamplesWarning, by_context, estimate
    from unbounded.durable.offpolicy_learners import LearnerEstimate, estimate_learners
    from unbounded.durable.replica import Choice

# Imported when they are asked for: a worker needs no polars.
_PLACES = {
    "BusyError": "errors",
    "Choice": "replica",
    "Durable": "learner",
    "DurableError": "errors",
    "Estimate": "offpolicy",
    "FewSamplesWarning": "offpolicy",
    "LearnerEstimate": "offpolicy_learners",
    "by_context": "offpolicy",
    "estimate": "offpolicy",
    "estimate_learners": "offpolicy_learners",
    "open_bandit_feedback": "log",
    "vw_lines": "log",
}


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BusyError",
    "Choice",
    "Durable",
    "DurableError",
    "Estimate",
    "FewSamplesWarning",
    "LearnerEstimate",
    "by_context",
    "estimate",
    "estimate_learners",
    "open_bandit_feedback",
    "vw_lines",
]


def __dir__() -> list[str]:
    return sorted(__all__)
