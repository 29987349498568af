"""What is read of a directory of results: finished or not, damaged, or made by other code."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

pytest.importorskip("polars")

import polars as pl

import report_helpers as helpers
from unbounded.experiments import Store
from unbounded.report import sections, source


def test_rows_of_other_code_are_shown_and_named(reported, monkeypatch):
    monkeypatch.setattr("unbounded.experiments.grid.code_version", lambda *names, **kind: "newer")
    results = source.read(reported / "tails")
    assert results.other_code == 2
    assert results.frame.equals(source.read(reported / "tails").frame)
    assert results.frame.height == 2 * 150 * 3
    assert not results.missing
    made = sections.assembled([results], reported)
    assert "The rows of 2 cells were made by other code" in made.sections[0].warnings[0]


def test_the_newest_rows_of_other_code_are_shown(reported, tmp_path, monkeypatch):
    shutil.copytree(reported / "tails", tmp_path / "out")
    older = source.read(tmp_path / "out").frame
    newer = older.with_columns(
        (pl.lit("n") + pl.col("cell").cast(pl.String)).cast(pl.Categorical).alias("cell"),
        pl.col("regret") + 1.0,
        pl.col("finished") + timedelta(hours=1),
    )
    Store(tmp_path / "out").write(newer)
    monkeypatch.setattr("unbounded.experiments.grid.code_version", lambda *names: "newest")
    helpers.keep(helpers.TAILS, tmp_path / "out")
    results = source.read(tmp_path / "out")
    assert results.other_code == 2
    assert results.frame["regret"].equals(newer["regret"])


def test_what_is_missing_is_counted(reported, tmp_path):
    shutil.copytree(reported / "tails", tmp_path / "out")
    whole = source.read(tmp_path / "out").frame
    for path in (tmp_path / "out/results").iterdir():
        path.unlink()
    gaps = (pl.col("learner") == "Exp3IX") & pl.col("replicate").is_in([3, 7, 8])
    Store(tmp_path / "out").write(whole.filter(~gaps))
    results = source.read(tmp_path / "out")
    assert results.missing == [("Exp3IX · StochasticGap(gap=0.3) · n=3 · T=400", 3)]
    assert results.frame.height == whole.height - 9
    assert results.other_code == 0
