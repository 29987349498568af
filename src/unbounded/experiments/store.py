"""Results on disk: Parquet files that are either complete or set aside.

A directory holds ``experiment.toml``, ``plan.json``, ``results/*.parquet`` and ``failed/*.json``. A
file of results is written under a temporary name and renamed, and its name ends in a hash of its
bytes: one that is cut short, altered, renamed or not a file at all is recognized without being
trusted to describe itself, moved to ``set-aside/`` and named. Nothing is ever unpickled. Who can
write to the directory can write results that nobody computed; nothing here keeps them from it.

A shard has such a directory of its own, ``shards/7-of-100/``, so that shards can write at the same
time without touching what another one writes, on disks with and without locks. Who reads an
experiment reads them all.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from unbounded.experiments.grid import SCHEMA, TIMING, Cell, Plan, decoded, versions
from unbounded.experiments.names import Kind
from unbounded.experiments.shards import SHARDS, Shard
from unbounded.experiments.task import Outcome
from unbounded.io import PART, read_regular, try_lock, write_atomic
from unbounded.results import BANDITS, MDPS, Shown

_FULL = "free some space and run it again; what was kept before is still there"
_CLOSED = "make the directory writable, or give another one"
_TAKEN = "something else has this name: move it away, or give another directory"
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _CLOSED),
    **dict.fromkeys((errno.EEXIST, errno.EISDIR, errno.ENOTDIR), _TAKEN),
    errno.ENAMETOOLONG: "give a shorter name",
}


class StoreError(RuntimeError):
    """Why a directory of results cannot be used, and what to do."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Return the reason why ``path`` could not be written."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {sentence(error)}") from error


def sentence(error: OSError) -> str:
    """Say what the system says, and what to do about it."""
    remedy = _REMEDIES.get(error.errno or 0, "give another directory")
    return f"{error.strerror or error}; {remedy}"


