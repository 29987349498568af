"""Experiments as TOML: what is read, from what files, and what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from experiment_helpers import MDP, TEXT
from unbounded.experiments import config
from unbounded.experiments.experiment import ConfigError


def test_one_value_of_a_pair_is_not_a_grid() -> None:
    e = config.loads(TEXT.replace("[[0, 1], [-1.0, 1.0]]", "[0, 1]"))
    assert e.learners[1].settings == {"loss_range": ((0.0, 1.0),)}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        config.load(path)
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ConfigError, match="not UTF-8"):
        config.load(path)
    path.write_text("\ufeff" + TEXT)
    assert config.load(path) == config.loads(TEXT)


def test_the_name_is_that_of_the_file_if_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "my grid.toml"
    path.write_text(TEXT)
    assert config.load(path).name == "example"
    path.write_text(TEXT.replace('name = "example"', ""))
    assert config.load(path).name == "my-grid"


def test_round_trip() -> None:
    e = config.loads(TEXT)
    assert config.loads(config.dumps(e)) == e
    assert config.experiment(config.to_dict(e)) == e


def test_quick_comes_before_the_rest() -> None:
    text = TEXT + "\n[quick]\nrounds = 10\narms = 2\n[[quick.learners]]\nname = 'Uniform'\n"
    quick = config.loads(text, quick=True)
    assert (quick.rounds, quick.arms, quick.replicates) == ((10,), (2,), 4)
    assert [entry.name for entry in quick.learners] == ["Uniform"]
    assert config.loads(text) == config.loads(TEXT)
    assert config.loads(config.dumps(quick)) == quick


def test_the_range_of_every_layer_survives_its_file() -> None:
    pairs = "loss_range = [[[0.0, 1.0], [-1.0, 2.0]]]"
    e = config.loads(MDP.replace('loss_range = "true"', pairs))
    assert len(e.learners[1].variants()) == 1
    assert config.loads(config.dumps(e)) == e


def test_line_of_every_key() -> None:
    text = 'a = """\nb = 1\n"""\n\n# c = 2\nc = [\n 1,\n]\n[d]\n\ne.f = {g = 1}\n[[h]]\n[[h]]\ni=1'
    places = {
        ("a",): 1, ("b",): None, ("c",): 6, ("c", 0): 6, ("d",): 9, ("d", "e", "f", "g"): 11,
        ("h",): 12, ("h", 1): 13, ("h", 1, "i"): 14, ("h", 0, "i"): None, (): None,
    }  # fmt: skip
    assert {keys: config.line_of(text, keys) for keys in places} == places


def test_line_of_a_key_below_a_long_matrix() -> None:
    text = "x = [\n" + "[1, 2],\n" * 5000 + "]\ny = 1\n"
    assert config.line_of(text, ("y",)) == 5003
    assert config.line_of(text, ("x",)) == 1
