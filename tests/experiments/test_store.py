"""The store: what is written comes back; what is damaged is named and never used."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("polars")

import polars as pl

from unbounded.cli import app as cli
from unbounded.cli import inspect
from unbounded.experiments import config, grid, task
from unbounded.experiments.grid import SCHEMA, frame_of
from unbounded.experiments.shards import missing
from unbounded.experiments.store import (
    SHOWN,
    Failure,
    Store,
    StoreError,
    checked_content,
    in_order,
)
from unbounded.experiments.task import Span

EXPERIMENT = config.experiment(
    {
        "learners": [{"name": "SCB", "clip": ["scale", "range"]}],
        "adversaries": [{"name": "StochasticGap", "gap": [0.1, 0.2]}],
        "arms": 3,
        "rounds": 50,
        "replicates": 6,
        "checkpoints": 4,
    }
)
PLAN = grid.cells(EXPERIMENT)


def rows(*spans: tuple[int, int, int]) -> pl.DataFrame:
    work = [(Span(*span), PLAN[span[0]].settings) for span in spans]
    return frame_of(task.run(work), PLAN)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "out")
    with store.locked():
        pass
    return store


def test_what_is_written_is_read(store: Store) -> None:
    frame = rows((0, 0, 3), (2, 1, 2))
    store.write(frame)
    assert Store(store.directory).read().equals(frame)
    assert dict(frame.schema) == SCHEMA
    one = frame.row(0, named=True)
    assert one["learner_settings"] == (
        '{"ablation":false,"clip":"scale","mixing":null,"profile":"practical","rate":null,'
        '"threshold":"lazy"}'
    )
    assert one["seed"] == 0
    assert one["arms"] == 3
    assert one["code"] == PLAN[0].code
    assert "NumPy" in one["versions"]
    assert one["seconds"] > 0
    assert one["finished"].tzinfo is not None


def test_missing_is_what_rows_lack(store: Store) -> None:
    assert missing(store.read(), PLAN, 6) == [Span(i, 0, 6) for i in range(4)]
    store.write(rows((0, 0, 2), (1, 0, 6)))
    store.write(rows((0, 4, 1)))
    expected = [Span(0, 2, 2), Span(0, 5, 1), Span(2, 0, 6), Span(3, 0, 6)]
    assert missing(store.read(), PLAN, 6) == expected
    assert missing(store.read(), PLAN[1:2], 6) == []
    assert missing(store.read(), PLAN[1:2], 8) == [Span(0, 6, 2)]


def test_order_does_not_depend_on_the_order_of_writing() -> None:
    one = rows((0, 0, 6), (1, 0, 6), (2, 0, 6), (3, 0, 6))
    pieces = [rows((c, r, 1)) for c in range(4) for r in range(6)]
    random.Random(1).shuffle(pieces)
    drop = ["seconds", "finished"]
    shuffled = in_order(pl.concat([*pieces, pieces[0]]), PLAN, 6)
    assert shuffled.drop(drop).equals(one.drop(drop))
    assert in_order(one, PLAN, 2)["replicate"].max() == 1
    assert in_order(one, PLAN[1:2], 6)["cell"].unique().to_list() == [PLAN[1].key]


def test_results_that_contradict_each_other_are_rejected() -> None:
    frame = rows((0, 0, 2))
    other = frame.with_columns(pl.col("regret") + 1e-9)
    with pytest.raises(StoreError, match="stored twice with different numbers"):
        in_order(pl.concat([frame, other]), PLAN, 6)


def test_pseudo_regret_that_was_not_followed_is_null() -> None:
    plan = grid.cells(config.experiment(config.to_dict(EXPERIMENT) | {"pseudo_regret": False}))
    frame = frame_of(task.run([(Span(0, 0, 2), plan[0].settings)]), plan)
    assert frame["pseudo_regret"].null_count() == frame.height
    assert frame["regret"].null_count() == 0


DAMAGED = "damaged: its content does not have the hash in its name"


def test_a_file_cut_at_any_length_is_not_used(store: Store) -> None:
    path = store.write(rows((1, 0, 1)))
    content = path.read_bytes()
    for length in range(len(content)):
        path.unlink()  # overwriting a file waits for the disk
        path.write_bytes(content[:length])
        assert checked_content(path) == DAMAGED
    path.write_bytes(content + b"\0")
    assert checked_content(path) == DAMAGED
    path.write_bytes(content)
    assert checked_content(path) == content


def test_a_file_with_any_byte_changed_is_not_used(store: Store) -> None:
    path = store.write(rows((1, 0, 1)))
    content = bytearray(path.read_bytes())
    rng = random.Random(2)
    for at in range(len(content)):
        old = content[at]
        content[at] ^= rng.randrange(1, 256)
        path.unlink()
        path.write_bytes(content)
        content[at] = old
        assert checked_content(path) == DAMAGED


def test_a_damaged_file_is_set_aside_and_run_again(store: Store) -> None:
    sound = rows((0, 0, 1))
    store.write(sound)
    path = store.write(rows((1, 0, 1)))
    path.write_bytes(path.read_bytes()[:-1])
    frame = store.read(move=True)
    assert frame.equals(sound)
    assert Span(1, 0, 6) in missing(frame, PLAN, 6)
    aside = store.directory / "set-aside" / path.name
    assert store.set_aside == [(aside, DAMAGED)]
    assert aside.exists()
    assert not path.exists()


def test_foreign_files_are_named_and_set_aside(store: Store) -> None:
    path = store.write(rows((0, 0, 1)))
    results = path.parent
    (results / "notes.txt").write_text("hello")
    (results / "folder").mkdir()
    (results / f"{path.name}.part").write_bytes(b"of a run that was killed")
    pl.DataFrame({"a": [1]}).write_parquet(results / "other.parquet")
    import hashlib

    for content in (b"not parquet", _parquet_bytes(pl.DataFrame({"a": [1]}))):
        digest = hashlib.sha256(b"0" * 16 + content).hexdigest()[:16]
        (results / f"{'0' * 16}-{digest}.parquet").write_bytes(content)
    fresh = Store(store.directory)
    with fresh.locked():
        assert fresh.read(move=True).height == 4
    assert sorted(p.name for p in results.iterdir()) == [path.name]
    reasons = sorted(reason for _, reason in fresh.set_aside)
    assert len(reasons) == 5
    assert reasons[0] == "its columns are not those of results"
    assert sum("name is of another form" in reason for reason in reasons) == 3
    assert sum("not Parquet" in reason for reason in reasons) == 1
    assert all(aside.exists() for aside, _ in fresh.set_aside)
    again = Store(store.directory)
    again.read()
    assert again.set_aside == []


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    import io

    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def test_two_files_of_one_name_are_both_kept_aside(store: Store) -> None:
    for text in ("one", "two", "three"):
        (store.directory / "results" / "notes.txt").write_text(text)
        store.read(move=True)
    aside = store.directory / "set-aside"
    assert {path.read_text() for path in aside.iterdir()} == {"one", "two", "three"}


def test_merging_keeps_every_row(store: Store) -> None:
    for r in range(6):
        store.write(rows((0, r, 1)))
    before = in_order(store.read(), PLAN, 6)
    store.merge(most=5)
    assert len(list((store.directory / "results").iterdir())) == 1
    assert in_order(store.read(), PLAN, 6).equals(before)


def test_merging_stopped_before_it_deletes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for r in range(6):
        store.write(rows((0, r, 1)))
    before = in_order(store.read(), PLAN, 6)

    def stop(self: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stop)
        with pytest.raises(KeyboardInterrupt):
            store.merge(most=5)
    assert store.read().height == 2 * before.height
    assert in_order(store.read(), PLAN, 6).equals(before)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full."""

    def fsync(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_write_that_fails_leaves_nothing(store: Store, full: None) -> None:
    with pytest.raises(StoreError, match=r"parquet cannot be written: No space left .*; free some"):
        store.write(rows((0, 0, 1)))
    assert list((store.directory / "results").iterdir()) == []


@pytest.mark.usefixtures("full")
def test_errors_of_writing_hold_no_view_of_a_buffer(store: Store) -> None:
    """One in a cycle of garbage can crash Python 3.12.1."""
    with pytest.raises(StoreError) as failed:
        store.write(rows((0, 0, 1)))
    frames = [frame for frame, _ in traceback.walk_tb(failed.tb)]
    assert "write_whole" in [frame.f_code.co_name for frame in frames]
    held = [value for frame in frames for value in frame.f_locals.values()]
    assert not [value for value in held if isinstance(value, memoryview)]


def test_without_room_files_stay_apart(store: Store, request: pytest.FixtureRequest) -> None:
    for r in range(6):
        store.write(rows((0, r, 1)))
    before = in_order(store.read(), PLAN, 6)
    request.getfixturevalue("full")
    store.merge(most=5)
    assert len(list((store.directory / "results").iterdir())) == 6
    assert in_order(store.read(), PLAN, 6).equals(before)


def test_a_file_under_the_name_of_other_cells_is_not_used(store: Store) -> None:
    path, other = store.write(rows((1, 0, 1))), store.write(rows((2, 0, 1)))
    renamed = path.with_name(f"{other.name[:16]}{path.name[16:]}")
    path.rename(renamed)
    assert checked_content(renamed) == DAMAGED


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Ends a test that waits for a pipe."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError("it waits for something that never comes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=["pipe", "directory", "device", "socket", "dangling link", "loop"])
def put(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Puts something that is no file in the place of a path."""

    def replace(path: Path) -> None:
        path.unlink(missing_ok=True)
        if request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "directory":
            path.mkdir()
        elif request.param == "device":
            path.symlink_to("/dev/zero")
        elif request.param == "socket":
            listener = socket.socket(socket.AF_UNIX)
            request.addfinalizer(listener.close)
            here = os.getcwd()
            os.chdir(path.parent)  # the name of a socket has at most 100 characters
            listener.bind(path.name)
            os.chdir(here)
        else:
            path.symlink_to(path.name if request.param == "loop" else "nowhere")

    return replace


@pytest.mark.usefixtures("no_waiting")
def test_what_is_no_file_is_set_aside(store: Store, put: Callable[[Path], None]) -> None:
    sound = rows((0, 0, 1))
    store.write(sound)
    store.write_failure(FAILURE)
    put(store.write(rows((1, 0, 1))))
    put(next((store.directory / "failed").iterdir()))
    fresh = Store(store.directory)
    with fresh.locked():
        assert fresh.read(move=True).equals(sound)
        assert fresh.failures(move=True) == []
    assert len(fresh.set_aside) == 2
    assert all(os.path.lexists(path) for path, _ in fresh.set_aside)
    assert all("cannot be read" in why or "not a record" in why for _, why in fresh.set_aside)
    again = Store(store.directory)
    again.read()
    assert again.set_aside == []


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(
    "name",
    [
        "results",
        "failed",
        ".lock",
        "experiment.toml",
        "plan.json",
        "results/x.part",
        "failed/x.part",
    ],
)
def test_what_has_a_name_of_the_store_is_no_reason_to_wait(
    tmp_path: Path, put: Callable[[Path], None], name: str
) -> None:
    """It is written all the same, or there is a sentence."""
    store = Store(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    put(tmp_path / name)
    try:
        store.keep_experiment("arms = 3\n", b"{}")
        said = ""
    except StoreError as error:
        said = str(error)
    written = not said and store.experiment.read_text() == "arms = 3\n"
    assert written or re.search("cannot be written: .*; ", said)


def test_one_run_at_a_time(store: Store) -> None:
    with (
        store.locked(),
        pytest.raises(StoreError, match="another run is writing"),
        Store(store.directory).locked(),
    ):
        pass
    with store.locked():
        pass


FAILURE = Failure(
    cell="abc", label="SCB", first=0, count=2, error="ValueError: no", traceback="...",
    settings={"arms": 3}, code="c", versions="v", finished="2020",
)  # fmt: skip


def test_failures_are_kept_apart(store: Store) -> None:
    store.write_failure(FAILURE)
    assert store.failures() == [FAILURE]
    assert store.read().height == 0


def test_damaged_records_of_failures_are_set_aside(store: Store) -> None:
    store.write_failure(FAILURE)
    path = next((store.directory / "failed").iterdir())
    content = path.read_bytes()
    for length in range(len(content.rstrip())):
        path.unlink()
        path.write_bytes(content[:length])
        fresh = Store(store.directory)
        assert fresh.failures() == []
        assert len(fresh.set_aside) == 1
    rng = random.Random(3)
    for _ in range(300):
        flipped = bytearray(content)
        flipped[rng.randrange(len(content))] ^= rng.randrange(1, 256)
        path.unlink()
        path.write_bytes(bytes(flipped))
        fresh = Store(store.directory)
        assert len(fresh.failures()) + len(fresh.set_aside) == 1


def test_nothing_is_unpickled() -> None:
    """No module of the laboratory names pickle; the cache of compiled code is Numba's."""
    sources = [
        Path(cli.__file__),
        Path(inspect.__file__),
        *Path(config.__file__).parent.glob("*.py"),
    ]
    assert len(sources) > 10
    for source in sources:
        assert "pickle" not in source.read_text().replace("unpickled", "")


def test_the_experiment_is_kept_beside_its_results(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    store.keep_experiment("arms = 3\n", b"{}")
    assert (tmp_path / "out/experiment.toml").read_text() == "arms = 3\n"
    assert (tmp_path / "out/plan.json").read_bytes() == b"{}"
    assert store.experiment == tmp_path / "out/experiment.toml"


def test_rows_say_the_size_of_the_world() -> None:
    plan = [PLAN[0]._replace(world_settings="{}", states=7, actions=2, horizon=3)]
    frame = frame_of(task.run([(Span(0, 0, 2), PLAN[0].settings)]), plan)
    assert set(frame.select("states", "actions", "horizon").rows()) == {(7, 2, 3)}
    assert set(rows((0, 0, 1)).select("states", "actions", "horizon").rows()) == {(None,) * 3}


def test_which_regret_is_shown() -> None:
    assert SHOWN["bandits"].column == "regret"
    assert SHOWN["MDPs"].column == "pseudo_regret"
    assert all(f"relative_{shown.column}" in SCHEMA for shown in SHOWN.values())
