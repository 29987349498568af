"""Two runs side by side, again from the rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("polars")

from scipy.stats import t as student

import report_helpers as helpers
from report_helpers import CLOSE
from unbounded import experiments
from unbounded.cli import app as cli
from unbounded.experiments import StoreError
from unbounded.report import contents, report


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    first = {**helpers.TAILS, "replicates": 30}
    changed = {**first, "learners": [{"name": "SCB"}, {"name": "Uniform"}], "replicates": 20}
    experiments.run(first, out=out / "a", engine="serial")
    experiments.run(changed, out=out / "b", engine="serial")
    experiments.run({**first, "seed": 9}, out=out / "c", engine="serial")
    return out


def values(frame, learner):
    rows = frame.filter((frame["learner"].cast(str) == learner) & (frame["round"] == 400))
    rows = rows.sort("replicate")
    return rows["relative_regret"].to_numpy() / np.sqrt(3 * 400)


def test_what_is_the_same_is_said_to_be(runs):
    section = contents(runs / "a", runs / "b").sections[0]
    [chart] = section.charts
    [[learner, difference, interval, a, b, replicates, case]] = chart.panels[0].rows
    assert (difference, interval, replicates) == (0.0, [0.0, 0.0], 20)
    assert a == b == pytest.approx(values(experiments.results(runs / "b"), "SCB").mean(), **CLOSE)
    assert case == "StochasticGap, n = 3, T = 400"
    assert section.learners == [learner]
    assert section.warnings == []
    assert "less regret in 0, more in 0 and exactly the same in 1." in section.answer


def test_differences(runs):
    made = contents(runs / "a", runs / "c")
    section = made.sections[0]
    assert made.title == section.title == f"{runs / 'c'} against {runs / 'a'}"
    assert "The seeds are 4 and 9" in section.warnings[0]
    first, second = experiments.results(runs / "a"), experiments.results(runs / "c")
    rows = {made.learners[row[0]]: row for row in section.charts[0].panels[0].rows}
    assert set(rows) == {"SCB", "Exp3IX"}
    for learner, (_, mean, [low, high], *_) in rows.items():
        difference = values(second, learner) - values(first, learner)
        half = student.ppf(0.975, 29) * difference.std(ddof=1) / np.sqrt(30)
        assert mean == pytest.approx(difference.mean(), **CLOSE)
        assert (low, high) == pytest.approx((mean - half, mean + half), rel=1e-6)
    assert [one.title for one in made.sections[1:]] == [
        f"tails ({runs / 'a'})", f"tails ({runs / 'c'})"]  # fmt: skip
    assert len({one.id for one in made.sections}) == 3


def test_the_page_and_its_place(runs, capsys):
    assert cli.main(["report", str(runs / "a"), str(runs / "c"), "--no-figures"]) == 0
    assert f"The page: {runs / 'c' / 'versus.html'}" in capsys.readouterr().out
    found = helpers.embedded(runs / "c" / "versus.html")
    assert found["sections"][0]["charts"][0]["view"] == "versus"
    assert not (runs / "a" / "report.html").exists()


def test_runs_without_a_common_case(runs, tmp_path):
    experiments.run({**helpers.TAILS, "replicates": 2, "arms": 4}, out=tmp_path, engine="serial")
    section = contents(runs / "a", tmp_path).sections[0]
    assert section.charts[0].note == "The two runs have no case in common."
    assert report(runs / "a", tmp_path, figures=False).page == tmp_path / "versus.html"


def test_only_one_experiment_each(runs):
    with pytest.raises(StoreError, match="one experiment at a time"):
        contents(runs, runs / "a")


def test_numbers_are_plain(runs):
    json.dumps(contents(runs / "a", runs / "c").sections[0].charts[0].panels[0].rows)
