"""Dynamic regret in experiments and their report, from the rows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("polars")

import polars as pl

from report_helpers import CLOSE, embedded
from unbounded import AdaINF, experiments, simulate
from unbounded.adversaries import Changing
from unbounded.experiments import ConfigError, config
from unbounded.report import report

CHANGES = {
    "name": "changes",
    "learners": [{"name": "AdaINF"}, {"name": "Uniform"}],
    "adversaries": [{"name": "Changing", "changes": 2}],
    "arms": 3,
    "rounds": 60,
    "replicates": 3,
    "checkpoints": [20, 40, 60],
    "seed": 5,
    "switches": 2,
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = tmp_path_factory.mktemp("changes")
    frame = experiments.run(CHANGES, out=out, engine="serial")
    report(out, figures=False, latex=True)
    charts = embedded(out / "report.html")["sections"][0]["charts"]
    return frame, {chart["view"]: chart for chart in charts}, out


def test_rows_are_those_of_simulate(rows):
    result = simulate(AdaINF(3), Changing(2), 60, 3, 5, checkpoints=[20, 40, 60], switches=2)
    own = rows[0].filter(pl.col("learner") == "AdaINF")
    for name in ("dynamic_regret", "dynamic_pseudo_regret", "switching_regret", "best_probability"):
        assert own[name].to_list() == getattr(result, name).ravel().tolist(), name
    assert own["best_changes"].to_list() == [0.0, 1.0, 2.0] * 3


def test_without_it_they_are_null():
    plain = {key: value for key, value in CHANGES.items() if key != "switches"}
    frame = experiments.run(plain, engine="serial")
    assert frame["dynamic_regret"].null_count() == frame.height
    followed = experiments.run({**plain, "dynamic": True}, engine="serial")
    assert followed["dynamic_regret"].null_count() == 0
    assert followed["switching_regret"].null_count() == followed.height
    assert set(followed["cell"]).isdisjoint(frame["cell"])
    assert followed["regret"].to_list() == frame["regret"].to_list()


def test_the_table_has_all_kinds_of_regret(rows):
    frame, charts, out = rows
    [panel] = charts["dynamic"]["panels"]
    last = frame.filter(pl.col("round") == 60)
    for learner, *values in panel["rows"]:
        own = last.filter(pl.col("learner") == ["AdaINF", "Uniform"][learner])
        names = ("regret", "relative_dynamic_regret", "switching_regret", "dynamic_pseudo_regret")
        assert values == pytest.approx([own[name].mean() for name in names], **CLOSE)
        assert values[0] < values[2] < values[1]
    assert "dynamic pseudo-regret" in (out / "tables" / "changes-dynamic.tex").read_text()


def test_the_probability_of_the_best_arm(rows):
    frame, charts, _ = rows
    [panel] = charts["best"]["panels"]
    for series, name in zip(panel["series"], ("AdaINF", "Uniform"), strict=True):
        own = frame.filter(pl.col("learner") == name)["best_probability"].to_numpy()
        assert series["x"] == [20, 40, 60]
        assert series["mean"] == pytest.approx(own.reshape(3, 3).mean(axis=0), **CLOSE)
    assert series["mean"] == pytest.approx(np.full(3, 1.0 / 3.0))


def test_errors_and_files():
    e = config.experiment(CHANGES)
    assert config.loads(config.dumps(e)) == e
    none = config.experiment({**CHANGES, "switches": 0})
    assert config.loads(config.dumps(none)).switches == 0
    with pytest.raises(ConfigError, match=r"switches must be an integer .*got -1"):
        config.experiment({**CHANGES, "switches": -1})
    with pytest.raises(ConfigError, match=r"switches=100000000 .*1e\+10"):
        config.experiment({**CHANGES, "switches": 10**8})
    mdps = {"worlds": [{"name": "dirichlet"}], "episodes": 10, "dynamic": True}
    with pytest.raises(ConfigError, match="dynamic is for bandits"):
        config.experiment({"learners": [], "adversaries": [], **mdps})
