"""Shards: every replicate in one of them, and together what one serial run gives."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("polars")
pytest.importorskip("loky")

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import experiment_helpers as helpers
from unbounded import experiments
from unbounded.experiments import ConfigError, StoreError, config, grid, store, task
from unbounded.experiments.runner import run_cells
from unbounded.experiments.shards import Shard, of_share, rows_of_share, script, shard_of, share_of
from unbounded.experiments.store import Store
from unbounded.experiments.task import Span

EXPERIMENT = config.experiment(helpers.PAIR | {"rounds": 100})
PLAN = grid.cells(EXPERIMENT)
R = EXPERIMENT.replicates


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(experiments.TIMING)


@pytest.fixture(scope="module")
def reference() -> pl.DataFrame:
    return plain(experiments.run(EXPERIMENT, engine="serial"))


def run_shard(out: Path, text: str) -> pl.DataFrame:
    return experiments.run(EXPERIMENT, out=out, engine="serial", shard=text)


# ---------------------------------------------------------------- who has what


def units(span: Span) -> list[tuple[int, int]]:
    return [(span.cell, span.first + r) for r in range(span.replicates)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(1, 50), st.randoms())
def test_every_replicate_is_in_one_shard_and_shards_are_fair(
    cells: int, replicates: int, count: int, rng: random.Random
) -> None:
    names = [rng.choice("abc") for _ in range(cells)]
    plan = [PLAN[0]._replace(settings=PLAN[0].settings._replace(learner=name)) for name in names]
    shares = [share_of(Shard(k, count), plan, replicates) for k in range(1, count + 1)]
    had = Counter(unit for share in shares for span in share for unit in units(span))
    assert had == Counter((i, r) for i in range(cells) for r in range(replicates))
    for name in ("a", "b", "c", "abc"):  # of each learner, and of all
        sizes = [
            sum(span.replicates for span in share if names[span.cell] in name) for share in shares
        ]
        assert max(sizes) - min(sizes) <= 1
    assert share_of(None, plan, replicates) == share_of(Shard(1, 1), plan, replicates)


def test_what_a_shard_has_is_what_it_is_about(reference: pl.DataFrame) -> None:
    share = share_of(Shard(3, 5), PLAN, R)
    rows = rows_of_share(reference, PLAN, share)
    keys = [cell.key for cell in PLAN]
    found = {(keys.index(str(a)), b) for a, b in rows.select("cell", "replicate").iter_rows()}
    assert found == {unit for span in share for unit in units(span)}
    assert of_share([Span(i, 0, R) for i in range(len(PLAN))], share) == share
    assert of_share([], share) == of_share(share, []) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0/0", "1 .. 1000000 shards, not 0"),
        ("0/5", "no shard 0 of 5: they are numbered 1 .. 5"),
        ("101/100", "no shard 101 of 100"),
        ("1/2000000", "not 2000000"),
        *(
            (text, "written as NUMBER/COUNT, such as 7/100")
            for text in (
                "",
                "7",
                "7/",
                "/7",
                "-1/4",
                "1/2/3",
                "a/b",
                "1 /2",
                "¹/2",
                "1/2\n",
                "9" * 99,
            )
        ),
    ],
)
def test_what_is_not_a_shard_is_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        shard_of(text)
    assert len(str(caught.value)) < 150


# ---------------------------------------------------- together as one serial run


@pytest.mark.parametrize("count", [1, 5, 200])
def test_together_they_are_one_serial_run(
    reference: pl.DataFrame, tmp_path: Path, count: int
) -> None:
    numbers = list(range(1, count + 1))
    random.Random(count).shuffle(numbers)
    left_out, *others = numbers
    if count == 200:  # more shards than replicates: the empty ones need not be run
        has = {k for k in numbers if share_of(Shard(k, count), PLAN, R)}
        assert len(has) == len(PLAN) * R < count
        empty = next(k for k in numbers if k not in has)
        assert run_shard(tmp_path, f"{empty}/{count}").height == 0
        left_out, *others = [k for k in numbers if k in has][:3]
    for k in others:
        rows = run_shard(tmp_path, f"{k}/{count}")
        share = share_of(Shard(k, count), PLAN, R)
        assert plain(rows).equals(rows_of_share(reference, PLAN, share))
    if count == 5:
        assert not plain(experiments.results(tmp_path)).equals(reference)
    if count < 200:
        run_shard(tmp_path, f"{left_out}/{count}")
        assert plain(experiments.results(tmp_path)).equals(reference)
        assert run_cells(PLAN, R, store=Store(tmp_path), engine="serial").already_stored == 12 * R


def test_other_cuts_and_whole_runs_find_what_is_there(
    reference: pl.DataFrame, tmp_path: Path
) -> None:
    run_shard(tmp_path, "2/3")
    run_shard(tmp_path, "4/7")
    both = {
        unit for shard in (Shard(2, 3), Shard(4, 7))
        for span in share_of(shard, PLAN, R) for unit in units(span)
    }  # fmt: skip
    whole = Store(tmp_path)
    result = run_cells(PLAN, R, store=whole, engine="serial")
    assert result.already_stored == len(both)
    assert plain(result.frame).equals(reference)
    with whole.locked():
        whole.merge(most=1)
    assert len(list(tmp_path.glob("**/*.parquet"))) == 1
    assert plain(experiments.results(tmp_path)).equals(reference)
    other = Store(tmp_path, Shard(1, 2))
    assert run_cells(PLAN, R, store=other, engine="serial").task_seconds == []


def test_who_keeps_whom_out(tmp_path: Path) -> None:
    one, other, again = (Store(tmp_path, Shard(k, 2)) for k in (1, 2, 1))
    whole = Store(tmp_path)

    def refused(kept_out: Store) -> bool:
        words = "another run is writing to .*: wait for it, or give"
        with pytest.raises(StoreError, match=words), kept_out.locked():
            pass
        return True

    with one.locked():
        assert refused(again)
        assert refused(whole)
        with other.locked():
            assert refused(whole)
    with whole.locked():
        assert refused(one)
    with one.locked(), other.locked():
        pass


def test_half_written_and_damaged_files_of_another_shard_are_left_to_it(tmp_path: Path) -> None:
    run_shard(tmp_path, "1/4")
    theirs = tmp_path / "shards/1-of-4/results"
    [first, *_] = sorted(theirs.iterdir())
    part = theirs / f"{first.name}.0123.part"
    part.write_bytes(b"PAR1 so far")
    first.write_bytes(first.read_bytes()[:100])
    failed = tmp_path / "shards/1-of-4/failed/x.json"
    failed.write_text("{")
    own = Store(tmp_path, Shard(2, 4))
    run_cells(PLAN, R, store=own, engine="serial")
    assert part.exists()
    assert first.exists()
    assert failed.exists()
    assert [path for path, _ in own.set_aside] == [first, failed]  # named, and not touched
    again = Store(tmp_path, Shard(1, 4))
    run_cells(PLAN, R, store=again, engine="serial")
    assert not part.exists()
    assert {path.parent for path, _ in again.set_aside} == {tmp_path / "shards/1-of-4/set-aside"}
    assert sum(span.replicates for span in experiments.Job(EXPERIMENT, PLAN, again).missing()) == 0


def test_a_whole_run_takes_care_of_what_killed_shards_left(tmp_path: Path) -> None:
    run_shard(tmp_path, "1/4")
    theirs = tmp_path / "shards/1-of-4"
    (theirs / "results/x.part").write_bytes(b"")
    (theirs / "results/notes.txt").write_text("?")
    (tmp_path / "experiment.toml.12.part").write_bytes(b"")
    (tmp_path / "report.html.12.part").write_bytes(b"somebody writes a report")
    whole = Store(tmp_path)
    run_cells(PLAN, R, store=whole, engine="serial")
    assert [path for path, _ in whole.set_aside] == [tmp_path / "set-aside/notes.txt"]
    assert [path.name for path in tmp_path.glob("**/*.part")] == ["report.html.12.part"]


def test_a_reader_meets_a_merge(
    reference: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in (1, 2):
        run_shard(tmp_path, f"{k}/2")
    checked = store.checked_content

    def merged_meanwhile(path: Path) -> bytes | str:
        monkeypatch.undo()
        other = Store(tmp_path)
        with other.locked():
            other.merge(most=1)
        return checked(path)

    monkeypatch.setattr(store, "checked_content", merged_meanwhile)
    reader = Store(tmp_path)
    rows = reader.read()
    assert plain(store.in_order(rows, PLAN, R)).equals(reference)
    assert reader.set_aside == []


def test_failures_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(task, "run", helpers.fail_on_odd)
        for k in (1, 2):
            with pytest.warns(RuntimeWarning, match="replicates failed"):
                run_shard(tmp_path, f"{k}/2")
    assert sum(failure.count for failure in Store(tmp_path).failures()) == 6 * R
    run_shard(tmp_path, "1/2")  # tries its own again
    assert sum(failure.count for failure in Store(tmp_path).failures()) == 3 * R
    experiments.run(EXPERIMENT, out=tmp_path, engine="serial")
    assert Store(tmp_path).failures() == []


def test_shards_of_other_code_are_named(tmp_path: Path) -> None:
    older = [cell._replace(key=f"{i:024d}", code="older") for i, cell in enumerate(PLAN[:3])]

    def as_older(work: object) -> list[task.Outcome]:
        return [outcome._replace(code="older") for outcome in helpers._run(work)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "run", as_older)
        result = run_cells(older, R, store=Store(tmp_path, Shard(1, 2)), engine="serial")
    assert result.other_code == 0
    result = run_cells(PLAN, R, store=Store(tmp_path, Shard(2, 2)), engine="serial")
    assert result.other_code == 3
    assert result.already_stored == 0  # and nothing of theirs is taken for ours


def test_shards_need_a_directory() -> None:
    with pytest.raises(ConfigError, match="a shard needs out=, the directory that all"):
        experiments.run(EXPERIMENT, shard="1/2")


# ------------------------------------------------------------- real processes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a b's.toml"
    path.write_text(config.dumps(EXPERIMENT))
    return path


SBATCH = """\
#!{python}
# Runs an array as Slurm would, two tasks at a time, with the script from stdin.
import os, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
script = sys.stdin.read()
first, last = map(int, re.search(r"^#SBATCH --array=(\\d+)-(\\d+)$", script, re.M).groups())
def task(number):
    environment = os.environ | {{"SLURM_ARRAY_TASK_ID": str(number)}}
    return subprocess.run(["bash"], input=script, text=True, env=environment, cwd="/").returncode
