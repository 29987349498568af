"""What is said of everything in an experiment that cannot be."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("msgspec")

from experiment_helpers import MDP, TEXT
from unbounded.experiments import config, grid
from unbounded.experiments.experiment import ConfigError


def error_of(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        config.loads(text, "file.toml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("replicates", "replicate", 8, "unknown key 'replicate'; the nearest valid one is 'repl"),
        ("SCB", "SBC", 11, "unknown name 'SBC'; the nearest valid one is 'SCB'"),
        ("TsallisINF", "tsallisinf", 16, "the nearest valid one is 'TsallisINF'"),
        ("StochasticGap", "StochasticGaps", 20, "the nearest valid one is 'StochasticGap'"),
        ("clip", "clips", 12, "SCB has no setting 'clips'; the nearest valid one is 'clip'"),
        ('"range"', '"rage"', 12, "cannot be 'rage'; the nearest valid one is 'range'"),
        ("rate = 2", "rate = 'x'", 13, "learners[0].rate must be float, got 'x'"),
        ("rate = 2", "rate = true", 13, "must be float, got True"),
        ("rate = 2", "rate = -1", 13, "rate must be above 0, got -1"),
        ("rate = 2", "rate = nan", 13, "must be finite"),
        ("rate = 2", "rate = []", 13, "empty list"),
        ("rate = 2", "rate = 1979-05-27", 13, "must be float"),
        ("rate = 2", "n_arms = 2", 13, "n_arms is set by 'arms'"),
        ("  5,", "  'five',", 3, "arms must be an integer from 1"),
        ("  5,", "  0,", 3, "arms must be an integer from 1"),
        ("= [100, 200]", "= 0", 7, "rounds must be an integer from 1"),
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


def test_a_grid_that_is_too_large_is_rejected_at_once() -> None:
    many = str(list(range(1, 2001)))
    message = error_of(TEXT.replace("[100, 200]", many).replace("rate = 2", f"rate = {many}"))
    assert "the most is 1000000" in message


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


@pytest.mark.parametrize(
    ("quick", "line", "words"),
    [
        ("rounds = 0", 24, "rounds must be an integer"),
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


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("episodes = [100", "rounds = [100", 1, "rounds is for bandits; an experiment with MDPs"),
        ("episodes = [100, 200]", "", None, "episodes is missing"),
        ("SCBRL", "SCB", 10, "SCB is for bandits, which need arms and rounds"),
        ("SCBRL", "SCRBL", 10, "the nearest valid one is 'SCBRL'"),
        ("QuietLure", "Chaser", 21, "Chaser is for bandits"),
        ("dirichlet", "dirichle", 4, "the nearest valid one is 'dirichlet'"),
        ("n_actions = 2\n", "", 3, "dirichlet needs n_actions"),
        ("sizes = [2, 3]", "sizes = 2", 5, "sizes must be sequence of int"),
        ("reading.clip =", "layers =", 11, "layers is set by 'worlds'"),
        ("height = 64.0", "height = -1.0", 22, "height"),
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
