"""The command ``unbounded``: run experiments, look at results, list what there is."""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from unbounded.cli.inspect import say, say_set_aside
from unbounded.io import printable

if TYPE_CHECKING:
    from cyclopts import App
    from rich.console import Console

    from unbounded.experiments import Job
    from unbounded.experiments.progress import Display


def main(arguments: list[str] | None = None) -> int:
    """Carry out a command line; the exit status is 0 if all is well, 1 if runs failed, 2 if
    nothing could be run, 130 if it was interrupted."""
    _prepare_streams()
    for name in ("cyclopts", "loky", "msgspec", "polars", "rich"):
        if find_spec(name) is None:
            return _rejected(f"{name} is missing: pip install 'unbounded[experiments]'")
    import polars as pl

    from unbounded import experiments
    from unbounded.durable import DurableError
    from unbounded.experiments.store import sentence

    expected = (
        DurableError,
        experiments.ConfigError,
        experiments.EngineError,
        experiments.StoreError,
        MemoryError,
        pl.exceptions.PolarsError,
    )
    try:
        status = _app()(sys.argv[1:] if arguments is None else arguments)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _rejected(f"{where}{sentence(error)}")
    except expected as error:
        return _rejected(str(error) or type(error).__name__)
    except KeyboardInterrupt:
        return 130
    return status if isinstance(status, int) else 0


def _rejected(reason: str) -> int:
    print(f"unbounded: {printable(reason)}", file=sys.stderr)
    return 2


