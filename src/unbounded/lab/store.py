"""Results on disk: Parquet files that are either complete or set aside.

A directory holds ``experiment.toml``, ``results/*.parquet`` and ``failed/*.json``. A file of
results is written under a temporary name and renamed, and its name ends in a hash of its bytes:
one that is cut short, altered, renamed or not a file at all is recognised without being trusted to
describe itself, moved to ``set-aside/`` and named. Nothing is ever unpickled. Who can write to the
directory can write results that nobody computed; nothing here keeps them from it.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from unbounded.lab.files import PART, StoreError, read_file, write_whole, writing
from unbounded.lab.grid import Cell
from unbounded.lab.names import Kind
from unbounded.lab.rows import SCHEMA, TIMING, versions
from unbounded.lab.task import Outcome, Span


class Shown(NamedTuple):
    """Which regret tables and charts show, what they call it, and what it is relative to."""

    column: str
    name: str
    unit: str


SHOWN: Mapping[Kind, Shown] = {
    "bandits": Shown("regret", "regret", "range"),
    "MDPs": Shown("pseudo_regret", "pseudo-regret", "Σℓ∞"),
}
"""Of bandits the realised regret; of MDPs the expected one, which is exact and less noisy."""

EXPERIMENT = "experiment.toml"
"""The file by which a directory of results is known."""

_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.parquet")


class Failure(msgspec.Struct, frozen=True):
    """Replicates that ended in an error."""

    cell: str
    label: str
    first: int
    count: int
    error: str
    traceback: str
    settings: dict[str, Any]
    code: str
    versions: str
    finished: str


def in_order(frame: pl.DataFrame, plan: Sequence[Cell], replicates: int) -> pl.DataFrame:
    """The rows of these cells and replicates, once each, in the order of the plan."""
    keys = [cell.key for cell in plan]
    position = pl.col("cell").cast(pl.String).replace_strict(
        keys, range(len(keys)), default=-1, return_dtype=pl.Int64
    )  # fmt: skip
    row = ["_position", "replicate", "round"]
    wanted = pl.col("_position").ge(0) & pl.col("replicate").lt(replicates)
    frame = frame.with_columns(position.alias("_position")).filter(wanted).sort([*row, "finished"])
    repeated = frame.select(pl.all_horizontal(pl.col(row) == pl.col(row).shift())).to_series()
    if repeated.any():  # a run was stopped between merging files and deleting them
        once = frame.unique(row, keep="first", maintain_order=True)
        numbers = [name for name in SCHEMA if name not in (*TIMING, "versions")]
        differing = frame.unique([*row, *numbers]).height - once.height
        if differing:
            raise StoreError(
                f"{differing} results are stored twice with different numbers: they come from "
                "different machines or a faulty one; delete one of them, or use a new directory"
            )
        frame = once
    return frame.drop("_position")


def missing(frame: pl.DataFrame, plan: Sequence[Cell], replicates: int) -> list[Span]:
    """The replicates that the rows lack."""
    stored = frame.select("cell", "replicate").unique()
    counts = {
        str(key): replicates_of
        for key, replicates_of in stored.group_by("cell").agg(pl.col("replicate")).iter_rows()
    }
    spans = []
    for i, cell in enumerate(plan):
        if cell.key not in counts:
            spans.append(Span(i, 0, replicates))
            continue
        have = np.array(counts[cell.key], dtype=np.int64)
        have = np.sort(have[have < replicates])
        ends = np.concatenate(([-1], have, [replicates]))
        gaps = np.flatnonzero(np.diff(ends) > 1)
        spans += [Span(i, int(ends[g]) + 1, int(ends[g + 1] - ends[g]) - 1) for g in gaps]
    return spans


class Store:
    """A directory of results.

    Parameters
    ----------
    directory : path
        Made when something is first written to it.

    Attributes
    ----------
    experiment : Path
        The file of the experiment whose results these are.
    set_aside : list of (Path, str)
        The files that were not what they should be, and why.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unbounded.lab.store import Store
    >>> with tempfile.TemporaryDirectory() as out:
    ...     store = Store(out)
    ...     with store.locked():
    ...         _ = Path(out, "results", "notes.txt").write_text("not a result")
    ...         store.read().height, store.set_aside[0][1]
    (0, 'not a file of results: its name is of another form')
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.set_aside: list[tuple[Path, str]] = []
        self.experiment = self.directory / EXPERIMENT
        self._results = self.directory / "results"
        self._failed = self.directory / "failed"
        self._aside = self.directory / "set-aside"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out; the lock ends with the process, however that ends."""
        with writing(self.directory):
            self._results.mkdir(parents=True, exist_ok=True)
            self._failed.mkdir(exist_ok=True)
            # Read and write: a named pipe of this name is opened at once, too.
            lock = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._lock(lock)
            with writing(self.directory):
                for place in (self._results, self._failed):
                    for part in place.glob(f"*{PART}"):  # of a run that was killed
                        if not part.is_dir():
                            part.unlink(missing_ok=True)
            yield
        finally:
            os.close(lock)

    def _lock(self, descriptor: int) -> None:
        try:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"another run is writing to {self.directory}: wait for it, or give another "
                "directory with --out"
            ) from None
        except (ImportError, OSError):  # not on this system, or on this disk: two runs at once
            pass  # would only do work twice

    def keep_experiment(self, text: str) -> None:
        """Write the experiment beside its results."""
        with self.locked():
            write_whole(self.experiment, text.encode())

    # ---------------------------------------------------------------- results

    def write(self, frame: pl.DataFrame) -> Path:
        """Add rows, all or none."""
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd", compression_level=1, statistics=False)
        cells = _hash(" ".join(sorted(set(frame["cell"].to_list()))).encode())
        # Not a view: an error would hold it, and Python 3.12.1 cannot collect such garbage.
        content = buffer.getvalue()
        path = self._results / f"{cells}-{_hash(cells.encode(), content)}.parquet"
        write_whole(path, content)
        return path

    def read(self, *, move: bool = False) -> pl.DataFrame:
        """All rows of all sound files; ``move`` puts the others into ``set-aside/``."""
        sound = []
        for path in sorted(self._results.iterdir()) if self._results.is_dir() else []:
            if path.suffix == PART:
                continue
            content = checked_content(path)
            if isinstance(content, str):
                self._put_aside(path, content, move)
            else:
                sound.append(content)
        return _frame(sound)

    def merge(self, most: int = 64) -> None:
        """Write the sound files into one if there are more than ``most``, and room for it."""
        paths = [path for path in self._results.iterdir() if _NAME.fullmatch(path.name)]
        if len(paths) <= most:
            return
        sound = {
            path: content
            for path in sorted(paths)
            if isinstance(content := checked_content(path), bytes)
        }
        try:
            merged = self.write(_frame(list(sound.values())).rechunk())
        except StoreError:  # a full disk: nothing is lost, and there are many files
            return
        with writing(self._results):
            for path in sound:
                if path != merged:
                    path.unlink()

    def _put_aside(self, path: Path, reason: str, move: bool) -> None:
        if move:
            with writing(self._aside):
                self._aside.mkdir(exist_ok=True)
                target = self._aside / path.name
                number = 1
                while os.path.lexists(target):
                    number += 1
                    target = self._aside / f"{path.name}.{number}"
                os.replace(path, target)
            path = target
        self.set_aside.append((path, reason))

    # --------------------------------------------------------------- failures

    def write_failure(self, failure: Failure) -> None:
        """Record an error."""
        path = self._failed / f"{failure.cell}-{failure.first}-{failure.count}.json"
        write_whole(path, msgspec.json.format(msgspec.json.encode(failure)))

    def failures(self, *, move: bool = False) -> list[Failure]:
        """All recorded errors."""
        found = []
        for path in sorted(self._failed.iterdir()) if self._failed.is_dir() else []:
            if path.suffix == PART:
                continue
            try:
                found.append(msgspec.json.decode(read_file(path), type=Failure))
            except (msgspec.MsgspecError, OSError, UnicodeDecodeError, RecursionError) as error:
                self._put_aside(path, f"not a record of a failure: {error}", move)
        return found

    def forget_failures(self) -> None:
        """Before trying again."""
        with writing(self._failed):
            for path in self._failed.iterdir():
                if path.suffix == ".json":
                    path.unlink(missing_ok=True)


def failure_of(outcome: Outcome, cell: Cell) -> Failure:
    """The record of an outcome that failed."""
    settings: Mapping[str, Any] = cell.settings._asdict()
    return Failure(
        cell=cell.key, label=cell.label, first=outcome.span.first, count=outcome.span.replicates,
        error=outcome.error, traceback=outcome.traceback, settings=dict(settings),
        code=cell.code, versions=versions(),
        finished=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )  # fmt: skip


def checked_content(path: Path) -> bytes | str:
    """The bytes of a file of results, or what is wrong with it."""
    name = _NAME.fullmatch(path.name)
    if not name:
        return "not a file of results: its name is of another form"
    try:
        content = read_file(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if _hash(name[1].encode(), content) != name[2]:
        return "damaged: its content does not have the hash in its name"
    try:
        schema = pl.read_parquet_schema(io.BytesIO(content))
    except Exception as error:  # not ours after all: polars may raise anything
        return f"not Parquet: {error}"
    return content if dict(schema) == SCHEMA else "its columns are not those of results"


def _frame(contents: list[bytes]) -> pl.DataFrame:
    return pl.read_parquet(contents) if contents else pl.DataFrame(schema=SCHEMA)


def _hash(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()[:16]
