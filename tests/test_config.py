"""Experiments as TOML: what is read, and what is said of everything that cannot be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

import lab_helpers as helpers
from unbounded.lab import config, grid
from unbounded.lab.config import ConfigError
from unbounded.lab.toml_lines import line_of

TEXT = """\
# An experiment.
name = "example"
arms = [
  3,
  5,
]
rounds = [100, 200]
replicates = 4

[[learners]]
name = "SCB"
clip = ["scale", "range"]
rate = 2

[[learners]]
name = "TsallisINF"
loss_range = [[0, 1], [-1.0, 1.0]]

[[adversaries]]
name = "StochasticGap"
scale = [1e-9, 1e9]
"""


def error_of(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config.loads(text, "file.toml")
    return str(caught.value)


def test_lists_span_a_grid() -> None:
    e = config.loads(TEXT)
    assert e.arms == (3, 5)
    assert e.learners[0].settings == {"clip": ("scale", "range"), "rate": (2.0,)}
    assert e.learners[1].settings == {"loss_range": ((0.0, 1.0), (-1.0, 1.0))}
    cells = grid.cells(e)
    assert len(cells) == 2 * 2 * (2 + 2) * 2
    assert len({cell.key for cell in cells}) == len(cells)
    assert cells[0].learner_settings == (
        '{"ablation":false,"clip":"scale","mixing":1.0,"rate":2.0,"threshold":"lazy"}'
    )


def test_one_value_of_a_pair_is_not_a_grid() -> None:
    e = config.loads(TEXT.replace("[[0, 1], [-1.0, 1.0]]", "[0, 1]"))
    assert e.learners[1].settings == {"loss_range": ((0.0, 1.0),)}


def test_equal_settings_have_equal_keys_however_they_are_written() -> None:
    def keys(rate: str) -> list[str]:
        return [cell.key for cell in grid.cells(config.loads(TEXT.replace("rate = 2", rate)))]

    assert keys("rate = 1") == keys("rate = 1.0") == keys("") == keys("rate = [1.0, 1.0]")
    assert keys("rate = 1") != keys("rate = 2")


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", 5), ("checkpoints", 3), ("pseudo_regret", False)],
)
def test_everything_that_results_depend_on_is_in_the_key(key: str, value: object) -> None:
    document = config.to_dict(config.loads(TEXT))
    before = {cell.key for cell in grid.cells(config.experiment(document))}
    after = {cell.key for cell in grid.cells(config.experiment(document | {key: value}))}
    assert not before & after


def test_replicates_are_not_in_the_key() -> None:
    document = config.to_dict(config.loads(TEXT))
    more = config.experiment(document | {"replicates": 40})
    assert grid.cells(more) == grid.cells(config.experiment(document))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("replicates", "replicate", 8, "unknown key 'replicate'; the nearest valid one is 'repl"),
        ("SCB", "SBC", 11, "unknown name 'SBC'; the nearest valid one is 'SCB'"),
        ("TsallisINF", "tsallisinf", 16, "the nearest valid one is 'TsallisINF'"),
        ("StochasticGap", "StochasticGp", 20, "the nearest valid one is 'StochasticGap'"),
        ("clip", "clips", 12, "SCB has no setting 'clips'; the nearest valid one is 'clip'"),
        ('"range"', '"rage"', 12, "cannot be 'rage'; the nearest valid one is 'range'"),
        ("rate = 2", "rate = 'x'", 13, "learners[0].rate must be float, got 'x'"),
        ("rate = 2", "rate = true", 13, "must be float, got True"),
        ("rate = 2", "rate = -1", 13, "rate must be above 0, got -1"),
        ("rate = 2", "rate = nan", 13, "must be finite"),
        ("rate = 2", "rate = []", 13, "empty list"),
        ("rate = 2", "rate = 1979-05-27", 13, "must be float"),
        ("rate = 2", "n_arms = 2", 13, "n_arms is set by 'arms'"),
        ("  5,", "  'five',", 3, "arms must be a whole number from 1"),
        ("  5,", "  0,", 3, "arms must be a whole number from 1"),
        ("= [100, 200]", "= 0", 7, "rounds must be a whole number from 1"),
        ("= [100, 200]", "= [100, 200", 7, "not valid TOML"),
        ("[[0, 1], [-1.0, 1.0]]", "[1, 0]", 17, "low < high"),
        ("[[0, 1], [-1.0, 1.0]]", "[1, 0, 2]", 17, "must be (float, float)"),
        (
            "replicates = 4",
            "replicates = 4\ncheckpoints = [150]",
            9,
            "checkpoints must lie in 1 ..",
        ),
        ('"example"', '"../escape"', 2, "name must be letters, digits"),
    ],
)
def test_an_error_names_the_line_and_the_nearest(old: str, new: str, line: int, words: str) -> None:
    message = error_of(TEXT.replace(old, new, 1))
    found = re.match(r"file\.toml, line (\d+): ", message)
    assert found, message
    assert words in message
    if "not valid" not in message:  # an unclosed list is noticed by TOML where it must end
        assert int(found[1]) == line, message


def test_what_is_missing_is_named() -> None:
    assert "arms is missing" in error_of(
        TEXT.replace("arms", "seed").replace("[\n  3,\n  5,\n]", "1")
    )
    assert "needs a name" in error_of(TEXT.replace('name = "SCB"\n', ""))
    replay = TEXT.replace("StochasticGap", "Replay")
    assert "Replay needs losses" in error_of(replay)


def test_losses_that_do_not_fit_the_arms() -> None:
    replay = TEXT.replace("StochasticGap", "Replay") + "losses = [[1, 2, 3], [4, 5, 6]]\n"
    assert "line 22: adversaries[0]: losses has 3 columns for 5 arms" in error_of(replay)
    e = config.loads(replay.replace("  5,\n", ""))
    assert e.adversaries[0].settings["losses"] == ([[1, 2, 3], [4, 5, 6]],)


def test_a_grid_that_is_too_large_is_refused_at_once() -> None:
    many = str(list(range(1, 2001)))
    message = error_of(TEXT.replace("[100, 200]", many).replace("rate = 2", f"rate = {many}"))
    assert "the most is 1000000" in message


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


# ------------------------------------------------------------------- texts, quick, MDPs

MDP = """\
episodes = [100, 200]

