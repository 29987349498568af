"""The words of the field: what docs/style_check.py finds, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def found(tmp_path, monkeypatch):
    """What is found in one file of a small repository."""
    monkeypatch.syspath_prepend(DOCS)
    import style_check

    rows = style_check.tables(style_check.STYLE.read_text("utf-8"))
    monkeypatch.setattr(style_check, "ROOT", tmp_path)

    def check(name: str, text: str) -> list[str]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return list(style_check.found_in(name.partition("/")[0], rows))

    return check


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("docs/a.md", "Fine.\nNothing is\nproved of it.", "docs/a.md:2: Nothing is proved"),
        ("src/a.py", "memo = 1\n", "src/a.py:1: memo"),
        ("src/a.py", 'def f():\n    """How many."""\n', 'src/a.py:2: """How'),
        ("tests/test_a.py", "\ndef test_it_is_refused():\n", "tests/test_a.py:2: is refused"),
        ("tests/test_colours.py", "", "tests/test_colours.py:1: colours"),
    ],
)
def test_a_planted_phrase_is_found(found, name, text, place):
    assert found(name, text) == [place]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", "`memo` in code, [link](late-feedback.md)\n```\nmemo\n```\n"),
        ("tests/test_a.py", "memo = 'is refused'\n"),
        ("src/unbounded/jit/backend.py", "# a segmentation fault\n"),  # a listed exception
    ],
)
def test_what_is_no_prose_and_exceptions_are_left_alone(found, name, text):
    assert found(name, text) == []
