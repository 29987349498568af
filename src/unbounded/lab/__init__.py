"""The laboratory from Python: experiments in, polars frames out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from unbounded.lab import config, grid
from unbounded.lab.config import ConfigError, Experiment
from unbounded.lab.engine import EngineError
from unbounded.lab.runner import Watcher, run_cells
from unbounded.lab.store import TIMING, Store, StoreError, in_order, write_whole

__all__ = [
    "TIMING",
    "ConfigError",
    "EngineError",
    "Experiment",
    "Job",
    "Store",
    "StoreError",
    "jobs",
    "results",
    "run",
]

_FILE = "experiment.toml"


def run(
    experiment: Experiment | Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    engine: str = "local",
    workers: int | None = None,
    progress: bool = False,
    quick: bool = False,
) -> pl.DataFrame:
    """Run an experiment.

    Parameters
    ----------
    experiment : Experiment, dict or path
        A dict has the keys of the TOML file; a path is that of such a file.
    out : path, optional
        A directory to keep results in: what is there already is not run again. Without it
        nothing is written.
    engine : str
        "local", "serial", "dask" or "dask://HOST:PORT".
    workers : int, optional
        How many processes; by default one for each core.
    progress : bool
        Whether to show a live display.
    quick : bool
        Whether to run the shorter experiment that the table ``quick`` makes of it; for a dict or
        a path.

    Returns
    -------
    polars.DataFrame
        A row for each cell, replicate and checkpoint, in the order of the experiment. The same
        on every engine, but for the columns in ``TIMING``.

    Warns
    -----
    RuntimeWarning
        If some replicates failed (they are not in the frame), or if files in ``out`` were
        damaged (they are set aside, and their replicates are run again).

    Examples
    --------
    >>> from unbounded import lab
    >>> frame = lab.run({
    ...     "learners": [{"name": "SCB", "clip": ["scale", "range"]}, {"name": "TsallisINF"}],
    ...     "adversaries": [{"name": "StochasticGap", "gap": 0.2, "shift": 10.0}],
    ...     "arms": 5,
    ...     "rounds": 1000,
    ...     "replicates": 4,
    ...     "checkpoints": [100, 1000],
    ... }, engine="serial")
    >>> frame.shape
    (24, 29)
    """
    e = checked(experiment, quick=quick)
    store = None if out is None else prepared(out, e)
    with _display(progress) as watcher:
        result = run_cells(
            grid.cells(e), e.replicates,
            store=store, engine=engine, workers=workers, watcher=watcher,
        )  # fmt: skip
    for path, reason in store.set_aside if store else []:
        warnings.warn(f"{path} was set aside: {reason}", RuntimeWarning, stacklevel=2)
    if result.failures:
        first = result.failures[0]
        count = sum(failure.count for failure in result.failures)
        warnings.warn(
            f"{count} replicates failed and are not in the frame; the first is {first.label}: "
            f"{first.error}",
            RuntimeWarning,
            stacklevel=2,
        )
    return result.frame


def _display(wanted: bool) -> AbstractContextManager[Watcher | None]:
    if not wanted:
        return nullcontext()
    from unbounded.lab.display import Display

    return Display()


def results(directory: str | os.PathLike[str]) -> pl.DataFrame:
    """What is stored of the experiment in a directory, as `run` returns it; runs nothing.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded import lab
    >>> e = {"learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...      "arms": 3, "rounds": 100, "replicates": 2}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     frame = lab.run(e, out=out, engine="serial")
    ...     lab.results(out).equals(frame)
    True
    """
    e = config.load(Path(directory) / _FILE)
    return in_order(Store(directory).read(), grid.cells(e), e.replicates)


def checked(
    experiment: Experiment | Mapping[str, Any] | str | os.PathLike[str], *, quick: bool = False
) -> Experiment:
    """An experiment from any of the forms that `run` takes."""
    if isinstance(experiment, Experiment):
        return config.experiment(config.to_dict(experiment), quick=quick)
    if isinstance(experiment, Mapping):
        return config.experiment(experiment, quick=quick)
    return config.load(experiment, quick=quick)


class Job(NamedTuple):
    """An experiment, and the directory of its results."""

    experiment: Experiment
    directory: Path


def jobs(
    path: str | os.PathLike[str], *, out: str | os.PathLike[str] | None = None, quick: bool = False
) -> list[Job]:
    """What `unbounded run` has to do: the experiment in a file, or those in a directory.

    All are read before any is run. Results of a file are kept in ``out/NAME``, of the files of a
    directory in ``out/DIRECTORY/NAME``, with ``-quick`` behind the first part for quick runs;
    ``out`` stands for that whole, or for ``out/DIRECTORY``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    from unbounded import lab
    from unbounded.lab import config
    >>> e = lab.checked({
    ...     "learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...     "arms": 3, "rounds": 100})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = Path(directory, "one.toml").write_text(config.dumps(e))
    ...     lab.jobs(directory, out="results")[0].directory.as_posix()
    'results/one'
    """
    path, suffix = Path(path), "-quick" if quick else ""
    if not path.is_dir():
        e = config.load(path, quick=quick)
        return [Job(e, Path(out) if out else Path("out") / f"{e.name}{suffix}")]
    files = sorted(path.glob("*.toml"), key=lambda file: file.stem)
    if not files:
        raise ConfigError(f"{path}: there is no .toml file in this directory")
    parent = Path(out) if out else Path("out") / f"{path.resolve().name}{suffix}"
    found: dict[str, Job] = {}
    for file in files:
        e = config.load(file, quick=quick)
        if e.name in found:
            raise ConfigError(f"{file}: another file of {path} has the name {e.name!r} too")
        found[e.name] = Job(e, parent / e.name)
    return list(found.values())


def prepared(out: str | os.PathLike[str], e: Experiment) -> Store:
    """The store in ``out``, with the experiment written beside it."""
    store = Store(out)
    with store.locked():
        write_whole(store.directory / _FILE, config.dumps(e).encode())
    return store