[[worlds]]
name = "dirichlet"
sizes = [2, 3]
n_actions = 2
seed = [0, 1]

[[learners]]
name = "SCBRL"
clip = ["scale", "range"]

[[learners]]
name = "UOBREPS"
loss_range = "true"

[[adversaries]]
name = "QuietLure"
height = [64.0, 32.0]
"""


def test_texts_are_kept_and_are_not_in_the_key() -> None:
    texts = 'title = "A title"\nclaim = """\nOne\ntwo"""\nviews = ["slopes", "time"]\n'
    e = config.loads(texts + TEXT)
    assert (e.title, e.claim, e.views) == ("A title", "One\ntwo", ("slopes", "time"))
    assert config.loads(config.dumps(e)) == e
    assert grid.cells(e) == grid.cells(config.loads(TEXT))
    assert "line 1: title must be text" in error_of("title = 3\n" + TEXT)
    wrong = error_of('views = ["tmie"]\n' + TEXT)
    assert "line 1: unknown view 'tmie'; the nearest valid one is 'time'" in wrong
    assert "line 1: views must be a list of texts" in error_of("views = [1]\n" + TEXT)


def test_quick_comes_before_the_rest() -> None:
    text = TEXT + "\n[quick]\nrounds = 10\narms = 2\n[[quick.learners]]\nname = 'Uniform'\n"
    quick = config.loads(text, quick=True)
    assert (quick.rounds, quick.arms, quick.replicates) == ((10,), (2,), 4)
    assert [entry.name for entry in quick.learners] == ["Uniform"]
    assert config.loads(text) == config.loads(TEXT)
    assert config.loads(config.dumps(quick)) == quick


@pytest.mark.parametrize(
    ("quick", "line", "words"),
    [
        ("rounds = 0", 24, "rounds must be a whole number"),
        ("round = 1", 24, "quick cannot change 'round'; the nearest valid one is 'rounds'"),
        ("seed = 1", 24, "quick cannot change 'seed'"),
        ("[[quick.learners]]\nname = 'SBC'", 25, "the nearest valid one is 'SCB'"),
        ("episodes = 3", 24, "episodes is for MDPs; an experiment with bandits has rounds"),
    ],
)
def test_a_mistake_in_quick_is_found_without_it(quick: str, line: int, words: str) -> None:
    message = error_of(TEXT + "\n[quick]\n" + quick)
    assert f"line {line}: " in message
    assert words in message


def test_mdps_span_a_grid() -> None:
    e = config.loads(MDP)
    cells = grid.cells(e)
    assert len({cell.key for cell in cells}) == len(cells) == 2 * 2 * (2 + 1) * 2
    assert cells[0].world_settings == '{"concentration":1.0,"n_actions":2,"seed":0,"sizes":[2,3]}'
    assert cells[0].label.endswith("dirichlet(sizes=[2, 3], n_actions=2, seed=0) · T=100")
    again = config.loads(config.dumps(e))
    assert again == e
    assert grid.cells(again) == cells


def test_the_range_of_every_layer_survives_its_file() -> None:
    pairs = "loss_range = [[[0.0, 1.0], [-1.0, 2.0]]]"
    e = config.loads(MDP.replace('loss_range = "true"', pairs))
    assert len(e.learners[1].variants()) == 1
    assert config.loads(config.dumps(e)) == e


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("episodes = [100", "rounds = [100", 1, "rounds is for bandits; an experiment with MDPs"),
        ("episodes = [100, 200]", "", None, "episodes is missing"),
        ("SCBRL", "SCB", 10, "SCB is for bandits, which need arms and rounds"),
        ("SCBRL", "SCRBL", 10, "the nearest valid one is 'SCBRL'"),
        ("QuietLure", "Drift", 18, "Drift is for bandits"),
        ("dirichlet", "dirichle", 4, "the nearest valid one is 'dirichlet'"),
        ("n_actions = 2\n", "", 3, "dirichlet needs n_actions"),
        ("sizes = [2, 3]", "sizes = 2", 5, "sizes must be sequence of int"),
        ("clip =", "layers =", 11, "layers is set by 'worlds'"),
        ("64.0", "-64.0", 19, "height must be above 0"),
        ("[100, 200]", "[5, 200]", 9, "episodes must exceed the 5 states"),
        ('"true"', '"false"', 15, "loss_range"),
    ],
)
def test_mistakes_about_mdps(old: str, new: str, line: int | None, words: str) -> None:
    message = error_of(MDP.replace(old, new, 1))
    assert message.startswith(f"file.toml, line {line}: " if line else "file.toml: "), message
    assert words in message
    bandits = error_of(TEXT.replace("SCB", "SCBRL"))
    assert "line 11: learners[0]: SCBRL is for MDPs, which need worlds and episodes" in bandits


def test_phases_of_a_program_are_tables() -> None:
    program = TEXT.replace("StochasticGap", "Program").replace(
        "scale = [1e-9, 1e9]", "phases = [{end = 0.5}, {best = 0.99, gap = 0.2}]"
    )
    e = config.loads(program)
    assert len(grid.cells(e)) == 16
    assert config.loads(config.dumps(e)) == e
    assert "unexpected keyword argument 'ends'" in error_of(program.replace("{end", "{ends"))


def test_line_of_every_key() -> None:
    text = 'a = """\nb = 1\n"""\n\n# c = 2\nc = [\n 1,\n]\n[d]\n\ne.f = {g = 1}\n[[h]]\n[[h]]\ni=1'
    places = {
        ("a",): 1, ("b",): None, ("c",): 6, ("c", 0): 6, ("d",): 9, ("d", "e", "f", "g"): 11,
        ("h",): 12, ("h", 1): 13, ("h", 1, "i"): 14, ("h", 0, "i"): None, (): None,
    }  # fmt: skip
    assert {keys: line_of(text, keys) for keys in places} == places


def test_line_of_a_key_below_a_long_matrix() -> None:
    text = "x = [\n" + "[1, 2],\n" * 5000 + "]\ny = 1\n"
    assert line_of(text, ("y",)) == 5003
    assert line_of(text, ("x",)) == 1


def test_the_core_does_not_import_the_laboratory() -> None:
    code = (
        "import sys, unbounded\n"
        "print([m for m in ('msgspec', 'polars', 'rich', 'cyclopts', 'loky', 'distributed',"
        " 'tomli_w', 'matplotlib') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=helpers.ENVIRONMENT,
    )  # fmt: skip
    assert out.stdout.strip() == "[]"
