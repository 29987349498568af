"""The runner: the same results whatever the engine, the workers, the chunks, the accidents."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("loky")

import polars as pl
import psutil

import experiment_helpers as helpers
from unbounded import experiments
from unbounded.experiments import config, grid, runner, task
from unbounded.experiments.engine import EngineError, open_engine
from unbounded.experiments.progress import Progress
from unbounded.experiments.runner import run_cells
from unbounded.experiments.store import Store
from unbounded.experiments.task import Outcome, Warmed

EXPERIMENT = config.experiment(helpers.PAIR)
PLAN = grid.cells(EXPERIMENT)


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(experiments.TIMING)


@pytest.fixture(scope="module")
def reference() -> pl.DataFrame:
    return plain(experiments.run(EXPERIMENT, engine="serial"))


@pytest.fixture(scope="module", autouse=True)
def no_workers_left() -> Iterator[None]:
    yield
    open_engine("local", 2).close(kill=True)


def loky_workers() -> set[psutil.Process]:
    def is_one(child: psutil.Process) -> bool:
        try:
            return "LokyProcess" in " ".join(child.cmdline())
        except psutil.NoSuchProcess:  # it has just ended; ZombieProcess is one of these
            return False

    return {child for child in psutil.Process().children(recursive=True) if is_one(child)}


@pytest.fixture
def others() -> set[psutil.Process]:
    """Workers that are not the laboratory's: joblib's of other tests stay for minutes."""
    open_engine("local", 2).close(kill=True)
    return loky_workers()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_local_workers_give_the_same(reference: pl.DataFrame, workers: int) -> None:
    assert plain(experiments.run(EXPERIMENT, workers=workers)).equals(reference)


def test_interrupted_between_any_two_tasks(
    reference: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after every few replicates, and resumed each time."""
    monkeypatch.setattr(runner, "_MOST_ROWS", 10)

    def stop(progress: Progress) -> None:
        if progress.done > progress.already_stored:
            raise KeyboardInterrupt

    store = Store(tmp_path)
    stops = 0
    while True:
        try:
            result = run_cells(PLAN, 12, store=store, engine="serial", watcher=stop)
            break
        except KeyboardInterrupt:
            stops += 1
            assert stops < 500
    assert stops > 10
    assert plain(result.frame).equals(reference)


def test_what_is_finished_when_a_run_is_stopped_is_kept(tmp_path: Path) -> None:
    running: list[int] = []

    def stop(progress: Progress) -> None:
        running.append(sum(progress.running))
        if running[-1]:  # submitted to this very process, so finished, but not yet taken
            assert progress.done == 0
            raise KeyboardInterrupt

    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_cells(PLAN, 12, store=store, engine="serial", watcher=stop)
    assert store.read().select("cell", "replicate").unique().height == running[-1] > 0


def test_a_killed_worker_loses_nothing(
    reference: pl.DataFrame, tmp_path: Path, others: set[psutil.Process]
) -> None:
    longer = config.experiment(helpers.PAIR | {"rounds": 40_000, "arms": 20})
    plan = grid.cells(longer)
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if len(killed) < 2 and progress.done > 20 * len(killed) and any(progress.running):
            worker = (loky_workers() - others).pop()
            worker.kill()
            killed.append(worker.pid)

    result = run_cells(plan, 12, store=Store(tmp_path), workers=2, watcher=kill)
    assert len(killed) == 2
    assert result.failures == []
    assert plain(result.frame).equals(plain(experiments.run(longer, engine="serial")))