def _prepare_streams() -> None:
    """Have all three standard streams, as workers inherit them, and have none of them fail.

    One that is closed, as a daemon's may be, leads nowhere: otherwise the next file to be opened
    would take its place. And not every terminal knows every letter.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 # for the whole program
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 # likewise
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _app() -> App:
    import cyclopts

    from unbounded import __version__
    from unbounded.cli import inspect

    app = cyclopts.App(
        name="unbounded",
        help="Experiments with scale-free bandits and reinforcement learning.",
        result_action="return_value",
        version=__version__,
    )
    app.command(_init, name="init")
    app.command(_run, name="run")
    app.command(_slurm, name="slurm")
    app.command(inspect.show)
    app.command(inspect.report)
    app.command(inspect.watch)
    app.command(inspect.list_names, name="list")
    app.command(inspect.inspect)
    app.command(_warm, name="warm")
    app.register_install_completion_command(
        name="--install-completion", help="Have the shell complete commands, options and files."
    )
    return app


def _init(kind: Literal["bandit", "mdp", "own", "tour"], directory: Path) -> int:
    """Write a small experiment with comments, to begin with; never over something that is there.

    Parameters
    ----------
    kind
        Bandits, MDPs, a learner of your own in a file beside the experiment, or a tour of three.
    directory
        Where to; it need not exist yet.
    """
    from unbounded.experiments.api import shipped_directory
    from unbounded.experiments.store import StoreError, writing

    templates = Path(str(files("unbounded.experiments"))) / "templates"
    source = shipped_directory() / kind if kind == "tour" else templates / kind
    contents = {one.name: one.read_bytes() for one in source.iterdir() if one.is_file()}
    written = [directory / name for name in sorted(contents)]
    there = [path for path in written if os.path.lexists(path)]
    if there:
        raise StoreError(
            f"{there[0]} is there already, and is not written over: give another directory"
        )
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for path in written:
            with open(path, "xb") as file:
                file.write(contents[path.name])
    for path in written:
        print(path)
    experiments = [path.name for path in written if path.suffix == ".toml"]
    what = experiments[0] if len(experiments) == 1 else "."
    name = Path(what).stem if len(experiments) == 1 else directory.resolve().name
    print(f"Now: {shlex.join(['cd', str(directory)])} && unbounded run {what}")
    print(f"and then: {shlex.join(['unbounded', 'report', f'out/{name}'])}")
    return 0


def _run(
    path: Path,
    *,
    out: Path | None = None,
    quick: bool = False,
    engine: str = "local",
    workers: int | None = None,
    shard: str | None = None,
    dry_run: bool = False,
) -> int:
    """Run what is missing of an experiment, or of all experiments in a directory.

    Parameters
    ----------
    path
        An experiment, in TOML; or a directory, whose .toml files are run one after the other; or
        tour, paper, costs or scales, which are shipped.
    out
        The directory of the results: out/NAME by default; for a directory, out/DIRECTORY, which
        gets a directory for each experiment. With --quick, NAME-quick or DIRECTORY-quick.
    quick
        Run the shorter experiments that the [quick] tables of the files make of them.
    engine
        local, serial, dask, dask://HOST:PORT, or dask-file:PATH with the file of a scheduler.
    workers
        How many worker processes; by default one for each core.
    shard
        Run only a part: 7/100 is the seventh of a hundred, which may run at the same time on
        other machines that share the directory of results.
    dry_run
        Only say what would be run. Of an experiment that names code from elsewhere, say what
        would be imported, and import nothing.
    """
    from rich.console import Console

    from unbounded import experiments
    from unbounded.experiments.api import shipped
    from unbounded.experiments.progress import Display
    from unbounded.experiments.runner import compile_ahead

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    given, path = path, shipped(path)
    if dry_run and _say_imports(console, path):
        return 0
    todo = experiments.jobs(path, out=out, quick=quick, shard=shard)
    if dry_run:
        for job in todo:
            _say_missing(console, job)
        return 0
    # loky replaces a worker that has grown by compiling: nothing is lost, and nobody need know.
    warnings.filterwarnings("ignore", "A worker was restarted", UserWarning)
    status = 0
    try:
        with _termination_interrupts(), Display(console) as display:
            fresh = [job for job in todo[1:] if not job.store.directory.exists()]
            if engine == "local" and fresh:
                compile_ahead([(job.cells, job.experiment.replicates) for job in fresh], workers)
            for number, job in enumerate(todo, 1):
                if path.is_dir():
                    display.heading = f"{job.experiment.name} ({number} of {len(todo)})"
                status = max(status, _run_job(console, display, job, engine, workers))
    except KeyboardInterrupt:
        kept = todo[0].store.directory
        kept = kept.parent if path.is_dir() else kept
        again = ["unbounded", "run", str(given), "--out", str(kept), "--engine", engine]
        again += ["--quick"] if quick else []
        again += ["--shard", shard] if shard else []
        resume = f"resume with: {shlex.join(again)}"
        say(console, f"Stopped. What was finished is kept in {kept}; {resume}")
        return 130
    return status


def _say_imports(console: Console, path: Path) -> bool:
    """Say what would be imported from elsewhere, if anything would."""
    from unbounded.experiments import ConfigError
    from unbounded.experiments.names import our_names
    from unbounded.experiments.plugins import ForeignError, imports_of

    found = False
    for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
        try:
            lines = imports_of(file, our_names())
        except ForeignError as error:
            raise ConfigError(f"{file}: {error}") from None
        for line in lines:
            say(console, f"{file} would import {line}")
        found = found or bool(lines)
    if found:
        say(console, "Nothing was imported or checked, and nothing was run.")
    return found


def _say_missing(console: Console, job: Job) -> None:
    total = sum(span.replicates for span in job.share())
    left = sum(span.replicates for span in job.missing())
    where = job.store.directory
    say(console, f"{len(job.cells)} cells, {total} replicates, {left} to run, in {where}")


def _run_job(console: Console, display: Display, job: Job, engine: str, workers: int | None) -> int:
    """Run one experiment and say what came of it; 1 if something failed."""
    from unbounded.experiments.progress import span_of

    try:
        result = job.run(engine=engine, workers=workers, watcher=display)
    finally:
        say_set_aside(console, job.store)
    directory = job.store.directory
    total = sum(span.replicates for span in job.share())
    failed = sum(failure.count for failure in result.failures)
    done = total - failed
    say(
        console,
        f"{done} of {total} replicates done ({result.already_stored} were stored before), "
        f"{failed} failed, {span_of(sum(result.task_seconds))} of computing, "
        f"{span_of(result.compile_seconds)} of compiling and loading. Results: {directory}",
    )
    if not total:
        say(console, "This shard has nothing to do: there are more shards than replicates.")
    if result.other_code:
        say(
            console,
            f"{result.other_code} cells have results of other code too: rows are shown together "
            "only if all shards run with the same versions of unbounded, Python, NumPy and Numba",
        )
    for failure in result.failures[:5]:
        say(console, f"failed: {failure.label}: {failure.error}")
    if len(result.failures) > 5:
        say(console, f"and {len(result.failures) - 5} more in {directory / 'failed'}")
    return 1 if failed else 0


def _slurm(path: Path, *, shards: int, out: Path | None = None, quick: bool = False) -> int:
    """Print the script of a Slurm array that runs an experiment: unbounded slurm ... | sbatch

    Parameters
    ----------
    path
        An experiment, or a directory of them, as for ``run``.
    shards
        How many parts to cut it into: the tasks of the array.
    out
        The directory of the results, as for ``run``; all machines must see it.
    quick
        Run the shorter experiments that the [quick] tables of the files make of them.
    """
    from unbounded import experiments
    from unbounded.experiments.shards import script

    print(script(experiments.jobs(path, out=out, quick=quick), path, shards, quick=quick), end="")
    return 0


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Answer SIGTERM, which batch systems send, as Ctrl-C."""

    def interrupt(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _warm(*names: str, simulate: bool = False, status: bool = False, clear: bool = False) -> int:
    """Compile what learners need, and cache it, so that whoever finds the cache starts at once.

    Parameters
    ----------
    names
        Learners, as SCB, with all their variants (SCBRL: practical and paper); all by default.
    simulate
        Compile what simulations and experiments need too, with all adversaries.
    status
        Compile nothing; say how kernels are compiled here, and where they are cached.
    clear
        Compile nothing; delete what was compiled, as before this package is uninstalled.
    """
    from unbounded import warm
    from unbounded._warm import compilation_status
    from unbounded.experiments.progress import span_of
    from unbounded.jit.files import clear_cache

    if clear:
        print(f"{clear_cache()} files of compiled code were deleted")
    if status:
        print(compilation_status())
    if clear or status:
        return 0
    try:
        done = warm(*names, simulate=simulate, progress=lambda line: print(line, flush=True))
    except (RuntimeError, ValueError) as error:
        return _rejected(str(error))
    spent = span_of(sum(done.seconds.values()))
    print(f"{done.files} files were written in {spent}, to {done.directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
