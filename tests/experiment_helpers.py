"""Experiments, processes and awkward tasks for the tests of the laboratory."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unbounded.experiments import task
from unbounded.experiments.task import Outcome, Settings, Span

PAIR = {
    "learners": [{"name": "SCB", "clip": ["scale", "range"]}, {"name": "TsallisINF"}],
    "adversaries": [{"name": "StochasticGap", "gap": 0.2}, {"name": "SpikeLeastLikely"}],
    "arms": [3, 20],
    "rounds": 3000,
    "replicates": 12,
    "checkpoints": 5,
    "seed": 7,
}
"""A quick experiment, one adversary oblivious and one adaptive."""

TEXT = """\
# An experiment.
name = "example"
arms = [
  3,
  5,
]
rounds = [100, 200]
replicates = 4

[[learners]]
name = "SCB"
clip = ["scale", "range"]
rate = 2

[[learners]]
name = "TsallisINF"
loss_range = [[0, 1], [-1.0, 1.0]]

[[adversaries]]
name = "StochasticGap"
scale = [1e-9, 1e9]
"""
"""Of bandits, as a file."""

MDP = """\
episodes = [100, 200]

[[worlds]]
name = "dirichlet"
sizes = [2, 3]
n_actions = 2
seed = [0, 1]

[[learners]]
name = "SCBRL"
reading.clip = ["scale", "range"]

[[learners]]
name = "UOBREPS"
loss_range = "true"

[[adversaries]]
name = "Stochastic"

[[adversaries]]
name = "QuietLure"
height = 64.0
"""
"""Of MDPs, as a file."""

LOCK = {"name": "combination_lock", "horizon": 3, "n_actions": 2, "seed": 72}
WORLDS = {
    "learners": [
        {"name": "SCBRL", "reading": {"clip": ["scale", "range"]}},
        {"name": "UOBREPS", "loss_range": "true"},
        {"name": "RFELP", "episodes": 20, "early_stop": [0, 4]},
    ],
    "adversaries": [{"name": "Stochastic", "scale": 4.0}, {"name": "Hide", "scale": 4.0}],
    "worlds": [LOCK, {"name": "dirichlet", "sizes": [2, 3], "n_actions": 2}],
    "episodes": 300,
    "replicates": 5,
    "checkpoints": [60, 300],
    "seed": 3,
}
"""Of MDPs, quick; one adversary oblivious and one adaptive."""


ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(
        filter(None, [str(Path(task.__file__).parents[2]), os.environ.get("PYTHONPATH")])
    )
}
"""For processes that import the package under test from another directory."""


def until(condition: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Wait for something to become true, and fail if it does not."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
    return value


def killed_group(pid: int) -> None:
    """End a process started with ``start_new_session`` and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def stored_files(directory: Path) -> int:
    """How many files of results there are."""
    return len(list((directory / "results").glob("*.parquet")))


def fail_on_odd(work: Sequence[tuple[Span, Settings]]) -> list[Outcome]:
    """As `task.run`, but spans of cells with an odd number fail."""
    return [
        task.failed(span, "ValueError: odd", "a traceback") if span.cell % 2 else outcome
        for (span, _), outcome in zip(work, _run(work), strict=True)
    ]


def die_on_cell_1(work: Sequence[tuple[Span, Settings]]) -> list[Outcome]:
    """As `task.run`, but cell 1 kills its worker."""
    if any(span.cell == 1 for span, _ in work):
        os.kill(os.getpid(), signal.SIGKILL)
    return _run(work)


def other_code(work: Sequence[tuple[Span, Settings]]) -> list[Outcome]:
    """As `task.run` of another version."""
    return [outcome._replace(code="other") for outcome in _run(work)]


def broken(work: Sequence[tuple[Span, Settings]]) -> list[Outcome]:
    """As on a worker without the package."""
    raise ModuleNotFoundError("No module named 'unbounded'")


_run = task.run
