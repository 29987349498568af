"""Recorded losses: rows of numbers in memory, or in a file that is mapped and not read as a whole.

A kernel gets one vector: some numbers of its adversary, and after them all rows. Of a file that is
the file itself, mapped: the numbers take the place of the end of its header, in a private copy of
that page. So a play touches the rows that it plays, and needs no memory for the others.
"""

from __future__ import annotations

import csv
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from unbounded.core.arrays import Matrix, Vector
from unbounded.validation import shown

_HEADER = 64  # bytes before the rows of a file that is written here
_BLOCK = 1 << 20  # numbers that are looked at together


class Recorded:
    """Rows of losses: in memory, or in a ``file``, as float64 from ``offset`` on.

    ``name`` is what errors call it; the first number of ``shape`` is how many rows there are.
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], rows: Matrix | None = None,
        file: IO[bytes] | None = None, offset: int = 0,
    ) -> None:  # fmt: skip
        if file is not None:
            weakref.finalize(self, file.close)
        if len(shape) < 2 or 0 in shape:
            raise ValueError(
                f"{name} must have a row of losses for each round or episode, got shape {shape}"
            )
        self.name, self.shape = name, shape
        self.count, self.width = shape[0], int(np.prod(shape[1:]))
        self._rows, self._file, self._offset = rows, file, offset
        self._reading = threading.Lock()
        self.largest, self.odd = 0.0, False  # the largest finite number; whether some are not
        for _, block in self.blocks():
            finite = np.isfinite(block)
            self.odd = self.odd or not finite.all()
            self.largest = max(self.largest, float(np.abs(block[finite]).max(initial=0.0)))

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """The number of a row, and some rows from there on; all of them, one block at a time."""
        some = max(_BLOCK // self.width, 1)
        for first in range(0, self.count, some):
            yield first, self._from(first, min(some, self.count - first))

    def _from(self, first: int, count: int) -> Matrix:
        if self._file is None:
            assert self._rows is not None
            return self._rows[first : first + count]
        size = 8 * self.width
        with self._reading:
            self._file.seek(self._offset + first * size)
            return np.frombuffer(self._file.read(count * size)).reshape(count, self.width)

    def params(self, numbers: Sequence[float]) -> Vector:
        """Return the numbers, and all rows after them."""
        if self._file is None:
            assert self._rows is not None
            return np.concatenate([np.array(numbers, np.float64), self._rows.ravel()])
        first = self._offset - 8 * len(numbers)
        whole = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_COPY)
        params = np.frombuffer(whole, count=len(numbers) + self.count * self.width, offset=first)
        params[: len(numbers)] = numbers
        return params

    def check_count(self, wanted: int, what: str, repeat: bool) -> None:
        """Raise if it is played for longer than there are rows."""
        if wanted > self.count and not repeat:
            raise ValueError(
                f"{self.name} has {self.count} rows, and {wanted} {what} are to be played: play "
                "fewer, give more rows, or let them begin again by repeat=True"
            )

    def check_finite(self, place: Callable[[int, int], str], ignored: Any = ()) -> None:
        """Reject what is not finite, but for the columns ``ignored``; ``place`` says where."""
        for first, block in self.blocks() if self.odd else ():
            bad = ~np.isfinite(block)
            bad[:, ignored] = False
            if bad.any():
                r, k = np.argwhere(bad)[0]
                where = place(first + int(r), int(k))
                raise ValueError(f"{self.name} must be finite, got {block[r, k]} in {where}")


def in_memory(losses: Any, dimensions: Sequence[int], wanted: str) -> Recorded:
    """Rows of an array; one that is mapped from a file (``np.load(path, mmap_mode="r")``) stays
    there."""
    if isinstance(losses, np.memmap) and isinstance(losses.base, mmap.mmap):
        if losses.ndim not in dimensions:
            raise ValueError(f"losses must have shape {wanted}, got {losses.shape}")
        return _mapped("losses", losses)
    try:
        array = np.array(losses, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"losses must be numbers of shape {wanted}, not {shown(losses)}") from None
    if array.ndim not in dimensions or array.size == 0:
        raise ValueError(f"losses must have shape {wanted}, got {array.shape}")
    return Recorded("losses", array.shape, array.reshape(len(array), -1))


def from_file(
    path: str | os.PathLike[str], columns: Sequence[str] | None, suffixes: Sequence[str]
) -> Recorded:
    """Return rows of a file, by the end of its name; looked through once in a process."""
    file = Path(path)
    if file.suffix not in suffixes:
        raise ValueError(f"path must be a file {', '.join(suffixes)}, got {shown(str(path))}")
    if columns is not None and file.suffix == ".npy":
        raise ValueError("columns are for files whose columns have names; a .npy file has none")
    try:
        status = file.stat()
        return _opened(
            file.resolve(), None if columns is None else tuple(columns),
            (status.st_size, status.st_mtime_ns, status.st_ino),
        )  # fmt: skip
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror or error}): give the path of a file"
        ) from None


@lru_cache(maxsize=8)
def _opened(path: Path, columns: tuple[str, ...] | None, _: tuple[int, ...]) -> Recorded:
    if not path.is_file():
        raise ValueError(f"{path} is not a file")
    if path.suffix == ".npy":
        try:
            return _mapped(str(path), np.load(path, mmap_mode="r", allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise ValueError(
                f"{path} cannot be read as an array ({error}): write it by np.save, as float64"
            ) from None
    if path.suffix == ".csv":
        rows = _read_csv(path, columns)
        return Recorded(str(path), rows.shape, rows)
    return _unpacked(path, columns)


def _mapped(name: str, array: Any) -> Recorded:
    """Return a whole array that NumPy has mapped from a file."""
    offset = array.offset
    plain = array.dtype == np.float64 and array.dtype.isnative and array.flags.c_contiguous
    if not plain or offset % 8 or offset < _HEADER:  # there is no other way than to read it
        if array.dtype.kind not in "iufb":
            raise ValueError(f"it holds {array.dtype}, not numbers")
        rows = np.array(array, dtype=np.float64, order="C")
        return Recorded(name, rows.shape, rows.reshape(len(rows), -1) if rows.ndim else rows)
    return Recorded(name, array.shape, file=open(array.filename, "rb"), offset=offset)


def _read_csv(path: Path, columns: Sequence[str] | None) -> Matrix:
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if not lines:
        raise ValueError(f"{path} is empty: its first line must have the names of its columns")
    header, *rows = lines
    places = _places(path, header, columns)
    losses = np.empty((len(rows), len(places)))
    for r, row in enumerate(rows):
        for j, place in enumerate(places):
            try:
                losses[r, j] = float(row[place])
            except (ValueError, IndexError):
                raise ValueError(
                    f"{path}: line {r + 2} has no number in column {header[place]!r}"
                ) from None
    return losses


def _unpacked(path: Path, columns: Sequence[str] | None) -> Recorded:
    """Return a Parquet file, whose numbers are compressed, as a temporary file of plain ones."""
    names, count, blocks = _parquet(path)
    wanted = [names[place] for place in _places(path, names, columns)]
    file = tempfile.TemporaryFile()  # noqa: SIM115 # gone when nobody has it open
    file.write(bytes(_HEADER))
    for block in blocks(wanted, max(_BLOCK // max(len(wanted), 1), 1)):
        try:
            file.write(np.ascontiguousarray(block, np.float64).tobytes())
        except (TypeError, ValueError):
            raise ValueError(f"{path} has columns that are not numbers: choose columns=") from None
    file.flush()
    return Recorded(str(path), (count, len(wanted)), file=file, offset=_HEADER)


def _parquet(path: Path) -> tuple[list[str], int, Callable[[list[str], int], Iterator[Any]]]:
    """Return the columns, how many rows there are, and what reads some columns, block by block."""
    try:
        polars = import_module("polars")
    except ModuleNotFoundError:
        return _with_pyarrow(path)
    try:
        names = list(polars.read_parquet_schema(path))
        count = polars.scan_parquet(path).select(polars.len()).collect().item()
    except polars.exceptions.PolarsError as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None

    def blocks(wanted: list[str], some: int) -> Iterator[Any]:
        for first in range(0, count, some):
            frame = polars.scan_parquet(path).select(wanted).slice(first, some).collect()
            yield np.column_stack([frame[name].to_numpy() for name in wanted])

    return names, count, blocks


def _with_pyarrow(path: Path) -> tuple[list[str], int, Callable[[list[str], int], Iterator[Any]]]:
    try:
        file = import_module("pyarrow.parquet").ParquetFile(path)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "reading Parquet needs polars or pyarrow: pip install polars"
        ) from None

    def blocks(wanted: list[str], some: int) -> Iterator[Any]:
        for batch in file.iter_batches(some, columns=wanted):
            yield np.column_stack([batch[name].to_numpy(zero_copy_only=False) for name in wanted])

    return file.schema_arrow.names, file.metadata.num_rows, blocks


def _places(path: Path, names: Sequence[str], wanted: Sequence[str] | None) -> list[int]:
    if wanted is None:
        return list(range(len(names)))
    for name in wanted:
        if name not in names:
            raise ValueError(f"{path} has no column {name!r}; it has {', '.join(names)}")
    return [list(names).index(name) for name in wanted]
