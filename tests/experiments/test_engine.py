"""Engines: a task's result or its error from each; a real dask cluster with a worker killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("polars")

import polars as pl
import psutil

import experiment_helpers as helpers
from tiers import first_only
from unbounded import experiments
from unbounded.experiments import config, engine, grid
from unbounded.experiments.engine import EngineError, open_engine
from unbounded.experiments.progress import Progress
from unbounded.experiments.runner import run_cells
from unbounded.experiments.store import Store


@pytest.mark.parametrize("name", ["loacl", "dask:/", "", "ray"])
def test_unknown_engines_are_rejected(name: str) -> None:
    with pytest.raises(EngineError, match="the nearest valid one is"):
        open_engine(name)


def test_engines_that_are_not_there() -> None:
    with pytest.raises(EngineError, match="workers must be at least 1"):
        open_engine("local", 0)


def test_a_result_or_an_error_of_a_task_is_in_its_future() -> None:
    for name in ("serial", "local"):
        opened = open_engine(name, 1)
        try:
            assert opened.workers == 1
            assert opened.submit(max, 1, 2).result() == 2
            assert isinstance(opened.submit(int, "x").exception(), ValueError)
        finally:
            opened.close(kill=True)


def test_workers_are_kept_for_the_next_run_until_they_are_ended() -> None:
    opened = open_engine("local", 1)
    worker = opened.submit(os.getpid).result()
    opened.close(kill=False)
    again = open_engine("local", 1)
    assert again.submit(os.getpid).result() == worker
    again.close(kill=True)
    assert not psutil.pid_exists(worker)


def test_one_worker_for_each_core() -> None:
    opened = open_engine("local")
    assert opened.workers == len(os.sched_getaffinity(0))


# --------------------------------------------------------------------------- dask

EXPERIMENT = config.experiment({**helpers.PAIR, "rounds": 30_000})


class Cluster:
    """A scheduler and two workers on the loopback interface, each a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.file = file = directory / "scheduler.json"
        common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
        self.scheduler = self._start("dask_scheduler", "--port", "0", *common)
        self.workers = []
        try:
            helpers.until(lambda: file.exists() and file.read_text().rstrip().endswith("}"))
            for i in range(2):
                place = ["--local-directory", str(directory / f"worker-{i}")]
                worker = self._start(
                    "dask_worker", *common, "--nthreads", "1", "--no-nanny", *place
                )
                self.workers.append(worker)
        except BaseException:
            self.close()
            raise
        self.engine = json.loads(file.read_text())["address"].replace("tcp://", "dask://")

    @staticmethod
    def _start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env=helpers.ENVIRONMENT,
        )  # fmt: skip

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            helpers.killed_group(process.pid)
            process.wait(30)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def reference() -> pl.DataFrame:
    return experiments.run(EXPERIMENT, engine="serial").drop(experiments.TIMING)


def wait_for_workers(engine: str, count: int) -> None:
    def ready() -> bool:
        try:
            opened = open_engine(engine)
        except EngineError:  # no workers yet
            return False
        workers = opened.workers
        opened.close(kill=True)
        return workers >= count

    helpers.until(ready)


def test_a_cluster_gives_the_same_and_a_killed_worker_loses_nothing(
    cluster: Cluster, reference: pl.DataFrame, tmp_path: Path
) -> None:
    wait_for_workers(cluster.engine, 2)
    plan = grid.cells(EXPERIMENT)
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        assert progress.workers == 2
        if not killed and progress.done > 0 and any(progress.running):
            cluster.workers[0].kill()
            killed.append(progress.done)

    by_file = f"dask-file:{cluster.file}"
    result = run_cells(plan, 12, store=Store(tmp_path / "out"), engine=by_file, watcher=kill)
    assert killed
    assert killed[0] < len(plan) * 12
    assert result.failures == []
    assert result.frame.drop(experiments.TIMING).equals(reference)


@pytest.mark.long
def test_a_lost_scheduler_is_a_sentence_and_the_run_resumes(
    cluster: Cluster, reference: pl.DataFrame, tmp_path: Path
) -> None:
    wait_for_workers(cluster.engine, 1)
    plan = grid.cells(EXPERIMENT)
    store = Store(tmp_path / "out")

    def kill(progress: Progress) -> None:
        if progress.done > 0:
            cluster.close()

    with pytest.raises(EngineError, match="is the cluster still there"):
        run_cells(plan, 12, store=store, engine=cluster.engine, watcher=kill)
    assert 0 < store.read().height < reference.height
    result = run_cells(plan, 12, store=store, engine="serial")
    assert result.already_stored > 0
    assert result.frame.drop(experiments.TIMING).equals(reference)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not the file of a dask scheduler"),
        ("[]", "is not the file of a dask scheduler"),
        ('{"address": 3}', "is not the file of a dask scheduler"),
    ],
)
def test_a_wrong_scheduler_file_is_a_sentence(
    content: str | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(EngineError, match=f"{words}.*; start one with 'dask scheduler"):
        open_engine(f"dask-file:{file}")


@pytest.mark.long
def test_a_cluster_of_its_own(reference: pl.DataFrame) -> None:
    assert (
        experiments.run(EXPERIMENT, engine="dask", workers=2)
        .drop(experiments.TIMING)
        .equals(reference)
    )


def test_no_cluster_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PATIENCE", "1s")
    with pytest.raises(EngineError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        open_engine("dask://127.0.0.1:9")


_GO = """
from unbounded import experiments
if __name__ == "__main__":
    e = {"learners": [{"name": "Uniform"}], "adversaries": [{"name": "StochasticGap"}],
         "arms": 2, "rounds": 10, "replicates": 2}
    print(experiments.run(e, engine=ENGINE, workers=1)["replicate"].n_unique())
"""


@pytest.mark.parametrize("name", first_only(["local", "dask"]))
def test_workers_import_nothing_from_the_current_directory(tmp_path: Path, name: str) -> None:
    here, there, ran = tmp_path / "here", tmp_path / "there", tmp_path / "ran"
    here.mkdir()
    there.mkdir()
    program = there / "go.py"
    program.write_text(_GO.replace("ENGINE", repr(name)))
    for module in (
        "json",
        "pickle",
        "socket",
        "random",
        "tempfile",
        "loky",
        "distributed",
        "numpy",
    ):
        text = f"open({str(ran)!r}, 'a').write({module + chr(10)!r})\nraise SystemExit(3)\n"
        (here / f"{module}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, str(program)], cwd=here, capture_output=True, text=True, timeout=300
    )
    assert not ran.exists(), f"{ran.read_text()} {done.stderr}"
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr
