"""A release, tried: `python tests/release.py dist`, after `python -m build`.

What an index of packages would show has no link into the repository; the wheel has what it should
and nothing else; a wheel made from the sdist is the same; and in a new environment, away from the
repository, somebody installs it, writes an algorithm, compares it, and has a figure: in how long.
Then the code of the tutorial for those who do that, up to its figure.
"""

from __future__ import annotations

import doctest
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from email import message_from_bytes
from pathlib import Path

TUTORIAL = Path(__file__).parents[1] / "docs" / "guide" / "own-algorithm.md"
FIRST = """
import numpy as np
import matplotlib
matplotlib.use("agg")
from unbounded import SCB, AdaINF, CostSCB, PythonLearner, Uniform, compare, recommend
from unbounded.adversaries import Replay

class Mine(PythonLearner):
    def __init__(self, n_arms, *, seed=None):
        super().__init__(n_arms, seed=seed)
        self.losses, self.largest, self.t = np.zeros(n_arms), 0.0, 0

    def distribution(self):
        eta = np.sqrt(np.log(self.n_arms) / (self.n_arms * (self.t + 1)))
        weights = np.exp(-eta * (self.losses - self.losses.min()) / (self.largest or 1.0))
        return weights / weights.sum()

    def update(self, arm, probability, loss):
        self.t += 1
        self.largest = max(self.largest, abs(loss))
        self.losses[arm] += loss / probability

rng = np.random.default_rng(5)
minutes = rng.lognormal(np.log([3.0, 9.0, 5.0, 4.0]), 0.5, size=(3000, 4))
learners = {"mine": Mine(4), "recommended": recommend(lower=0.0).learner(4), "SCB": SCB(4),
            "AdaINF": AdaINF(4), "uniform": Uniform(4)}
found = compare(learners, Replay(minutes), rounds=3000, replicates=5, seed=1)
print(found.summary())
assert found["recommended"].regret[:, -1].mean() < 0.5 * found["uniform"].regret[:, -1].mean()
found.plot().figure.savefig("first.svg")
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command says; an error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def worked() -> float:
    """CPU seconds of the commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, without the list of them."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("RECORD")]
        return {name: archive.read(name) for name in names}


def check(wheel: Path) -> None:
    """Whether a wheel has what it should have."""
    files = contents(wheel)
    strange = [name for name in files if not name.startswith(("unbounded/", "unbounded-"))]
    assert not strange, f"{wheel} has {strange}"
    assert "unbounded/py.typed" in files
    [metadata] = [text for name, text in files.items() if name.endswith("METADATA")]
    message = message_from_bytes(metadata)
    readme = str(message.get_payload(decode=True).decode())
    links = [link for link in re.findall(r"\]\(([^)]*)\)", readme) if "://" not in link]
    assert not links, f"README links to {links}, which are not there on an index"
    assert "pip install " in readme
    assert message["Version"] in wheel.name


def main(directory: Path) -> None:
    os.environ.pop("PYTHONPATH", None)  # what is tried is the wheel
    [wheel], [sdist] = directory.glob("*.whl"), directory.glob("*.tar.gz")
    check(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        away = Path(temporary)
        tree = unpacked(sdist, away)
        run(sys.executable, "-m", "build", "--wheel", "--outdir", away / "again", tree)
        [again] = (away / "again").glob("*.whl")
        assert contents(again) == contents(wheel), "a wheel made from the sdist differs"
        run(sys.executable, "-m", "venv", away / "new")
        python = away / "new" / "bin" / "python"
        start, before = time.perf_counter(), worked()
        run(python, "-m", "pip", "install", "--quiet", f"{wheel.resolve()}[experiments,plot]")
        installed = time.perf_counter()
        (away / "first.py").write_text(FIRST)
        print(run(python, "first.py", cwd=away), end="")
        assert (away / "first.svg").stat().st_size > 1000
        figure = time.perf_counter()
        print(f"CPU time of all that: {worked() - before:.0f} s")
        examples = doctest.DocTestParser().get_examples(TUTORIAL.read_text("utf-8"))
        (away / "tutorial.py").write_text("".join(example.source for example in examples))
        run(python, "tutorial.py", cwd=away)
        assert (away / "comparison.svg").stat().st_size > 1000
        print(f"{wheel.name}: installed in {installed - start:.0f} s, "
              f"the first figure after {figure - start:.0f} s, "
              f"that of the tutorial after {time.perf_counter() - start:.0f} s")  # fmt: skip


def unpacked(sdist: Path, away: Path) -> Path:
    """The sdist, unpacked."""
    run("tar", "-xzf", sdist, "-C", away)
    [tree] = [
        path for path in away.iterdir() if path.is_dir() and path.name.startswith("unbounded")
    ]
    return tree


if __name__ == "__main__":
    main(Path(sys.argv[1]))
