"""Worlds and losses from files: where they are sought, what a key covers, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from unbounded import LayeredMDP, UniformPolicy, experiments, simulate_mdp
from unbounded.adversaries.mdps import MDPReplay
from unbounded.experiments import config, grid, task
from unbounded.experiments.experiment import ConfigError

TEXT = """\
episodes = 12
replicates = 3
checkpoints = 1

[[learners]]
name = "UniformPolicy"

[[adversaries]]
name = "MDPReplay"
path = "data/losses.npy"

[[worlds]]
name = "file"
path = "lake.npz"
"""
BANDITS = """\
arms = 3
rounds = 12

[[learners]]
name = "Uniform"

[[adversaries]]
name = "Replay"
path = "data/rows.npy"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), size=(3, 2))
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "lake.npz", P=P[..., :3], ends=P[..., 3], initial=[1, 0, 0], horizon=4)
    np.save(tmp_path / "data" / "losses.npy", rng.random((12, 4, 3, 2)))
    np.save(tmp_path / "data" / "rows.npy", rng.random((12, 3)))
    (tmp_path / "e.toml").write_text(TEXT)
    (tmp_path / "b.toml").write_text(BANDITS)
    return tmp_path


def only(path: Path) -> grid.Cell:
    (cell,) = grid.cells(config.load(path))
    return cell


def test_a_run_is_the_simulation_of_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/")  # files are sought from where the experiment is
    frame = experiments.run(folder / "e.toml", engine="serial", out=folder / "out")
    mdp = LayeredMDP.load(folder / "lake.npz")
    losses = MDPReplay(np.load(folder / "data" / "losses.npy"))
    result = simulate_mdp(UniformPolicy.for_mdp(mdp), mdp, losses, 12, 3, 0, checkpoints=1)
    assert np.array_equal(frame.sort("replicate")["regret"].to_numpy(), result.regret[:, -1])
    again = config.load(next((folder / "out").rglob("*.toml")))
    assert [cell.key for cell in grid.cells(again)] == [only(folder / "e.toml").key]


def test_a_key_covers_what_is_in_the_files_and_not_where_they_are(folder: Path, tmp_path_factory):
    before, bandit = only(folder / "e.toml"), only(folder / "b.toml")
    assert '"path":"lake.npz"' in str(before.world_settings)
    assert str(folder) not in str(before.columns)
    assert before.label == (
        "UniformPolicy · MDPReplay(path=losses.npy) · file(path=lake.npz) · T=12"
    )
    moved = tmp_path_factory.mktemp("elsewhere") / "there"
    folder.rename(moved)
    assert only(moved / "e.toml").key == before.key
    assert only(moved / "b.toml").key == bandit.key
    np.save(moved / "data" / "losses.npy", np.zeros((12, 4, 3, 2)))
    changed = only(moved / "e.toml")
    assert changed.key != before.key
    assert changed.code != before.code
    P = np.full((3, 2, 3), 1 / 3)
    np.savez(moved / "lake.npz", P=P, initial=[1, 0, 0], horizon=4)
    assert only(moved / "e.toml").key not in (before.key, changed.key)
    np.save(moved / "data" / "rows.npy", np.zeros((12, 3)))
    assert only(moved / "b.toml").key != bandit.key


def test_a_worker_that_has_another_file_is_found_out(folder: Path):
    cell = only(folder / "e.toml")
    np.save(folder / "data" / "losses.npy", np.zeros((12, 4, 3, 2)))
    (outcome,) = task.run([(task.Span(0, 0, 1), cell.settings)])
    assert not outcome.error
    assert outcome.code != cell.code  # which the runner refuses


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("lake.npz", "sea.npz", 14, r"sea.npz cannot be read \(No such file or directory\): give"),
        ("data/losses.npy", "gone.npy", 10, "gone.npy cannot be read"),
        ("data/losses.npy", "lake.npz", 10, "path must be a file .npy, .parquet, got"),
        ("data/losses.npy", "data/rows.npy", None, "rows.npy must have losses of"),
        ("episodes = 12", "episodes = 13", None, "losses.npy has 12 rows, and 13"),
        ('path = "lake.npz"', "", 12, "file needs path, str"),
        ('path = "data/losses.npy"', "", None, "MDPReplay needs losses, or the path of a file"),
    ],
)  # fmt: skip
def test_errors_are_a_sentence_with_the_line(folder: Path, old, new, line, said):
    assert old in TEXT
    (folder / "e.toml").write_text(TEXT.replace(old, new))
    with pytest.raises(ConfigError, match=said) as caught:
        config.load(folder / "e.toml")
    assert "\n" not in str(caught.value)
    assert line is None or f", line {line}: " in str(caught.value)


def test_a_damaged_mdp_is_said(folder: Path):
    whole = (folder / "lake.npz").read_bytes()
    (folder / "lake.npz").write_bytes(whole[:-30])
    with pytest.raises(ConfigError, match=r"lake.npz is not a file of arrays"):
        config.load(folder / "e.toml")


def test_texts_and_dicts_seek_from_the_current_directory(folder: Path, monkeypatch):
    monkeypatch.chdir(folder)
    e = config.loads(TEXT)
    assert e.worlds[0].settings["path"] == (os.path.abspath("lake.npz"),)
    assert config.loads(config.dumps(e)) == e
    assert grid.cells(e)[0].key == only(folder / "e.toml").key


def test_what_the_world_tells_is_not_a_setting(folder: Path):
    (folder / "e.toml").write_text(TEXT.replace('"UniformPolicy"', '"UniformPolicy"\nends = true'))
    with pytest.raises(ConfigError, match="ends is set by 'worlds'"):
        config.load(folder / "e.toml")
