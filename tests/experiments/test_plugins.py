"""Names from anywhere: where they lead, what is refused, and what results are kept under."""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import unbounded.settings
from unbounded.experiments import config, grid, names, provenance
from unbounded.experiments import plugins as foreign
from unbounded.experiments.experiment import ConfigError
from unbounded.experiments.names import known
from unbounded.experiments.plugins import ForeignError, place_of
from unbounded.experiments.provenance import sources_of

MINE = '''\
"""Mine."""
from typing import Literal

import numpy as np

from unbounded import PythonLearner, PythonMDPLearner
from unbounded.extend import LayeredMDP
from {helper} import HALF


class Mine(PythonLearner):
    """Follows nobody."""

    reference = "unpublished"

    def __init__(self, n_arms, *, rate: float = 1.0, mode: Literal["a", "b"] = "a",
                 window: list[float] = (), seed=None):
        if rate < 0:
            raise ArithmeticError("rate is negative")
        super().__init__(n_arms, seed=seed)

    def distribution(self):
        return np.full(self.n_arms, 2 * HALF / self.n_arms)

    def update(self, arm, probability, loss):
        pass


class Still(PythonMDPLearner):
    def policy(self):
        A = self.layers.n_actions
        return [np.full((n, A), 1 / A) for n in self.layers.sizes]

    def update(self, states, actions, losses):
        pass


def turns(t, last_arm, q, rng, *, every=10):
    """In turn."""
    return np.arange(len(q)) == t // every % len(q)


class Planned(Still):
    def __init__(self, layers, n_actions, *, episodes=None, seed=None):
        if episodes != 10:
            raise ValueError("nobody said how many episodes there are: {{}}".format(episodes))
        super().__init__(layers, n_actions, seed=seed)


def lane(length=2):
    return LayeredMDP([1.0], [np.ones((1, 2, 1))] * (length - 1), n_actions=2)


def nothing():
    return 3
'''
BANDITS = {
    "learners": [{"name": "MODULE:Mine", "rate": [1.0, 2.0]}, {"name": "Uniform"}],
    "adversaries": [{"name": "MODULE:turns", "every": 5}, {"name": "Switch"}],
    "arms": 2,
    "rounds": 20,
    "replicates": 2,
}
_number = itertools.count()


@pytest.fixture(autouse=True)
def _nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    monkeypatch.setenv("UNBOUNDED_JIT", "never")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current directory, of a name that no test had before."""
    name = f"mine_{os.getpid()}_{next(_number)}"
    (tmp_path / f"{name}.py").write_text(MINE.format(helper=f"{name}_helper"))
    (tmp_path / f"{name}_helper.py").write_text("HALF = 0.5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    importlib.invalidate_caches()
    return name


def experiment(module: str, **changes: object) -> dict[str, object]:
    text = repr(BANDITS | changes).replace("MODULE", module)
    return eval(text)


def test_names_lead_to_learners_adversaries_and_worlds(module: str) -> None:
    mine = known("bandits", "learners")[f"{module}:Mine"]
    assert (mine.name, mine.reference, mine.summary) == (
        f"{module}:Mine", "unpublished", "Follows nobody.",
    )  # fmt: skip
    assert mine.package == str(Path.cwd() / f"{module}.py")
    assert mine.parameters["mode"].options == ("a", "b")
    assert mine.parameters["window"].depth == 1
    assert f"{module}:Mine" not in known("MDPs", "learners")
    assert f"{module}:Still" in known("MDPs", "learners")
    turns = known("bandits", "adversaries")[f"{module}:turns"]
    assert list(turns.parameters) == ["every"]
    assert turns.cls(every=3)(4, -1, [0.5, 0.5], None).tolist() == [False, True]
    assert names.world(f"{module}:lane", {"length": 3}).layers.horizon == 3


def test_an_experiment_runs_with_them_and_frames_are_the_same_everywhere(module: str) -> None:
    from unbounded import experiments

    e = experiment(module)
    serial = experiments.run(e, engine="serial")
    local = experiments.run(e, engine="local", workers=2)
    assert serial.shape[0] == local.shape[0] > 0
    assert serial.drop(*experiments.TIMING).equals(local.drop(*experiments.TIMING))
    mdps = experiments.run(
        {
            "learners": [{"name": f"{module}:Still"}, {"name": "UniformPolicy"}],
            "adversaries": [{"name": "Stochastic"}],
            "worlds": [{"name": f"{module}:lane", "length": 2}],
            "episodes": 10,
            "replicates": 1,
        },
        engine="serial",
    )
    ours, theirs = mdps.partition_by("learner", maintain_order=True)
    assert ours["regret"].equals(theirs["regret"])


def test_an_optional_number_of_episodes_is_that_of_the_experiment(module: str) -> None:
    from unbounded import experiments

    e = {
        "learners": [{"name": f"{module}:Planned"}],
        "adversaries": [{"name": "Stochastic"}],
        "worlds": [{"name": f"{module}:lane", "length": 2}],
        "episodes": 10,
        "replicates": 1,
    }
    assert experiments.run(e, engine="serial")["regret"].len() > 0
    with pytest.raises(ConfigError, match=r"nobody said .*: 9"):  # the control
        experiments.run({**e, "episodes": 9}, engine="serial")


def test_results_are_stored_under_a_hash_of_the_sources(module: str) -> None:
    def keys() -> dict[str, str]:
        cells = grid.cells(config.experiment(experiment(module)))
        return {f"{c.settings.learner} {c.settings.adversary} {c.learner_settings}": c.key
                for c in cells}  # fmt: skip

    def again(file: str, old: str, new: str) -> dict[str, str]:
        """As a new process sees it."""
        path = Path(file)
        path.write_text(path.read_text().replace(old, new))
        for name in (module, f"{module}_helper"):
            sys.modules.pop(name, None)
            provenance._first_seen.pop(name, None)
        importlib.invalidate_caches()
        return keys()

    first = keys()
    assert again(f"{module}.py", "nobody has", "nobody has") == first
    assert again(f"{module}.py", "Follows nobody.", "Follows no one.") == first
    assert again(f"{module}_helper.py", "0.5", "0.5  # a half") == first
    edited = again(f"{module}.py", "2 * HALF", "HALF * 2")
    helped = again(f"{module}_helper.py", "0.5", "0.25 * 2")
    for one, other in itertools.pairwise([first, edited, helped]):
        changed = {name for name in one if one[name] != other[name]}
        assert changed == {name for name in one if module in name}


def test_code_that_was_edited_after_its_import_is_rejected(module: str) -> None:
    e = experiment(module)
    grid.cells(config.experiment(e))
    path = Path(f"{module}.py")
    path.write_text(path.read_text().replace("unpublished", "published"))
    with pytest.raises(ForeignError, match=r"was edited after it was imported: start Python"):
        grid.cells(config.experiment(e))


def test_code_that_was_edited_before_its_first_use_is_rejected(module: str) -> None:
    sys.path.append(os.getcwd())
    importlib.import_module(module)
    sources_of(module)
    provenance._first_seen.pop(module)
    path = Path(f"{module}.py")
    path.write_text(path.read_text().replace("2 * HALF", "HALF + HALF"))
    with pytest.raises(ForeignError, match="was edited after it was imported"):
        sources_of(module)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here:Mine", "there is no module no_such_module_here: install its package"),
        ("MODULE.part:Mine", "there is no module MODULE.part"),
        ("MODULE:Nope", "MODULE has no 'Nope'; it has Mine, Still, turns, Planned, lane, nothing"),
        ("MODULE:np", "MODULE:np is not one of the learners: it must be a class below Python"),
        ("MODULE:turns", "MODULE:turns is not one of the learners"),
        ("MODULE:Still", "MODULE:Still is for MDPs, which need worlds and episodes"),
        ("__main__:Mine", "workers cannot import Mine from __main__: put it into a file"),
        ("../MODULE:Mine", "is not of the form 'package.module:Name'"),
        ("/a/x:Mine", "is not of the form"),
        ("os.system('x'):Mine", "is not of the form"),
        ("broken:Mine", "broken does not import: ZeroDivisionError: division by zero"),
        ("leaves:Mine", "leaves does not import: SystemExit: 3"),
        ("wrong:Mine", "wrong does not import: SyntaxError: "),
    ],
)
def test_a_name_that_does_not_do_is_one_sentence(module: str, name: str, message: str) -> None:
    Path("broken.py").write_text("1 / 0\n")
    Path("leaves.py").write_text("import sys\nsys.exit(3)\n")
    Path("wrong.py").write_text("def (\n")
    name, message = name.replace("MODULE", module), message.replace("MODULE", module)
    e = experiment(module, learners=[{"name": name}])
    with pytest.raises(ConfigError) as caught:
        config.experiment(e)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ({"rate": -1.0}, "learners[0]: ArithmeticError: rate is negative"),
        ({"mode": "c"}, "cannot be 'c'; the nearest valid one is"),
        ({"speed": 1}, "has no setting 'speed'"),
        ({"n_arms": 1}, "is set by 'arms' at the top"),
    ],
)
def test_settings_are_checked_as_ours_are(module: str, learner: dict, message: str) -> None:
    e = experiment(module, learners=[{"name": f"{module}:Mine", **learner}])
    with pytest.raises(ConfigError) as caught:
        config.experiment(e)
    assert message in str(caught.value)


def test_an_mdp_must_be_one(module: str) -> None:
    e = {
        "learners": [{"name": "UniformPolicy"}],
        "adversaries": [{"name": "Stochastic"}],
        "worlds": [{"name": f"{module}:nothing"}],
        "episodes": 10,
    }
    with pytest.raises(ConfigError, match="nothing must return a LayeredMDP, got int"):
        config.experiment(e)


def test_what_is_installed_comes_before_the_current_directory(module: str) -> None:
    Path("json.py").write_text("raise RuntimeError('shadow')\n")
    assert "shadow" not in str(foreign.origin_of("json"))
    assert foreign.loaded(foreign.Place("json", "loads"))("1") == 1


def test_an_error_in_a_worker_names_the_class(module: str) -> None:
    from unbounded import experiments

    path = Path(f"{module}.py")
    path.write_text(path.read_text().replace("        pass", "        {}['x']"))
    e = experiment(module, learners=[{"name": f"{module}:Mine"}])
    with pytest.warns(RuntimeWarning, match=r"KeyError: 'x' This came from Mine.update\(\)\."):
        frame = experiments.run(e, engine="serial")
    assert frame.is_empty()


# ------------------------------------------------------------------ entry points


@pytest.fixture
def offers(module: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module as an installed package would offer it, with things that do not work."""
    Path("other.dist-info").mkdir()
    Path("other.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 3\n")
    Path("other.dist-info/top_level.txt").write_text(f"{module}\n")
    Path("other.dist-info/RECORD").write_text(f"{module}.py,,\n")
    Path("other.dist-info/entry_points.txt").write_text(
        f"[unbounded.learners]\nTheirs = {module}:Mine\nGone = gone_module:Mine\n"
        f"SCB = {module}:Mine\nTwice = {module}:Mine\nTwice = {module}:Still\n"
        f"[unbounded.adversaries]\ninturn = {module}:turns\n"
        f"[unbounded.worlds]\nlane = {module}:lane\n"
    )
    sys.path.append(os.getcwd())
    importlib.invalidate_caches()
    return module


def test_entry_points_are_found_listed_and_run(offers: str) -> None:
    assert place_of("learners", "Theirs") == (offers, "Mine")
    theirs = known("bandits", "learners")["Theirs"]
    assert theirs.package == "other 3"
    assert {"Theirs", "SCB"} < set(known("bandits", "learners"))
    assert "Theirs" not in known("MDPs", "learners")
    assert "lane" in known("MDPs", "worlds")
    assert not known("bandits", "learners")["SCB"].package  # ours comes first
    lines = names.broken()
    assert any("Gone" in line and "there is no module gone_module" in line for line in lines)
    assert any("SCB" in line and f"say '{offers}:Mine'" in line for line in lines)
    from unbounded import experiments

    e = experiment(offers, learners=[{"name": "Theirs"}], adversaries=[{"name": "inturn"}])
    assert experiments.run(e, engine="serial")["learner"].unique().to_list() == ["Theirs"]


def test_an_entry_point_of_two_packages_is_rejected(offers: str) -> None:
    with pytest.raises(ConfigError, match="several packages offer 'Twice': say "):
        config.experiment(experiment(offers, learners=[{"name": "Twice"}]))


def test_a_dry_run_says_what_it_would_import_and_imports_nothing(offers: str) -> None:
    path = Path(f"{offers}.py")
    path.write_text("raise RuntimeError('it was imported')\n" + path.read_text())
    text = f"""
    arms = 2
    rounds = 20
    learners = [{{name = "Theirs"}}, {{name = "SCB"}}]
    adversaries = [{{name = "{offers}:turns"}}]
    """
    Path("e.toml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "unbounded.cli.app", "run", "e.toml", "--dry-run"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"would import {offers} for Theirs, from" in done.stderr
    assert f"would import {offers} for {offers}:turns, from" in done.stderr
    assert "Nothing was imported" in done.stderr
    again = subprocess.run(
        [sys.executable, "-m", "unbounded.cli.app", "run", "e.toml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode == 2
    assert "does not import: RuntimeError: it was imported" in again.stderr
