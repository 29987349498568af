"""What a worker does: play some replicates of some cells, and hand back arrays.

Workers import this module and not the rest of the laboratory, so that they start fast and need
neither the disk nor its formats. Only numbers, strings and arrays travel.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbounded._jit import source_hash
from unbounded.registry import adversaries, learners
from unbounded.simulate import Simulation, simulate

Array = NDArray[Any]


class Span(NamedTuple):
    """Replicates ``first``, ``first + 1``, ... of one cell."""

    cell: int  # its position in the plan
    first: int
    replicates: int


class Settings(NamedTuple):
    """All that the results of a cell depend on, the code apart."""

    learner: str
    learner_settings: Mapping[str, Any]
    adversary: str
    adversary_settings: Mapping[str, Any]
    arms: int
    rounds: int
    checkpoints: int | Sequence[int]
    pseudo_regret: bool
    seed: int


class Outcome(NamedTuple):
    """What came of a span: either arrays or an error."""

    span: Span
    code: str
    seconds: float
    rounds: Array  # (checkpoints,)
    columns: Mapping[str, Array]  # each of shape (count, checkpoints)
    error: str = ""
    traceback: str = ""


@cache
def code_version(learner: str, adversary: str) -> str:
    """A hash of the sources that a result comes from, and of the versions beneath them."""
    modules = (
        learners()[learner].cls.__module__,
        adversaries()[adversary].cls.__module__,
        "unbounded.simulate",
    )
    sources = " ".join(source_hash(module) for module in modules)
    return hashlib.sha256(sources.encode()).hexdigest()[:16]


def run(work: Sequence[tuple[Span, Settings]]) -> list[Outcome]:
    """Play each span; one that fails does not stop the others."""
    return [_outcome(span, settings) for span, settings in work]


def _outcome(span: Span, settings: Settings) -> Outcome:
    started = time.perf_counter()
    try:
        code = code_version(settings.learner, settings.adversary)
        load(settings)
        started = time.perf_counter()
        result = play(settings, span.first, span.replicates)
        seconds = time.perf_counter() - started
        return Outcome(span, code, seconds, result.checkpoints, columns_of(result))
    except Exception as error:  # whatever it is, it is recorded as the result of this span
        text = f"{type(error).__name__}: {error}"
        return failed(span, text, traceback.format_exc(), time.perf_counter() - started)


def failed(span: Span, error: str, trace: str = "", seconds: float = 0.0) -> Outcome:
    """The outcome of a span that has no results."""
    return Outcome(span, "", seconds, np.empty(0), {}, error, trace)


def play(settings: Settings, first: int, count: int) -> Simulation:
    """Replicates ``first`` .. ``first + count - 1`` of a cell."""
    learner = learners()[settings.learner].cls
    adversary = adversaries()[settings.adversary].cls
    return simulate(
        learner(settings.arms, **settings.learner_settings),
        adversary(**settings.adversary_settings),
        settings.rounds,
        count,
        settings.seed,
        first_replicate=first,
        checkpoints=settings.checkpoints,
        pseudo_regret=settings.pseudo_regret,
        workers=1,
    )


def columns_of(result: Simulation) -> dict[str, Array]:
    """The numbers that are kept of a simulation."""
    return {
        "regret": result.regret,
        "pseudo_regret": result.pseudo_regret,
        "relative_regret": result.relative_regret("range"),
        "relative_pseudo_regret": result.relative_regret("range", pseudo=True),
        "low": result.low,
        "high": result.high,
        "clipped": result.clipped,
        "threshold": result.threshold,
    }


def leave_with_driver(driver: int) -> None:
    """Have this process end when the process that started it has ended, even by kill -9."""

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def warm(cells: Sequence[Settings]) -> list[float]:
    """Compile what these cells need, and measure how many seconds a round of each takes."""
    return [_seconds_a_round(settings) for settings in cells]


_loaded: set[tuple[str, str]] = set()  # learners and adversaries that this process has run


def load(settings: Settings) -> None:
    """Compile what a cell needs, or load it from the cache, so that it is not timed."""
    pair = settings.learner, settings.adversary
    if pair not in _loaded:
        play(settings._replace(rounds=1, checkpoints=[1]), 0, 1)
        _loaded.add(pair)


def _seconds_a_round(settings: Settings) -> float:
    load(settings)
    rounds = min(32, settings.rounds)
    while True:
        started = time.perf_counter()
        play(settings._replace(rounds=rounds, checkpoints=[rounds]), 0, 1)
        seconds = time.perf_counter() - started
        if seconds > 0.01 or rounds == settings.rounds:
            return seconds / rounds
        rounds = min(4 * rounds, settings.rounds)
