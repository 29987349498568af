"""The command line where little is offered: odd paths, closed streams, no locale, no space.

Processes run interpreted, so that they start at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")
pytest.importorskip("loky")

import psutil

import experiment_helpers as helpers
from tiers import first_only
from unbounded import experiments
from unbounded.cli import app as cli

SMALL = """
arms = [1, 3]
rounds = 60
replicates = 5
learners = [{name = "SCB"}, {name = "Uniform"}]
adversaries = [{name = "StochasticGap"}, {name = "StochasticGap", scale = 1.7e308}]
"""
PLAIN = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
DONE = "40 of 40 replicates done"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    return "small.toml"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command says in this process; it ends with status 2."""

    def say(*arguments: str) -> str:
        assert cli.main(list(arguments)) == 2
        captured = capsys.readouterr()
        return captured.out + captured.err

    return say


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "unbounded.cli.app", *arguments]


def environment(**more: str) -> dict[str, str]:
    return helpers.ENVIRONMENT | {"NUMBA_DISABLE_JIT": "1"} | more


def run(*arguments: str, status: int = 0, env: dict[str, str] | None = None, **how: Any) -> str:
    """What a command says, in all; its exit status is checked."""
    done = subprocess.run(
        command(*arguments), env=environment(**(env or {})), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, **how,
    )  # fmt: skip
    said = done.stdout.decode("utf-8", "surrogateescape")
    assert done.returncode == status, said
    assert "Traceback" not in said
    return said


def test_any_name_of_a_directory(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = "./ö ü\n漢字 bad\udcff"
    assert DONE in run("run", file, "--engine", "serial", "--out", out, env=PLAIN)
    assert cli.main(["show", "--cells", out]) == 0
    assert "5/5" in capsys.readouterr().out
    assert cli.main(["run", file, "--engine", "serial", "--out", out]) == 0
    assert "(40 were stored before)" in capsys.readouterr().err
    assert "report.html" in run("report", out, "--no-figures", env=PLAIN)
    assert experiments.opened(out).rows().height > 0


def test_one_arm_and_the_largest_losses_go_all_the_way_to_the_report(file: str) -> None:
    experiments.run(file, engine="serial", out="out")
    frame = experiments.results("out")
    assert set(frame["arms"]) == {1, 3}
    for column in ("threshold", "relative_regret", "relative_pseudo_regret"):
        assert frame[column].is_finite().all()
    run("report", "out", "--no-figures")


@pytest.mark.parametrize(
    ("closed", "engine"),
    [
        ((0, 1, 2), "local"),
        pytest.param((0, 1, 2), "serial", marks=pytest.mark.long),
        pytest.param((2,), "serial", marks=pytest.mark.long),
    ],
)
def test_without_standard_streams(file: str, closed: tuple[int, ...], engine: str) -> None:
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    subprocess.run(
        command("run", file, "--engine", engine, "--workers", "1", "--out", "out"),
        env=environment(), preexec_fn=close, timeout=300, check=True,
    )  # fmt: skip
    assert experiments.opened("out").missing() == []


def test_a_reader_that_leaves_and_a_full_disk_for_the_output(file: str) -> None:
    experiments.run(file, engine="serial", out="out")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("show", "out"), env=environment(), stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr
    assert b"No space left on device" in done.stderr


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [pipe, Path.mkdir, link])
def test_what_is_no_file_has_the_name_of_an_experiment(
    file: str, make: Callable[[Path], None], said: Callable[..., str]
) -> None:
    make(Path("x.toml"))
    answer = said("run", "x.toml")
    reasons = "x.toml: cannot be read: ", "there is no .toml file in this directory"
    assert any(reason in answer for reason in reasons)
    Path("both").mkdir()
    shutil.copy(file, "both/a.toml")
    make(Path("both/b.toml"))
    assert "both/b.toml: cannot be read: " in said("run", "both")
    assert not Path("out").exists()
    Path("stored").mkdir()
    make(Path("stored/experiment.toml"))
    for words in (("show", "stored"), ("report", "stored")):
        assert said(*words).startswith("unbounded: ")


def test_a_file_in_the_way(file: str, said: Callable[..., str]) -> None:
    for out in (file, f"{file}/below"):
        answer = said("run", file, "--engine", "serial", "--out", out)
        assert "cannot be written: Not a directory; something else has this name" in answer
    answer = said("run", file, "--engine", "serial", "--out", "x" * 300)
    assert "File name too long; give a shorter name" in answer
    experiments.run(file, engine="serial", out="out")
    answer = said("show", "out", "--save", f"{file}/x.csv")
    assert "x.csv cannot be written: Not a directory" in answer
    assert "cannot be written" in said("report", "out", "--output", f"{file}/r.html")


def test_engines_are_checked_also_where_nothing_is_left_to_run(
    file: str, said: Callable[..., str]
) -> None:
    experiments.run(file, engine="serial", out="out")
    answer = said("run", file, "--engine", "lokal", "--out", "out")
    assert "there is no engine 'lokal'; the nearest valid one is 'local'" in answer
    answer = said("run", file, "--workers", "0", "--out", "out")
    assert "workers must be at least 1, got 0" in answer


LONG = """
arms = 3
rounds = 3000
replicates = 12
learners = [{name = "SCB"}, {name = "Exp3"}]
adversaries = [{name = "StochasticGap"}]
"""


def started(file: str, *arguments: str) -> subprocess.Popen[bytes]:
    Path(file).write_text(LONG)
    return subprocess.Popen(
        command("run", file, "--out", "out", *arguments), env=environment(),
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "stops", first_only([[signal.SIGKILL], [signal.SIGINT, signal.SIGTERM, "worker"]])
)
def test_stopped_again_and_again_and_resumed_the_frame_is_the_same(
    file: str, stops: list[Any]
) -> None:
    """By kill -9, Ctrl-C to the whole group, SIGTERM, and kill -9 of a worker."""
    for number, stop in enumerate(stops, 1):
        driver = started(file, "--workers", "2")
        try:
            helpers.until(lambda n=number: helpers.stored_files(Path("out")) >= 2 * n, 240)
            if stop == "worker":
                for child in psutil.Process(driver.pid).children(recursive=True):
                    if "loky" in " ".join(child.cmdline()):
                        child.kill()
                assert driver.wait(300) == 0
                break
            os.killpg(driver.pid, stop)
            status = driver.wait(120)
            assert status == (130 if stop != signal.SIGKILL else -signal.SIGKILL)
        finally:
            helpers.killed_group(driver.pid)
    said = run("run", file, "--engine", "serial", "--out", "out")
    assert "24 of 24 replicates done" in said
    resumed = experiments.results("out").drop(experiments.TIMING)
    at_once = experiments.run(file, engine="serial").drop(experiments.TIMING)
    assert at_once.equals(resumed)


def test_two_runs_at_once_in_one_directory(file: str) -> None:
    one = started(file, "--engine", "serial")
    try:
        helpers.until(lambda: Path("out/.lock").exists() and helpers.stored_files(Path("out")), 240)
        os.killpg(one.pid, signal.SIGSTOP)  # it is not done before the other has begun
        said = run("run", file, "--engine", "serial", "--out", "out", status=2)
        assert "another run is writing to out: wait for it, or give another directory" in said
        os.killpg(one.pid, signal.SIGCONT)
        assert one.wait(300) == 0
    finally:
        helpers.killed_group(one.pid)
