"""Experiments: from a file to its cells, to tasks, to an engine, to the store.

``config`` reads a file, ``grid`` makes its cells, ``runner`` cuts them into tasks (``task``) and
gives these to an ``engine``, ``store`` keeps what comes back. ``names`` knows what a file can name.
`unbounded.experiments.api` is all of it from Python.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unbounded.experiments.api import Job, jobs, opened, results, run
    from unbounded.experiments.engine import EngineError
    from unbounded.experiments.experiment import ConfigError, Experiment
    from unbounded.experiments.grid import TIMING
    from unbounded.experiments.store import Store, StoreError

# Imported when they are asked for: workers import only `unbounded.experiments.task`, and should
# not wait for polars, msgspec and rich.
_PLACES = {
    "ConfigError": "experiment",
    "EngineError": "engine",
    "Experiment": "experiment",
    "Job": "api",
    "Store": "store",
    "StoreError": "store",
    "TIMING": "grid",
    "jobs": "api",
    "opened": "api",
    "results": "api",
    "run": "api",
}


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "TIMING", "ConfigError", "EngineError", "Experiment", "Job", "Store", "StoreError", "jobs",
    "opened", "results", "run",
]  # fmt: skip
