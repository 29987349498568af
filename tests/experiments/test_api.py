"""The laboratory from Python: the same frame from memory, from disk, and after it was resumed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("polars")
pytest.importorskip("msgspec")

import polars as pl

import experiment_helpers as helpers
from unbounded import experiments
from unbounded.experiments import config, grid, runner, task

EXPERIMENT = config.experiment(helpers.PAIR)


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(experiments.TIMING)


@pytest.fixture(scope="module")
def reference() -> pl.DataFrame:
    return plain(experiments.run(EXPERIMENT, engine="serial"))


def test_disk_and_resume_give_the_same(reference: pl.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "out"
    few = config.experiment(config.to_dict(EXPERIMENT) | {"replicates": 5})
    first = experiments.run(few, out=out, engine="serial")
    assert plain(first).equals(reference.filter(pl.col("replicate") < 5))
    again = experiments.run(EXPERIMENT, out=out, engine="serial")
    assert plain(again).equals(reference)
    assert again.filter(pl.col("replicate") < 5).equals(first)  # kept, not run again
    assert experiments.results(out).equals(again)


def test_nothing_is_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = experiments.run(EXPERIMENT, out=tmp_path, engine="serial")
    monkeypatch.setattr(runner, "open_engine", None)
    assert experiments.run(EXPERIMENT, out=tmp_path).equals(first)


def test_a_failure_is_a_warning_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "run", helpers.fail_on_odd)
    with pytest.warns(RuntimeWarning, match="replicates failed and are not in the frame"):
        experiments.run(EXPERIMENT, engine="serial")


def test_a_damaged_file_is_run_again(reference: pl.DataFrame, tmp_path: Path) -> None:
    experiments.run(EXPERIMENT, out=tmp_path, engine="serial")
    for path in (tmp_path / "results").iterdir():
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
    with pytest.warns(RuntimeWarning, match="was set aside: damaged"):
        frame = experiments.run(EXPERIMENT, out=tmp_path, engine="serial")
    assert plain(frame).equals(reference)


HEAVY = ("msgspec", "polars", "rich", "cyclopts", "loky", "distributed", "tomli_w", "matplotlib")


def imported_by(statement: str, *names: str) -> list[str]:
    code = f"import sys\n{statement}\nprint(*[name for name in {names} if name in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=helpers.ENVIRONMENT,
    )  # fmt: skip
    return out.stdout.split()


def test_the_core_does_not_import_the_experiment_runner() -> None:
    assert imported_by("import unbounded", *HEAVY, "unbounded.experiments") == []


def test_a_worker_imports_only_what_it_needs() -> None:
    mdps = ("unbounded.mdps", "unbounded.worlds", "unbounded.core.occupancy")
    own = (
        "unbounded.experiments.store",
        "unbounded.experiments.config",
        "unbounded.experiments.runner",
    )
    assert imported_by("import unbounded.experiments.task", *HEAVY, *mdps, *own) == []


def test_the_experiment_runner_has_what_it_lists() -> None:
    for name in experiments.__all__:
        assert getattr(experiments, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        experiments.rum  # noqa: B018


def test_a_job_is_run_step_by_step(reference: pl.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(config.dumps(EXPERIMENT))
    [job] = experiments.jobs(tmp_path / "pair.toml", out=tmp_path / "out")
    assert job.experiment.name == "pair"
    assert sum(span.replicates for span in job.missing()) == 12 * len(job.cells) == 144
    assert not (tmp_path / "out").exists()
    result = job.run(engine="serial")
    assert plain(result.frame).equals(reference)
    assert job.missing() == []
    assert job.rows().equals(result.frame)
    again = experiments.opened(tmp_path / "out")
    assert again.experiment == job.experiment
    assert again.cells == job.cells
    assert again.rows().equals(experiments.results(tmp_path / "out"))


def test_where_results_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    both = Path("both")
    both.mkdir()
    for name in ("b", "a"):
        text = config.dumps(EXPERIMENT) + "\n[quick]\nrounds = 30\n"
        (both / f"{name}.toml").write_text(text)

    def places(*arguments: object, **options: object) -> list[str]:
        return [job.store.directory.as_posix() for job in experiments.jobs(*arguments, **options)]

    assert places(both) == ["out/both/a", "out/both/b"]
    assert places(both, quick=True) == ["out/both-quick/a", "out/both-quick/b"]
    assert places(both, out="here") == ["here/a", "here/b"]
    assert places(both / "a.toml") == ["out/a"]
    assert places(both / "a.toml", quick=True) == ["out/a-quick"]
    assert places(both / "a.toml", out="here", quick=True) == ["here"]
    (both / "c.toml").write_text('name = "a"\n' + (both / "a.toml").read_text())
    with pytest.raises(experiments.ConfigError, match="another file of both has the name 'a' too"):
        experiments.jobs(both)


def test_quick_from_python() -> None:
    shorter = {**helpers.PAIR, "quick": {"rounds": 30, "replicates": 2}}
    frame = experiments.run(shorter, engine="serial", quick=True)
    assert set(frame["rounds"]) == {30}
    assert set(frame["replicate"]) == {0, 1}


def test_cells_are_made_once_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    cells = grid.cells

    def counted(e: experiments.Experiment) -> object:
        made.append(e.name)
        return cells(e)

    monkeypatch.setattr(grid, "cells", counted)
    experiments.run(EXPERIMENT, out=tmp_path, engine="serial")
    assert len(made) == 1
    experiments.results(tmp_path)
    assert len(made) == 1