with ThreadPoolExecutor(2) as pool:
    sys.exit(max(pool.map(task, range(first, last + 1))))
"""


@pytest.mark.long
def test_a_fake_sbatch_runs_the_printed_script(
    reference: pl.DataFrame, file: Path, tmp_path: Path
) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(SBATCH.format(python=sys.executable))
    sbatch.chmod(sbatch.stat().st_mode | stat.S_IXUSR)
    command = [sys.executable, "-m", "unbounded", "slurm", file.name, "--shards", "3"]
    printed = subprocess.run(
        [*command, "--out", "o u't"], cwd=tmp_path, env=helpers.ENVIRONMENT, text=True,
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    (tmp_path / "json.py").write_text("raise SystemExit('not the module json')\n")
    ran = subprocess.run(
        [sbatch], input=printed, env=helpers.ENVIRONMENT | {"UNBOUNDED_JIT": "never"}, text=True,
        capture_output=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert plain(experiments.results(tmp_path / "o u't")).equals(reference)
    assert len(list((tmp_path / "o u't/shards").iterdir())) == 3


def test_a_script_for_more_tasks_than_replicates_is_rejected(file: Path) -> None:
    jobs = experiments.jobs(file)
    assert "--array=1-144\n" in script(jobs, file, 144)
    with pytest.raises(ConfigError, match="--shards 145 is more than the 144 replicates"):
        script(jobs, file, 145)
    with pytest.raises(ConfigError, match="at least 1, got -2"):
        script(jobs, file, -2)


class Running:
    """A shard as a process, to be killed and started again."""

    def __init__(
        self, file: Path, out: Path, shard: Shard, kills: list[tuple[bool, float]]
    ) -> None:
        arguments = ["run", file, "--out", out, "--engine", "serial", "--shard", str(shard)]
        self.command = [sys.executable, "-m", "unbounded", *map(str, arguments)]
        self.results = out / "shards" / shard.directory / "results"
        self.kills = kills  # whether to wait for a new file, and seconds after that
        self.killed = self.progressed = 0
        self.start()

    def start(self) -> None:
        self.before = self.files()
        self.due = None if self.kills and self.kills[0][0] else time.monotonic()
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=helpers.ENVIRONMENT | {"UNBOUNDED_JIT": "never"},
        )  # fmt: skip

    def files(self) -> set[Path]:
        return set(self.results.glob("*.parquet"))

    def step(self) -> bool:
        """Kill and start again when it is time; whether it has ended by itself."""
        if self.process.poll() is not None:
            said = self.process.stderr.read()
            assert self.process.returncode == 0, said
            assert "not used" not in said
            return True
        if self.due is None and self.files() - self.before:
            self.due = time.monotonic()
        if self.kills and self.due is not None and time.monotonic() > self.due + self.kills[0][1]:
            self.kills.pop(0)
            self.process.kill()
            self.process.communicate()
            self.killed += 1
            self.progressed += bool(self.files() - self.before)
            self.start()
        return False

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def killed_and_restarted(
    file: Path, out: Path, kills: list[list[tuple[bool, float]]]
) -> tuple[int, int]:
    """Run all shards at once, with kill -9; how often, and how often after something was stored."""
    running = []
    try:
        for k, moments in enumerate(kills, 1):
            running.append(Running(file, out, Shard(k, len(kills)), moments))
        left, deadline = list(running), time.monotonic() + 3600
        while left:
            left = [one for one in left if not one.step()]
            assert time.monotonic() < deadline, "waited too long"
            time.sleep(0.01)
    finally:
        for one in running:
            one.close()
    return sum(one.killed for one in running), sum(one.progressed for one in running)


@pytest.mark.long
def test_three_shards_at_once_killed_and_restarted(
    reference: pl.DataFrame, file: Path, tmp_path: Path
) -> None:
    kills = [[(False, 0.5)], [(True, 0.0)], [(False, 1.5), (True, 0.05)]]
    killed, _ = killed_and_restarted(file, tmp_path / "out", kills)
    assert killed >= 2
    assert plain(experiments.results(tmp_path / "out")).equals(reference)


@pytest.mark.long
@pytest.mark.parametrize("turn", range(20))
def test_eight_shards_at_once_killed_and_restarted(turn: int, tmp_path: Path) -> None:
    longer = config.experiment(helpers.PAIR | {"rounds": 600})
    file, out = tmp_path / "longer.toml", tmp_path / "out"
    file.write_text(config.dumps(longer))
    rng = random.Random(turn)
    kills = [[(rng.random() < 0.7, rng.random()) for _ in range(k % 3)] for k in range(8)]
    rng.shuffle(kills)
    killed, progressed = killed_and_restarted(file, out, kills)
    print(f"turn {turn}: killed {killed}, of these {progressed} after something was stored")
    assert killed >= 4  # of 7 that were planned: others had ended before
    serial, frame = plain(experiments.run(longer, engine="serial")), plain(experiments.results(out))
    assert frame.equals(serial)
    assert not frame.equals(serial.with_columns(pl.col("regret").shift()))
