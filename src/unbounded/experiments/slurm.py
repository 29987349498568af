"""The script that has Slurm run an experiment as an array of shards."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from unbounded.experiments.api import Job
from unbounded.experiments.experiment import ConfigError

_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{shards}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
# Options of sbatch come before these lines: unbounded slurm ... | sbatch --time=2:00:00
# Submitted again, the array runs only what is missing. When it is over:
#   {show}
set -eu
cd {directory}
exec {run} --shard "$SLURM_ARRAY_TASK_ID/{shards}"
"""


def script(jobs: Sequence[Job], path: Path, shards: int, *, quick: bool = False) -> str:
    """What ``sbatch`` is given: an array with a task for each shard, of one core each.

    The interpreter is the one that makes the script, in its working directory: the machines must
    see both under the same names.

    Parameters
    ----------
    jobs : sequence of Job
        What is to be run, from `unbounded.experiments.jobs`.
    path : Path
        The file or the directory that they were read from.
    shards : int
        How many tasks.
    quick : bool
        Whether the jobs are the shorter experiments.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unbounded import experiments
    >>> from unbounded.experiments.slurm import script
    >>> text = '''
    ... arms = 3
    ... rounds = 100
    ... learners = [{name = "SCB"}, {name = "Uniform"}]
    ... adversaries = [{name = "StochasticGap"}]
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "small.toml")
    ...     _ = path.write_text(text)
    ...     lines = script(experiments.jobs(path), path, 8).splitlines()
    >>> lines[1:3]
    ['#SBATCH --job-name=small', '#SBATCH --array=1-8']
    """
    if shards < 1:
        raise ConfigError(f"--shards must be at least 1, got {shards}")
    most = max(len(job.cells) * job.experiment.replicates for job in jobs)
    if shards > most:
        raise ConfigError(
            f"--shards {shards} is more than the {most} replicates: give at most that"
        )
    out = jobs[0].store.directory
    out = out.parent if path.is_dir() else out
    run = [sys.executable, "-m", "unbounded", "run", str(path), "--out", str(out)]
    run += ["--quick"] if quick else []
    name = path.resolve().name if path.is_dir() else jobs[0].experiment.name
    return _SCRIPT.format(
        name="".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name),
        shards=shards,
        show=shlex.join(["unbounded", "report", str(out)]).replace("\n", "?"),
        directory=shlex.quote(str(Path.cwd())),
        run=shlex.join([*run, "--engine", "serial"]),
    )
