"""Sections: facts, warnings, where the numbers come from."""

from __future__ import annotations

import re
import shutil

import pytest

pytest.importorskip("polars")

import polars as pl

import report_helpers as helpers
from unbounded import SCB, experiments
from unbounded.report import contents, report


def test_unfinished_experiment(reported, tmp_path):
    shutil.copytree(reported / "tails", tmp_path / "out")
    more = {**helpers.TAILS, "replicates": 160, "arms": [3, 4]}
    helpers.keep(more, tmp_path / "out")
    text = report(tmp_path / "out", figures=False).page.read_text(encoding="utf-8")
    assert "Unfinished: 340 replicates of 4 cells are missing" in text
    assert "SCB · StochasticGap(gap=0.3) · n=3 · T=400: 10 of 160 missing" in text
    assert "Exp3IX · StochasticGap(gap=0.3) · n=4 · T=400: 160 of 160 missing" in text


def test_damaged_files_are_named_and_stay(reported, tmp_path):
    shutil.copytree(reported / "tails", tmp_path / "out")
    (tmp_path / "out/results/notes.txt").write_text("mine")
    text = report(tmp_path / "out", figures=False).page.read_text(encoding="utf-8")
    assert "notes.txt: not a file of results" in text
    assert (tmp_path / "out/results/notes.txt").read_text() == "mine"


def test_page_names_its_origin(reported):
    text = (reported / "report.html").read_text(encoding="utf-8")
    assert text.count("<section ") == 2
    for name in ("sizes", "tails"):
        assert f'<a href="#{name}">' in text
        assert f"unbounded run {reported / name}/experiment.toml --out {reported / name}" in text
    frame = experiments.results(reported / "sizes")
    assert set(frame["versions"].cast(pl.String)) <= set(
        re.findall(r"<dd>(unbounded .*?)</dd>", text)
    )
    for code in frame["code"].cast(pl.String).unique():
        assert f"<td>{code}</td>" in text
    assert "gap = 0.3" in text


def test_last_checkpoint_before_the_end(tmp_path):
    """Bounds are those of the rounds that were recorded."""
    early = {**helpers.TAILS, "replicates": 3, "checkpoints": [100, 200]}
    experiments.run(early, out=tmp_path, engine="serial")
    charts = {chart.view: chart for chart in contents(tmp_path).sections[0].charts}
    limit = charts["bounds"].panels[0].rows[0][4]
    assert limit == pytest.approx((7 * 600**0.5 + 13) / 600**0.5, rel=1e-6)


def test_learners_of_a_section_look_different(reported):
    made = contents(reported)
    assert len(made.looks) == len(made.learners) == 5
    for section in made.sections:
        looks = [made.looks[learner] for learner in section.learners]
        assert len(set(looks)) == len(looks)
    assert max(made.looks) < 5


def test_settings_have_the_reference_of_their_name(reported):
    sizes = contents(reported).sections[0]
    rows = {name: (settings, reference) for name, settings, reference in sizes.settings}
    assert rows["SCB profile=paper"][1] == SCB.spec.reference
    assert "profile=paper" in rows["SCB profile=paper"][0]
    assert "shift=5" in rows["StochasticGap shift=5"][0]