def test_failures_are_recorded_and_never_results(
    reference: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(task, "run", helpers.fail_on_odd)
        result = run_cells(PLAN, 12, store=store, engine="serial")
    even = [cell.key for cell in PLAN[::2]]
    keys = reference["cell"].cast(pl.String)
    assert plain(result.frame).equals(reference.filter(keys.is_in(even)))
    assert {failure.cell for failure in store.failures()} == {cell.key for cell in PLAN[1::2]}
    assert sum(failure.count for failure in result.failures) == 12 * len(PLAN[1::2])
    assert result.failures[0].error == "ValueError: odd"
    repaired = run_cells(PLAN, 12, store=store, engine="serial")
    assert repaired.failures == store.failures() == []
    assert plain(repaired.frame).equals(reference)


def test_cells_are_run_although_their_learner_could_not_be_warmed_up(
    reference: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def warm(cells: Any) -> None:
        asked.append(cells)
        raise MemoryError

    monkeypatch.setattr(task, "warm", warm)
    result = run_cells(PLAN, 12, engine="serial")
    assert asked
    assert result.failures == []
    assert plain(result.frame).equals(reference)


@pytest.mark.long
def test_a_task_that_kills_its_worker_fails_alone(
    reference: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "run", helpers.die_on_cell_1)
    result = run_cells(PLAN, 12, workers=2)
    assert {failure.cell for failure in result.failures} == {PLAN[1].key}
    assert "worker died" in result.failures[0].error
    keys = reference["cell"].cast(pl.String)
    assert plain(result.frame).equals(reference.filter(keys != PLAN[1].key))


@pytest.mark.parametrize(
    ("function", "words"),
    [(helpers.other_code, "other code"), (helpers.broken, "Is the same version")],
)
def test_workers_that_cannot_be_trusted_stop_the_run(
    function: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "run", function)
    with pytest.raises(EngineError, match=words):
        run_cells(PLAN, 12, engine="serial")


def test_ctrl_c_keeps_what_is_finished_and_ends_the_workers(
    tmp_path: Path, others: set[psutil.Process]
) -> None:
    longer = config.experiment(helpers.PAIR | {"rounds": 100_000})
    plan = grid.cells(longer)
    ours: set[psutil.Process] = set()

    def interrupt(progress: Progress) -> None:
        if progress.done:
            ours.update(loky_workers() - others)
            os.kill(os.getpid(), signal.SIGINT)

    store = Store(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_cells(plan, 12, store=store, workers=2, watcher=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0 < store.read().height < len(plan) * 12 * 5
    assert ours
    helpers.until(lambda: ours.isdisjoint(loky_workers()))


class Measured:
    """An engine whose every round takes one microsecond; it remembers how long tasks lasted."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.seconds: list[float] = []
        self.warmed: list[str] = []

    def submit(self, function: Any, argument: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(self._done(function, argument))
        return future

    def _done(self, function: Any, argument: Any) -> list[Any]:
        if function is task.warm:
            self.warmed.append(argument[0][0].learner)
            return [Warmed(1e-6, 0.5) for _ in argument]
        lasted = [1e-6 * span.replicates * one.rounds for span, one in argument]
        self.seconds.append(sum(lasted))
        return [
            Outcome(span, task.code_version(one), seconds,
                    np.array([one.rounds]), {"regret": np.zeros((span.replicates, 1))})
            for (span, one), seconds in zip(argument, lasted, strict=True)
        ]  # fmt: skip

    def close(self, *, kill: bool) -> None:
        pass


@pytest.mark.parametrize(("rounds", "replicates"), [(300, 4000), (1_500_000, 20)])
def test_tasks_last_a_while(rounds: int, replicates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many cells of a millisecond are put together, few of many seconds are cut up."""
    measured = Measured(workers=2)
    monkeypatch.setattr(runner, "open_engine", lambda *_: measured)
    e = config.experiment(helpers.PAIR | {"rounds": rounds, "replicates": replicates})
    plan = grid.cells(e)
    result = run_cells(plan, replicates)
    assert result.frame.height == len(plan) * replicates
    assert sorted(result.task_seconds) == sorted(measured.seconds)
    groups = {(one.learner, one.adversary, one.arms) for one in (cell.settings for cell in plan)}
    assert result.compile_seconds == 0.5 * len(groups)
    total = 1e-6 * len(plan) * replicates * rounds
    assert sum(measured.seconds) == pytest.approx(total)
    longest = max(0.6 * 1.1, 1e-6 * rounds)  # a replicate is not cut
    assert max(measured.seconds) <= longest
    assert np.median(measured.seconds) >= 0.3


def test_the_quickest_learner_is_compiled_first_and_the_slowest_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["Exp3", "Uniform", "AHB", "SCB"]  # as if this were their order
    plan = grid.cells(
        config.experiment(helpers.PAIR | {"learners": [{"name": name} for name in sorted(names)]})
    )
    measured = Measured(workers=2)
    monkeypatch.setattr(runner, "open_engine", lambda *_: measured)
    monkeypatch.setattr(task, "seconds_to_compile", lambda kind, name: names.index(name))
    run_cells(plan, 12)
    assert measured.warmed[:2] == [names[0], names[-1]]
    assert sorted(measured.warmed) == sorted(names)


def test_one_worker_is_left_when_later_runs_are_compiled_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mdps = config.experiment(helpers.WORLDS)
    names = sorted({cell.settings.learner for cell in grid.cells(mdps)})
    assert len(names) > 1
    measured = Measured(workers=2)
    monkeypatch.setattr(runner, "open_engine", lambda *_: measured)
    monkeypatch.setattr(runner, "_ahead", [])
    monkeypatch.setattr(task, "seconds_to_compile", lambda kind, name: names.index(name))
    runner.compile_ahead([(PLAN, 12), (grid.cells(mdps), 3)])
    assert measured.warmed == [names[-1]]
    assert len(runner._ahead) == 1


@pytest.mark.parametrize(("watched", "says"), [(False, True), (True, False)])
def test_without_a_display_a_line_says_what_is_compiled(
    watched: bool, says: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Slow(Measured):
        def submit(self, function: Any, argument: Any) -> Future[Any]:
            time.sleep(0.05)
            return super().submit(function, argument)

    monkeypatch.setattr(runner, "open_engine", lambda *_: Slow(workers=2))
    monkeypatch.setattr(runner, "_WORKERS_START", 0.0)
    run_cells(PLAN, 12, watcher=(lambda progress: None) if watched else None)
    assert ("compiling what is not cached yet of " in capsys.readouterr().err) == says


def test_progress_adds_up() -> None:
    seen: list[tuple[int, int, int]] = []

    def watch(progress: Progress) -> None:
        seen.append((progress.done, sum(progress.running), sum(progress.left)))
        assert progress.done + sum(progress.left) == progress.total
        assert progress.seconds_left() >= 0.0

    run_cells(PLAN, 12, engine="serial", watcher=watch)
    assert seen[-1] == (len(PLAN) * 12, 0, 0)
