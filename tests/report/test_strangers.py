"""Who looks at somebody's results imports and runs nothing that they name."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("polars")

from unbounded import experiments

MINE = """
import numpy as np
from unbounded import PythonLearner, LayeredMDP, PythonMDPLearner

class Mine(PythonLearner):
    \"\"\"Plays the first arm.

    Parameters
    ----------
    note : str
        Nothing.
    \"\"\"
    def __init__(self, n_arms, *, note="usual", seed=None):
        super().__init__(n_arms, seed=seed)
    def distribution(self):
        return np.eye(self.n_arms)[0]
    def update(self, arm, probability, loss):
        pass

def losses(t, last_arm, q, rng, *, high=1.0):
    return [0.0, high]

class Still(PythonMDPLearner):
    def policy(self):
        return [np.full((n, self.layers.n_actions), 0.5) for n in self.layers.sizes]
    def update(self, states, actions, losses):
        pass

def two(n_actions):
    return LayeredMDP([1.0], [np.full((1, n_actions, 2), 0.5)], n_actions)
"""
BANDIT = """
arms = 2
rounds = 20
replicates = 2
learners = [{name = "mine:Mine", note = ["usual", "other"]}, {name = "SCB"}]
adversaries = [{name = "mine:losses"}, {name = "StochasticGap"}]
"""
MDP = """
episodes = 20
replicates = 2
learners = [{name = "mine:Still"}, {name = "UniformPolicy"}]
adversaries = [{name = "Stochastic"}]
worlds = [{name = "mine:two", n_actions = 2}]
"""
INTERPRETED = os.environ | {"UNBOUNDED_JIT": "never"}  # what is compiled is tested elsewhere
LOOK = """
import sys
from pathlib import Path
from unbounded import experiments
from unbounded.cli.app import main
from unbounded import report
for one in ("bandit", "mdp"):
    assert main(["show", one]) == 0
    assert main(["show", one, "--cells"]) == 0
    assert main(["report", one, "--no-figures"]) == 0
    job = experiments.opened(one)
    assert job.missing() == [] and job.rows().height == experiments.results(one).height > 0
    assert report._page(Path(one), 5.0)[1]
assert main(["report", "bandit", "bandit", "--no-figures"]) == 0
assert "mine" not in sys.modules
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("author")
    (folder / "mine.py").write_text(MINE)
    for name, text in (("bandit", BANDIT), ("mdp", MDP)):
        (folder / f"{name}.toml").write_text(text)
        command = [sys.executable, "-m", "unbounded.cli.app", "run", f"{name}.toml"]
        command += ["--engine", "serial", "--out", name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=INTERPRETED)
        assert done.returncode == 0, done.stderr
    return folder


def copied(results: Path, folder: Path) -> None:
    for name in ("bandit", "mdp"):
        shutil.copytree(results / name, folder / name)


def look(folder: Path, text: str = LOOK) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, env=INTERPRETED
    )


def test_nothing_is_imported_not_even_from_the_current_directory(
    results: Path, tmp_path: Path
) -> None:
    copied(results, tmp_path)
    (tmp_path / "mine.py").write_text("open('ran', 'w').write('x')\nraise SystemExit(3)\n")
    done = look(tmp_path)
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr


def test_what_is_shown_is_the_same_where_the_code_is_and_where_it_is_not(
    results: Path, tmp_path: Path
) -> None:
    copied(results, tmp_path)
    here, there = look(results), look(tmp_path)
    assert (here.returncode, here.stdout) == (0, there.stdout), here.stderr + there.stderr
    assert "mine:" not in here.stdout.split("cell")[0]  # short names, without the default
    assert "Mine note=other" in here.stdout
    page = (tmp_path / "bandit" / "report.html").read_text()
    assert "mine of " in page
    assert page == (results / "bandit" / "report.html").read_text()


def test_an_experiment_file_that_was_changed_leads_nowhere(results: Path, tmp_path: Path) -> None:
    copied(results, tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w').write('x')\n")
    for name in ("bandit", "mdp"):
        file = tmp_path / name / "experiment.toml"
        file.write_text(file.read_text().replace("mine:", "evil:"))
    done = look(tmp_path)
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[", b'{"experiment": 1}', b"\xff", b"[" * 100_000]
)
def test_a_plan_that_is_none(results: Path, tmp_path: Path, content: bytes) -> None:
    copied(results, tmp_path)
    (tmp_path / "mdp" / "plan.json").write_bytes(content)
    with pytest.raises(experiments.StoreError, match="plan"):
        experiments.opened(tmp_path / "mdp")


def test_a_job_that_was_opened_can_be_run(results: Path, tmp_path: Path) -> None:
    copied(results, tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    for file in (tmp_path / "bandit" / "results").iterdir():
        file.unlink()
    text = (
        "from unbounded import experiments\n"
        "job = experiments.opened('bandit')\n"
        "before = sum(span.replicates for span in job.missing())\n"
        "print(before, job.run(engine='serial').frame['cell'].n_unique(), job.missing())\n"
    )
    done = look(tmp_path, text)
    assert done.stdout == "12 6 []\n", done.stderr
