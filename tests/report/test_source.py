"""What is read of a directory of results: finished or not, damaged, or made by other code."""

from __future__ import annotations

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


from unbounded.report import sections, source


def test_rows_of_other_code_are_shown_and_named(reported, monkeypatch):
    monkeypatch.setattr("unbounded.lab.grid.code_version", lambda *names, **kind: "newer")
    results = source.read(reported / "tails")
    assert results.other_code == 2
    assert results.frame.equals(source.read(reported / "tails").frame)
    assert results.frame.height == 2 * 150 * 3
    assert not results.missing
    made = sections.assembled([results], reported)
    assert "The rows of 2 cells were made by other code" in made.sections[0].warnings[0]
