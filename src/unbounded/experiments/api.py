"""Experiments from Python: experiments in, polars frames out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from unbounded.experiments import config, grid
from unbounded.experiments.experiment import ConfigError, Experiment
from unbounded.experiments.grid import Cell
from unbounded.experiments.progress import Watcher
from unbounded.experiments.runner import Result, run_cells
from unbounded.experiments.shards import Shard, missing, of_share, rows_of_share, shard_of, share_of
from unbounded.experiments.store import Store, in_order
from unbounded.experiments.task import Span
from unbounded.io import printable
from unbounded.validation import warn


class Job(NamedTuple):
    """An experiment, its cells, and where its results are stored; what `run` does step by step.

    Attributes
    ----------
    experiment : Experiment
    cells : sequence of Cell
    store : Store

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unbounded import experiments
    >>> text = '''
    ... arms = 3
    ... rounds = 100
    ... learners = [{name = "SCB"}, {name = "Uniform"}]
    ... adversaries = [{name = "StochasticGap"}]
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = Path(directory, "one.toml").write_text(text)
    ...     [job] = experiments.jobs(directory, out=directory)
    ...     before = sum(span.replicates for span in job.missing())
    ...     result = job.run(engine="serial")
    ...     before, result.already_stored, job.missing(), job.store.directory.name
    (20, 0, [], 'one')
    """

    experiment: Experiment
    cells: Sequence[Cell]
    store: Store

    def rows(self) -> pl.DataFrame:
        """Return what is stored of the experiment, or of its shard, in its order."""
        rows = in_order(self.store.read(), self.cells, self.experiment.replicates)
        return rows_of_share(rows, self.cells, self.share())

    def share(self) -> list[Span]:
        """Return the replicates that it is about: all, or those of a shard."""
        return share_of(self.store.shard, self.cells, self.experiment.replicates)

    def missing(self) -> list[Span]:
        """Return the replicates that are not stored."""
        everything = missing(self.store.read(), self.cells, self.experiment.replicates)
        return of_share(everything, self.share())

    def run(
        self, *, engine: str = "local", workers: int | None = None, watcher: Watcher | None = None
    ) -> Result:
        """Run what is missing, and keep it; see `unbounded.experiments.runner.run_cells`."""
        plan = grid.encoded(grid.plan_of(self.experiment, self.cells))
        self.store.keep_experiment(config.dumps(self.experiment), plan)
        return run_cells(
            self.cells, self.experiment.replicates,
            store=self.store, engine=engine, workers=workers, watcher=watcher,
        )  # fmt: skip


def run(
    experiment: Experiment | Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    engine: str = "local",
    workers: int | None = None,
    progress: bool = False,
    quick: bool = False,
    shard: str | None = None,
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
        "local", "serial", "dask", "dask://HOST:PORT" or "dask-file:PATH".
    workers : int, optional
        How many processes; by default one for each core.
    progress : bool
        Whether to show a live display.
    quick : bool
        Whether to run the shorter experiment that the table ``quick`` makes of it; for a dict or
        a path.
    shard : str, optional
        "7/100" runs the seventh of a hundred parts, into a directory of its own in ``out``, where
        other shards may be writing. When all are done, `results` has what one run would return.

    Returns
    -------
    polars.DataFrame
        A row for each cell, replicate and checkpoint, in the order of the experiment; of a shard,
        its own. The same on every engine, but for the columns in ``TIMING``.

    Warns
    -----
    RuntimeWarning
        If some replicates failed (they are not in the frame), or if files in ``out`` were
        damaged (they are set aside, and their replicates are run again).

    Examples
    --------
    >>> from unbounded import experiments
    >>> frame = experiments.run({
    ...     "learners": [{"name": "SCB", "clip": ["scale", "range"]}, {"name": "TsallisINF"}],
    ...     "adversaries": [{"name": "StochasticGap", "gap": 0.2, "shift": 10.0}],
    ...     "arms": 5,
    ...     "rounds": 1000,
    ...     "replicates": 4,
    ...     "checkpoints": [100, 1000],
    ... }, engine="serial")
    >>> frame.shape
    (24, 36)
    """
    e = _checked(experiment, quick=quick)
    part = None if shard is None else shard_of(shard)
    if part is not None and out is None:
        raise ConfigError("a shard needs out=, the directory that all shards write to")
    cells = grid.cells(e)
    aside: Sequence[tuple[Path, str]] = ()
    with _display(progress) as watcher:
        if out is None:
            result = run_cells(cells, e.replicates, engine=engine, workers=workers, watcher=watcher)
        else:
            job = Job(e, cells, Store(out, part))
            result = job.run(engine=engine, workers=workers, watcher=watcher)
            aside = job.store.set_aside
    for path, reason in aside:
        text = printable(f"{path} was set aside: {reason}")
        warn(text, RuntimeWarning)
    if result.failures:
        first = result.failures[0]
        count = sum(failure.count for failure in result.failures)
        text = printable(f"the first is {first.label}: {first.error}")
        said = f"{count} replicates failed and are not in the frame; {text}"
        warn(said, RuntimeWarning)
    return result.frame


def _checked(
    experiment: Experiment | Mapping[str, Any] | str | os.PathLike[str], *, quick: bool
) -> Experiment:
    """Return an experiment from any of the forms that `run` takes."""
    if isinstance(experiment, Experiment):
        return config.experiment(config.to_dict(experiment), quick=quick)
    if isinstance(experiment, Mapping):
        return config.experiment(experiment, quick=quick)
    return config.load(experiment, quick=quick)


def _display(wanted: bool) -> AbstractContextManager[Watcher | None]:
    if not wanted:
        return nullcontext()
    from unbounded.experiments.progress import Display

    return Display()


def opened(directory: str | os.PathLike[str]) -> Job:
    """Return the experiment whose results are in a directory.

    Nothing is run or written, and nothing that the experiment names is imported: anybody's results
    can be looked at.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded import experiments
    >>> e = {"learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...      "arms": 3, "rounds": 100, "replicates": 2}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     frame = experiments.run(e, out=out, engine="serial")
    ...     experiments.opened(out).experiment.replicates
    2
    """
    store = Store(directory)
    plan = store.plan()
    return Job(plan.experiment, plan.cells, store)


def results(directory: str | os.PathLike[str]) -> pl.DataFrame:
    """Return what is stored of the experiment in a directory, as `run` returns it; runs nothing.

    Examples
    --------
    >>> import tempfile
    >>> from unbounded import experiments
    >>> e = {"learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...      "arms": 3, "rounds": 100, "replicates": 2}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     frame = experiments.run(e, out=out, engine="serial")
    ...     experiments.results(out).equals(frame)
    True
    """
    return opened(directory).rows()


def shipped_directory() -> Path:
    """Return the directory of the experiments that are shipped: of a wheel, or of a checkout."""
    inside = Path(__file__).parent / "shipped"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "experiments"


def shipped(path: str | os.PathLike[str]) -> Path:
    """Return a path; if nothing is there, that of the experiments of this name that are shipped."""
    if os.path.lexists(path):
        return Path(path)
    found = [shipped_directory() / str(path), shipped_directory() / f"{path}.toml"]
    plain = Path(path).name == str(path)
    return next((one for one in found if plain and one.exists()), Path(path))


def jobs(
    path: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
    shard: str | None = None,
) -> list[Job]:
    """Return what `unbounded run` has to do: the experiment in a file, or those in a directory.

    All are read before any is run. Results of a file are kept in ``out/NAME``, of the files of a
    directory in ``out/DIRECTORY/NAME``, with ``-quick`` behind the first part for quick runs;
    ``out`` stands for that whole, or for ``out/DIRECTORY``. ``shard`` is as for `run`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unbounded import experiments
    >>> from unbounded.experiments import config
    >>> e = config.experiment({
    ...     "learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
    ...     "arms": 3, "rounds": 100})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = Path(directory, "one.toml").write_text(config.dumps(e))
    ...     experiments.jobs(directory, out="results")[0].store.directory.as_posix()
    'results/one'
    """
    part = None if shard is None else shard_of(shard)
    path, suffix = shipped(path), "-quick" if quick else ""
    if not path.is_dir():
        e = config.load(path, quick=quick)
        return [_job(e, Path(out) if out else Path("out") / f"{e.name}{suffix}", part)]
    files = sorted(path.glob("*.toml"), key=lambda file: file.stem)
    if not files:
        raise ConfigError(f"{path}: there is no .toml file in this directory")
    parent = Path(out) if out else Path("out") / f"{path.resolve().name}{suffix}"
    found: dict[str, Experiment] = {}
    for file in files:
        e = config.load(file, quick=quick)
        if e.name in found:
            raise ConfigError(f"{file}: another file of {path} has the name {e.name!r} too")
        found[e.name] = e
    return [_job(e, parent / e.name, part) for e in found.values()]


def _job(e: Experiment, directory: Path, shard: Shard | None) -> Job:
    return Job(e, grid.cells(e), Store(directory, shard))