@contextmanager
def locked(directory: Path, *, shared: bool = False) -> Iterator[bool]:
    """Keep other runs out of a directory, or with ``shared`` those that are not; says whether this
    disk has locks at all. The lock ends with the process, however that ends."""
    with writing(directory):
        # Read and write: a named pipe of this name is opened at once, too.
        descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:  # without locks, two runs at once would only do work twice
            there = try_lock(descriptor, shared=shared)
        except BlockingIOError:
            raise StoreError(
                f"another run is writing to {directory}: wait for it, or give another "
                "directory with --out"
            ) from None
        yield there
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically; raise a `StoreError` if that fails."""
    with writing(path):
        write_atomic(path, content)


SHOWN: Mapping[Kind, Shown] = {"bandits": BANDITS, "MDPs": MDPS}
"""Which regret tables and charts show."""

EXPERIMENT, PLAN = "experiment.toml", "plan.json"
"""The files by which a directory of results is known: to run it again, and to look at it."""

_RESULTS, _FAILED, _ASIDE = "results", "failed", "set-aside"
_LOOKS = 5  # at a directory whose files are being merged by another run
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
    """Return the rows of these cells and replicates, once each, in the order of the plan."""
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


class Store:
    """A directory of results.

    Parameters
    ----------
    directory : path
        Made when something is first written to it.
    shard : Shard, optional
        Whose results are written; those of all are read.

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
    >>> from unbounded.experiments.store import Store
    >>> with tempfile.TemporaryDirectory() as out:
    ...     store = Store(out)
    ...     with store.locked():
    ...         _ = Path(out, "results", "notes.txt").write_text("not a result")
    ...         store.read().height, store.set_aside[0][1]
    (0, 'not a file of results: its name is of another form')
    """

    def __init__(self, directory: str | os.PathLike[str], shard: Shard | None = None) -> None:
        self.directory = Path(directory)
        self.shard = shard
        self.set_aside: list[tuple[Path, str]] = []
        self.experiment = self.directory / EXPERIMENT
        self._own = self.directory / SHARDS / shard.directory if shard else self.directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out, or of a shard those of all and of the same shard; the lock ends with
        the process, however that ends."""
        with ExitStack() as held:
            with writing(self._own):
                for name in (_RESULTS, _FAILED):
                    (self._own / name).mkdir(parents=True, exist_ok=True)
            if self.shard is not None:
                held.enter_context(locked(self.directory, shared=True))
            if held.enter_context(locked(self._own)):
                with writing(self._own):
                    self._forget_parts()
            yield

    def _forget_parts(self) -> None:
        """Delete what a run that was killed has left, of all that nobody else can be writing."""
        parts = [] if self.shard else [*self.directory.glob(f"{EXPERIMENT}.*{PART}")]
        parts += [] if self.shard else [*self.directory.glob(f"{PLAN}.*{PART}")]
        for place in [*self._held(_RESULTS), *self._held(_FAILED)]:
            parts += place.glob(f"*{PART}")
        for part in parts:
            if not part.is_dir():
                part.unlink(missing_ok=True)

    def _held(self, name: str) -> list[Path]:
        """Return the directories of this name that no other run may write to: a whole run keeps all
        shards out."""
        return [self._own / name] if self.shard is not None else self._all(name)

    def _all(self, name: str) -> list[Path]:
        """Return the directories of this name: of the experiment itself, and of its shards."""
        places = [self.directory / name, *sorted(self.directory.glob(f"{SHARDS}/*/{name}"))]
        return [place for place in places if place.is_dir()]

    def keep_experiment(self, text: str, plan: bytes) -> None:
        """Write the experiment and its encoded plan beside its results."""
        with self.locked():
            for name, content in ((PLAN, plan), (EXPERIMENT, text.encode())):
                if self.shard is None or not self._has(name, content):
                    write_whole(self.directory / name, content)

    def _has(self, name: str, content: bytes) -> bool:
        """Return whether another shard has written the same; a hundred need not."""
        try:
            return read_regular(self.directory / name) == content
        except OSError:
            return False

    def plan(self) -> Plan:
        """Read what was run here; nothing that it names is imported."""
        path = self.directory / PLAN
        try:
            return decoded(read_regular(path))
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
        except (ValueError, RecursionError) as error:
            reason = f"is not a plan: {error}"
        raise StoreError(
            f"{path} {reason}; give a directory that `unbounded run` has written to, or run the "
            "experiment again: nothing is computed twice"
        )

    # ---------------------------------------------------------------- results

    def write(self, frame: pl.DataFrame) -> Path:
        """Add rows, all or none."""
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="zstd", compression_level=1, statistics=False)
        cells = _hash(" ".join(sorted(set(frame["cell"].to_list()))).encode())
        # Not a view: an error would hold it, and Python 3.12.1 cannot collect such garbage.
        content = buffer.getvalue()
        path = self._own / _RESULTS / f"{cells}-{_hash(cells.encode(), content)}.parquet"
        write_whole(path, content)
        return path

    def read(self, *, move: bool = False) -> pl.DataFrame:
        """All rows of all sound files; ``move`` puts the others into ``set-aside/``, but for those
        that another shard may be writing."""
        for look in range(_LOOKS):
            found = {path: checked_content(path) for path in self._files()}
            # One that has gone in the meantime was merged into another.
            if look + 1 == _LOOKS or all(map(os.path.lexists, found)):
                break
        for path, content in found.items():
            if isinstance(content, str):
                self._put_aside(path, content, move)
        return _frame([content for content in found.values() if isinstance(content, bytes)])

    def _files(self) -> list[Path]:
        """Return what lies where results are, but for what is being written."""
        places = self._all(_RESULTS)
        return [path for place in places for path in sorted(place.iterdir()) if path.suffix != PART]

    def merge(self, most: int = 64) -> None:
        """Write the sound files into one if there are more than ``most``, and room for it."""
        files = [path for place in self._held(_RESULTS) for path in sorted(place.iterdir())]
        paths = [path for path in files if _NAME.fullmatch(path.name)]
        if len(paths) <= most:
            return
        sound = {
            path: content for path in paths if isinstance(content := checked_content(path), bytes)
        }
        try:
            merged = self.write(_frame(list(sound.values())).rechunk())
        except StoreError:  # a full disk: nothing is lost, and there are many files
            return
        for path in sound:
            if path != merged:
                with writing(path.parent):
                    path.unlink()

    def _put_aside(self, path: Path, reason: str, move: bool) -> None:
        if move and path.parent in [*self._held(_RESULTS), *self._held(_FAILED)]:
            aside = self._own / _ASIDE
            with writing(aside):
                aside.mkdir(exist_ok=True)
                target = aside / path.name
                number = 1
                while os.path.lexists(target):
                    number += 1
                    target = aside / f"{path.name}.{number}"
                os.replace(path, target)
            path = target
        self.set_aside.append((path, reason))

    # --------------------------------------------------------------- failures

    def write_failure(self, failure: Failure) -> None:
        """Record an error."""
        path = self._own / _FAILED / f"{failure.cell}-{failure.first}-{failure.count}.json"
        write_whole(path, msgspec.json.format(msgspec.json.encode(failure)))

    def failures(self, *, move: bool = False) -> list[Failure]:
        """Return all recorded errors."""
        found = []
        for path in [path for place in self._all(_FAILED) for path in sorted(place.iterdir())]:
            if path.suffix == PART:
                continue
            try:
                found.append(msgspec.json.decode(read_regular(path), type=Failure))
            except (msgspec.MsgspecError, OSError, UnicodeDecodeError, RecursionError) as error:
                if os.path.lexists(path):  # and not being tried again by another shard
                    self._put_aside(path, f"not a record of a failure: {error}", move)
        return found

    def forget_failures(self) -> None:
        """Before trying again."""
        for place in self._held(_FAILED):
            with writing(place):
                for path in sorted(place.iterdir()):
                    if path.suffix == ".json":
                        path.unlink(missing_ok=True)


def failure_of(outcome: Outcome, cell: Cell) -> Failure:
    """Return the record of an outcome that failed."""
    settings: Mapping[str, Any] = cell.settings._asdict()
    return Failure(
        cell=cell.key, label=cell.label, first=outcome.span.first, count=outcome.span.replicates,
        error=outcome.error, traceback=outcome.traceback, settings=dict(settings),
        code=cell.code, versions=versions(),
        finished=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )  # fmt: skip


def checked_content(path: Path) -> bytes | str:
    """Return the bytes of a file of results, or what is wrong with it."""
    name = _NAME.fullmatch(path.name)
    if not name:
        return "not a file of results: its name is of another form"
    try:
        content = read_regular(path)
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
