"""The same results from a dask cluster: real scheduler, real workers, one of them killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("polars")

import polars as pl

import lab_helpers as helpers
from unbounded import lab
from unbounded.lab import config, engine, grid
from unbounded.lab.engine import EngineError, open_engine
from unbounded.lab.runner import Progress, run_cells
from unbounded.lab.store import Store

EXPERIMENT = config.experiment({**helpers.PAIR, "rounds": 30_000})


class Cluster:
    """A scheduler and two workers on the loopback interface, each a process of its own."""

    def __init__(self, directory: Path) -> None:
        file = directory / "scheduler.json"
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
    return lab.run(EXPERIMENT, engine="serial").drop(lab.TIMING)


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

    result = run_cells(plan, 12, store=Store(tmp_path / "out"), engine=cluster.engine, watcher=kill)
    assert killed
    assert killed[0] < len(plan) * 12
    assert result.failures == []
    assert result.frame.drop(lab.TIMING).equals(reference)


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
    assert result.frame.drop(lab.TIMING).equals(reference)


def test_a_cluster_of_its_own(reference: pl.DataFrame) -> None:
    assert lab.run(EXPERIMENT, engine="dask", workers=2).drop(lab.TIMING).equals(reference)


def test_no_cluster_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PATIENCE", "1s")
    with pytest.raises(EngineError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        open_engine("dask://127.0.0.1:9")
