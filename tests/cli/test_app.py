"""The command line, as a user meets it: real processes, real signals."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")
pytest.importorskip("loky")

import polars as pl
import psutil

import experiment_helpers as helpers
import unbounded
from unbounded import experiments, settings
from unbounded.cli import app as cli
from unbounded.experiments import config, grid, task
from unbounded.experiments.names import known

QUICK = config.dumps(config.experiment({**helpers.PAIR, "name": "quick"}))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


def call(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def test_shipped_experiments_run_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("run", "paper", "--quick", "--dry-run") == 0
    assert "in out/paper-quick/theorem-1" in capsys.readouterr().err
    assert call("run", "scales", "--dry-run") == 0
    assert call("run", "nothing-of-this-name", "--dry-run") == 2
    Path("scales").mkdir()  # what is there comes first
    assert call("run", "scales", "--dry-run") == 2
    assert "there is no .toml file" in capsys.readouterr().err


def test_run_then_show(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", file, "--dry-run") == 0
    assert "12 cells, 144 replicates, 144 to run, in out/quick" in capsys.readouterr().err
    assert not Path("out").exists()
    assert call("run", file, "--engine", "serial") == 0
    said = capsys.readouterr().err
    assert "144 of 144 replicates done (0 were stored before), 0 failed" in said
    assert call("run", file, "--engine", "serial") == 0
    assert "(144 were stored before)" in capsys.readouterr().err
    assert call("show", "out/quick", "--cells", "--save", "all.csv") == 0
    shown = capsys.readouterr().out
    assert shown.count("12/12") == 12
    assert "SCB(clip=range)" in shown
    assert len(Path("all.csv").read_text().splitlines()) == 1 + 12 * 12 * 5
    assert experiments.results("out/quick").height == 12 * 12 * 5


def test_a_directory_of_experiments(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = Path("both")
    both.mkdir()
    small = {**helpers.PAIR, "rounds": 60, "quick": {"rounds": 30, "arms": 2, "replicates": 2}}
    for name, seed in (("b", 1), ("a", 2)):
        e = config.to_dict(config.experiment(small | {"seed": seed}))
        quick = "[quick]\nrounds = 30\narms = 2\nreplicates = 2\n"
        (both / f"{name}.toml").write_text(config.dumps(config.experiment(e)) + quick)
    assert call("run", both, "--dry-run") == 0
    said = capsys.readouterr().err
    assert said.index("144 to run, in out/both/a") < said.index("144 to run, in out/both/b")
    assert call("run", both, "--engine", "serial") == 0
    assert call("run", f"{both}/", "--engine", "serial", "--quick") == 0
    said = capsys.readouterr().err
    assert "a (1 of 2): " in said
    assert "12 of 12 replicates done (0 were stored before), 0 failed" in said
    assert experiments.results("out/both/b").height == 144 * 5
    assert set(experiments.results("out/both-quick/b")["arms"]) == {2}
    assert call("run", both, "--engine", "serial", "--out", "out/both") == 0
    assert capsys.readouterr().err.count("(144 were stored before)") == 2
    assert call("run", both / "a.toml", "--quick", "--dry-run") == 0
    assert "in out/a-quick" in capsys.readouterr().err
    assert call("run", both, "--workers", "2", "--quick", "--out", "local") == 0
    serial = experiments.results("out/both-quick/a").drop(experiments.TIMING)
    assert experiments.results("local/a").drop(experiments.TIMING).equals(serial)
    (both / "c.toml").write_text('name = "a"\n' + (both / "a.toml").read_text())
    assert call("run", both, "--dry-run") == 2
    assert "another file of both has the name 'a'" in capsys.readouterr().err
    (both / "c.toml").write_text("arm = 3")  # found before anything is run
    assert call("run", both, "--engine", "serial", "--out", "other") == 2
    assert not Path("other").exists()
    Path("empty").mkdir()
    assert call("run", "empty") == 2
    assert "there is no .toml file" in capsys.readouterr().err
    assert call("run", file, "--quick") == 2
    assert "quick.toml: it has no [quick] table" in capsys.readouterr().err


def test_a_failure_in_a_directory_does_not_stop_the_others(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Path("both")
    both.mkdir()
    for name in ("a", "b"):
        (both / f"{name}.toml").write_text(QUICK.replace('"quick"', f'"{name}"'))
    monkeypatch.setattr(task, "run", helpers.fail_on_odd)
    assert call("run", both, "--engine", "serial") == 1
    said = capsys.readouterr().err
    for name in ("a", "b"):
        assert f"out/both/{name}/failed" in said


def test_show_of_what_is_unfinished_and_damaged(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("run", file, "--engine", "serial", "--out", "here") == 0
    for path in Path("here/results").iterdir():
        path.write_bytes(b"")
    capsys.readouterr()
    assert call("show", "here") == 0
    shown = capsys.readouterr().out
    assert shown.count("–") == 12
    assert re.search(r"not used: here/results/\S+: damaged", shown.replace("\n", " "))
    assert call("show", "here", "--save", "x.pickle") == 2
    assert "--save takes a .csv or a .parquet" in capsys.readouterr().err


def test_show_names_the_regret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    mdps = {**helpers.WORLDS, "learners": [{"name": "UniformPolicy"}], "worlds": [helpers.LOCK]}
    for document, column, name, unit in (
        ({**helpers.PAIR, "arms": 3}, "regret", "regret", "range"),
        (mdps, "pseudo_regret", "pseudo-regret", "Σℓ∞"),
    ):
        frame = experiments.run(document, out=tmp_path / name, engine="serial")
        assert call("show", tmp_path / name, "--cells") == 0
        head, first, *_ = capsys.readouterr().out.splitlines()
        assert re.split(r"\s{2,}", head.strip()) == [
            "cell", "replicates", name, f"{name} / {unit}", "± s.e.",
        ]  # fmt: skip
        last = frame.filter(
            (pl.col("cell") == frame["cell"][0]) & pl.col("round").eq(pl.col("rounds"))
        )
        relative = last[f"relative_{column}"]
        error = relative.std() / len(relative) ** 0.5
        numbers = [last[column].mean(), relative.mean(), error]
        assert first.split()[-3:] == [f"{number:.4g}" for number in numbers]
        assert call("show", tmp_path / name) == 0
        title, _, row, *_ = capsys.readouterr().out.splitlines()
        assert title.startswith(f"{name} / {unit} after ")
        assert title.endswith(": mean ± s.e.")
        assert f" {numbers[1]:.4g} ± {error:.2g} " in f"{row} "


def test_a_pivot_that_is_too_wide_is_continued_below(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = {**helpers.PAIR, "rounds": 20, "replicates": 2, "arms": 3}
    gaps = [0.1, 0.2, 0.3, 0.4]
    wide["adversaries"] = [{"name": "StochasticGap", "gap": gaps}]
    frame = experiments.run(wide, out="wide", engine="serial")
    learners = ["SCB clip=scale", "SCB clip=range", "TsallisINF"]

    def shown(width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        assert call("show", "wide") == 0
        return capsys.readouterr().out.splitlines()[1:]

    def cells(lines: list[str], learner: str) -> list[str]:
        own = [line for line in lines if line.startswith(f"{learner}  ")]
        return [cell for line in own for cell in re.findall(r"\S+ ± \S+", line)]

    [head, *rows] = shown(200)
    assert [re.split(r" {2,}", row)[0] for row in rows] == learners
    assert re.split(r" {2,}", head) == ["learner", *(f"StochasticGap gap={gap}" for gap in gaps)]
    narrow = shown(60)
    assert len(narrow) >= 2 * (len(rows) + 1)  # more than one table
    assert all(cells(narrow, name) == cells(rows, name) for name in learners)
    assert sum(len(cells(rows, name)) for name in learners) == frame["cell"].n_unique() == 12


def test_python_m_unbounded_and_the_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unbounded", "--version"], capture_output=True, text=True,
        env=helpers.ENVIRONMENT,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, unbounded.__version__)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    script = cli._app().generate_completion(shell=shell)
    for word in ("run", "slurm", "shard", "bandit", "tour"):
        assert word in script


@pytest.mark.parametrize("kind", ["bandit", "mdp", "own", "tour"])
def test_init_writes_what_runs_and_never_over_something(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "jit", "never")
    assert call("init", kind, "new/here") == 0
    said = capsys.readouterr().out.splitlines()
    written = sorted(Path("new/here").iterdir())
    assert said[:-2] == [str(path) for path in written]
    kept = {path.name: path.read_bytes() for path in written}
    written[-1].write_text("mine")
    assert call("init", kind, "new/here") == 2
    assert "is not written over: give another directory" in capsys.readouterr().err
    assert written[-1].read_text() == "mine"
    written[-1].write_bytes(kept[written[-1].name])
    monkeypatch.chdir("new/here")
    what = re.fullmatch(r"Now: cd new/here && unbounded run (\S+)", said[-2])
    assert what
    if kind == "tour":
        assert call("run", what[1], "--dry-run") == 0
        ours = Path(__file__).parents[2] / "experiments" / "tour"
        assert {path.name: path.read_bytes() for path in ours.glob("*.toml")} == kept
        return
    assert call("run", what[1], "--quick", "--engine", "serial") == 0
    assert call("show", f"out/{kind}-quick") == 0
    shown = capsys.readouterr().out
    assert "± " in shown
    assert "–" not in shown
    assert ("Mine rate=3" in shown) == (kind == "own")


def test_an_unknown_kind_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        call("init", "bandits", "x")
    assert caught.value.code == 2
    assert 'Choose from: "bandit", "mdp", "own",' in capsys.readouterr().err


def test_a_run_makes_its_cells_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    cells = grid.cells
    monkeypatch.setattr(grid, "cells", lambda e: made.append(e.name) or cells(e))
    assert call("run", file, "--engine", "serial") == 0
    assert made == ["quick"]


def test_an_interrupted_run_says_how_to_resume_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*work: object) -> None:
        raise KeyboardInterrupt

    file.write_text(QUICK + "\n[quick]\nrounds = 30\n")
    monkeypatch.setattr(task, "run", interrupt)
    assert call("run", file, "--engine", "serial", "--quick") == 130
    said = capsys.readouterr().err
    assert f"unbounded run {file} --out out/quick-quick --engine serial --quick" in said
    assert "What was finished is kept in out/quick-quick" in said


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    from unbounded.bandits import algorithms
    from unbounded.mdps import algorithms as mdp_algorithms

    assert call("list") == 0
    shown = capsys.readouterr().out
    for name, cls in algorithms().items():
        assert f"\n{name}: " in shown
        assert cls.spec.reference in shown
    for name in known("bandits", "adversaries"):
        assert f"\n{name}: " in shown
    for name in ("Adversary", "MDPAdversary", "Phase", "worst_cases"):  # not to be played against
        assert f"\n{name}: " not in shown
    for name in (*mdp_algorithms(), *known("MDPs", "adversaries"), "combination_lock"):
        assert f"\n{name}: " in shown
    headings = ["learners", "adversaries", "learners for MDPs", "adversaries for MDPs", "worlds"]
    assert [line for line in shown.splitlines() if line in headings] == headings
    assert 'profile : {"practical", "paper"}; default \'practical\'' in shown
    assert "horizon : int; required" in shown
    assert call("list", "SCB") == 0
    said = capsys.readouterr().out
    assert said.startswith("SCB (learners): ")
    assert "Multiplies the paper's learning rate" in said
    assert call("list", "SBC") == 2
    assert "the nearest valid one is 'SCB'" in capsys.readouterr().err


def test_a_name_of_bandits_and_of_mdps_is_listed_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("list", "Switch") == 0
    shown = capsys.readouterr().out
    for kind, heading in (("bandits", "adversaries"), ("MDPs", "adversaries for MDPs")):
        summary = known(kind, "adversaries")["Switch"].summary
        assert shown.count(f"Switch ({heading}): {summary}") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "none.toml"], "none.toml: cannot be read"),
        (["run", "bad.toml"], "bad.toml, line 1: unknown key 'arm'; the nearest valid one is"),
        (["run", "quick.toml", "--engine", "dusk"], "the nearest valid one is 'dask'"),
        (["run", "quick.toml", "--engine", "local", "--workers", "0"], "at least 1"),
        (["run", "quick.toml", "--out", "quick.toml"], "Not a directory"),
        (["show", "nowhere"], "cannot be read"),
        (["run", "quick.toml", "--engin", "local"], "--engin"),
        (["ruin", "quick.toml"], "ruin"),
        (["run"], "path"),
        (["run", "quick.toml", "--workers", "two"], "two"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_in_one_sentence(
    file: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.toml").write_text("arm = 3")
    try:
        status = call(*arguments)
    except SystemExit as leave:  # how cyclopts ends
        status = int(leave.code or 0)
    assert status in (1, 2)
    captured = capsys.readouterr()
    said = " ".join((captured.err + captured.out).lower().replace("│", " ").split())
    assert words.lower() in said


def test_a_mistake_shows_no_traceback(file: Path) -> None:
    file.write_text(QUICK.replace('"range"', '"rage"'))
    done = subprocess.run(
        [sys.executable, "-m", "unbounded.cli.app", "run", str(file)],
        capture_output=True, text=True, timeout=120, env=helpers.ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 2
    line = QUICK.split("\n").index("clip = [") + 1
    assert done.stderr.strip() == (
        f"unbounded: {file}, line {line}: learners[0].clip cannot be 'rage'; "
        "the nearest valid one is 'range' (valid: range, scale, none)"
    )
    assert done.stdout == ""


class Driver:
    """A run in a process group of its own."""

    def __init__(self, file: Path, out: Path) -> None:
        command = [sys.executable, "-m", "unbounded.cli.app", "run", str(file), "--out", str(out)]
        self.out = out
        self.process = subprocess.Popen(
            [*command, "--workers", "2"], stderr=subprocess.PIPE, text=True,
            start_new_session=True, env=helpers.ENVIRONMENT,
        )  # fmt: skip

    def workers(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def close(self) -> None:
        helpers.killed_group(self.process.pid)
        self.process.communicate(timeout=30)


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[list[Driver]]:
    started: list[Driver] = []
    yield started
    for driver in started:
        driver.close()


def longer(tmp_path: Path, rounds: int) -> Path:
    path = tmp_path / "longer.toml"
    path.write_text(config.dumps(config.experiment({**helpers.PAIR, "rounds": rounds})))
    return path


def test_ctrl_c_says_how_to_resume(tmp_path: Path, drivers: list[Driver]) -> None:
    """SIGINT to the whole group, as a terminal sends it: workers must not answer it."""
    path = longer(tmp_path, 400_000)
    drivers.append(Driver(path, tmp_path / "out"))
    driver = drivers[0]
    helpers.until(lambda: helpers.stored_files(driver.out) >= 2)
    workers = driver.workers()
    assert len(workers) >= 2
    os.killpg(driver.process.pid, signal.SIGINT)
    _, said = driver.process.communicate(timeout=30)
    assert driver.process.returncode == 130
    assert "Traceback" not in said
    assert f"resume with: unbounded run {path} --out {tmp_path / 'out'}" in said
    psutil.wait_procs(workers, timeout=10)
    assert not [worker for worker in workers if worker.is_running()]


def killed_and_resumed(
    tmp_path: Path, drivers: list[Driver], moments: int, rounds: int, seed: int
) -> tuple[int, int]:
    """Kill the driver at random moments; how often, and how often after it had stored a file."""
    path, out = longer(tmp_path, rounds), tmp_path / "out"
    rng = random.Random(seed)
    killed = progressed = 0
    for _ in range(moments):
        driver = Driver(path, out)
        drivers.append(driver)
        before = helpers.stored_files(out)
        if rng.random() < 0.8:  # otherwise while it starts
            helpers.until(
                lambda driver=driver, before=before: (
                    driver.process.poll() is not None or helpers.stored_files(out) > before
                )
            )
        time.sleep(rng.random() * 0.5)
        if driver.process.poll() is not None:  # nothing left to do
            assert driver.process.returncode == 0
            break
        workers = driver.workers()
        driver.process.kill()
        driver.process.wait(10)
        killed += 1
        progressed += helpers.stored_files(out) > before
        psutil.wait_procs(workers, timeout=10)
    drivers.append(Driver(path, out))
    _, said = drivers[-1].process.communicate(timeout=300)
    assert drivers[-1].process.returncode == 0, said
    assert "not used" not in said
    resumed = experiments.results(out).drop(experiments.TIMING)
    assert resumed.equals(experiments.run(path).drop(experiments.TIMING))
    return killed, progressed


@pytest.mark.long
def test_driver_killed_at_3_moments(tmp_path: Path, drivers: list[Driver]) -> None:
    killed, progressed = killed_and_resumed(tmp_path, drivers, 3, 100_000, seed=1)
    assert killed >= 2
    assert progressed >= 1


@pytest.mark.long
def test_driver_killed_at_20_moments(tmp_path: Path, drivers: list[Driver]) -> None:
    killed, progressed = killed_and_resumed(tmp_path, drivers, 20, 800_000, seed=2)
    assert killed == 20
    assert progressed >= 12


def test_workers_of_a_killed_driver_leave(tmp_path: Path, drivers: list[Driver]) -> None:
    drivers.append(Driver(longer(tmp_path, 100_000), tmp_path / "out"))
    driver = drivers[0]
    helpers.until(lambda: helpers.stored_files(driver.out) >= 1)
    workers = driver.workers()
    assert workers
    driver.process.kill()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


def test_one_sentence_where_the_experiment_runner_is_not_installed() -> None:
    code = (
        "import sys\n"
        "sys.modules['polars'] = None\n"
        "from unbounded.cli.app import main\n"
        "sys.exit(main(['list']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=helpers.ENVIRONMENT
    )
    assert done.returncode == 2
    assert (
        done.stderr.strip() == "unbounded: polars is missing: pip install 'unbounded[experiments]'"
    )
