"""Experiments as TOML, made of anything: they are taken or refused in one sentence."""

from __future__ import annotations

import re
import string

import pytest

pytest.importorskip("msgspec")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiment_helpers import TEXT
from unbounded.experiments import config, grid
from unbounded.experiments.experiment import ConfigError, Experiment

numbers = st.integers(1, 100)
lists = st.lists(numbers, min_size=1, max_size=3)
documents = st.fixed_dictionaries(
    {
        "learners": st.lists(
            st.fixed_dictionaries(
                {"name": st.just("SCB")},
                optional={
                    "clip": st.sampled_from(["scale", ["scale", "range"]]),
                    "rate": st.floats(1e-50, 1e50) | st.lists(st.floats(0.1, 9), min_size=1),
                },
            )
            | st.fixed_dictionaries(
                {"name": st.just("TsallisINF"), "loss_range": st.just([[0.0, 1.0], [2, 3]])}
            ),
            min_size=1,
            max_size=3,
        ),
        "adversaries": st.just([{"name": "StochasticGap"}]),
        "arms": numbers | lists,
        "rounds": numbers | lists,
    },
    optional={
        "seed": st.integers(0, 2**63 - 1),
        "name": st.text(string.ascii_letters + "-_", min_size=1),
        "checkpoints": numbers,
        "pseudo_regret": st.booleans(),
    },
)


@given(documents)
@settings(deadline=None, max_examples=60)
def test_every_experiment_survives_its_file(document: dict[str, object]) -> None:
    e = config.experiment(document)
    again = config.loads(config.dumps(e))
    assert again == e
    assert grid.cells(again) == grid.cells(e)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
KEYS = ["name", "learners", "adversaries", "arms", "rounds", "replicates", "seed", "checkpoints",
        "title", "claim", "views", "worlds", "episodes", "quick"]  # fmt: skip


def experiment_or_message(document: dict[str, object]) -> Experiment | str:
    try:
        return config.experiment(document)
    except ConfigError as error:
        message = str(error)
    assert message.startswith("experiment: ")
    assert len(message) < 2000
    return message


@given(st.sampled_from(KEYS), values)
@settings(deadline=None, max_examples=150)
def test_any_value_anywhere_is_taken_or_rejected(key: str, value: object) -> None:
    document = config.to_dict(config.loads(TEXT)) | {key: value}
    e = experiment_or_message(document)
    assert isinstance(e, str) or config.experiment(config.to_dict(e)) == e


@given(st.sampled_from(["clip", "rate", "loss_range", "scale", "gap", "best", "losses"]), values)
@settings(deadline=None, max_examples=150)
def test_any_setting_is_taken_or_rejected(key: str, value: object) -> None:
    document = config.to_dict(config.loads(TEXT))
    for entry in (*document["learners"], *document["adversaries"]):
        where = "learners" if entry in document["learners"] else "adversaries"
        e = experiment_or_message(document | {where: [{**entry, key: value}]})
        assert isinstance(e, str) or config.loads(config.dumps(e)) == e


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_damaged_text_is_taken_or_rejected(data: st.DataObject) -> None:
    """Characters dropped, changed and inserted anywhere: an error has a message, and a line
    that exists."""
    text = TEXT
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 8))
        text = text[:at] + data.draw(st.text(max_size=4)) + text[at + cut :]
    try:
        config.loads(text, "file.toml")
    except ConfigError as error:
        found = re.match(r"file\.toml, line (\d+): ", str(error))
        assert found is None or 1 <= int(found[1]) <= text.count("\n") + 1


@given(st.text())
@example("a = " + "[" * 100_000)
@example("a = " + "9" * 5000)
@example("[" * 20_000)
@example("\x00")
@settings(deadline=None)
def test_any_text_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError):
        config.loads(text)


@given(st.binary())
@settings(deadline=None, max_examples=30)
def test_any_bytes_are_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "file.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        config.load(path)
