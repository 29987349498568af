"""The headline answers the claim: what the first view shows."""

from __future__ import annotations

from types import MappingProxyType

import pytest

pytest.importorskip("polars")

from unbounded import experiments
from unbounded.report import contents
from unbounded.report.model import Axis, Chart, Panel
from unbounded.report.verdicts import verdict
from unbounded.results.summary import NEGATIVE

UNITS = {
    "title": "Remark 1: units",
    "views": ["scale"],
    "learners": [{"name": "SCB"}, {"name": "Exp3", "loss_range": [0.0, 1.0]}],
    "adversaries": [{"name": "StochasticGap", "gap": 0.4, "scale": [2.0**-30, 1.0, 2.0**30]}],
    "arms": 2, "rounds": 500, "replicates": 2, "checkpoints": 2, "seed": 1,
}  # fmt: skip


def section(document, out):
    experiments.run(document, out=out, engine="serial")
    return contents(out).sections[0]


def test_a_remark_on_units_is_answered(tmp_path):
    found = section(UNITS, tmp_path)
    assert found.answer.startswith(
        "Remark 1 holds: the play is identical in 3 of 3 units of the losses for SCB; in 2 of 3 for"
    )
    chart = found.charts[1]  # the control: the same with one number of SCB's changed
    assert chart.view == "scale"
    chart.panels[0].series[0].mean[0] = 7.0

    class Data:
        learners = MappingProxyType({0: ("SCB", ""), 1: ("Exp3", "")})

        def known(self, field):
            return experiments.names.known("bandits", field).ours

    said = verdict(Data(), [chart], ["scale"], "Units", ["SCB", "Exp3"])
    assert said.startswith("The play is identical in 2 of 3 units")  # these round the losses
    for series in chart.panels[0].series:
        series.x[:] = [0.5, 1.0, 1024.0]
    said = verdict(Data(), [chart], ["scale"], "Units", ["SCB", "Exp3"])
    assert said.startswith("Scale-freeness does not hold: the play is identical in 2 of 3 units")


def test_bounds_are_answered_and_one_that_fails_is_said():
    row = [0, 2, 100, "text", 1.0, 0.5, "mean", "Switch", 0.5]
    chart = Chart("bounds", "", "", "table", Axis("x"), panels=[Panel({}, rows=[row])])

    class Data:
        regret = "regret"

    said = verdict(Data(), [chart], ["heatmap", "bounds"], "Theorem 1: title", ["SCB"])
    assert said.startswith("Theorem 1 holds: measured regret is at most 0.5 of its bound in 1 of 1")
    row[-1] = 1.5
    said = verdict(Data(), [chart], ["heatmap", "bounds"], "Theorem 1: title", ["SCB"])
    assert said.startswith("Theorem 1 does not hold in 1 of 1 rows below")
    assert verdict(Data(), [chart], ["heatmap"], "Theorem 1: title", ["SCB"]) == ""


def test_negative_regret_is_explained_where_it_is_shown(tmp_path):
    switching = {
        "learners": [{"name": "SCB"}, {"name": "Uniform"}],
        "adversaries": [{"name": "Switch"}],
        "arms": 2, "rounds": 4000, "replicates": 2, "checkpoints": 2, "seed": 1,
    }  # fmt: skip
    charts = {chart.view: chart for chart in section(switching, tmp_path / "a").charts}
    negative = min(one.mean[0] for one in charts["ranking"].panels[0].series) < 0.0
    assert (NEGATIVE in charts["ranking"].note) == negative
    drawn = {**switching, "adversaries": [{"name": "StochasticGap", "gap": 0.4}]}
    charts = {chart.view: chart for chart in section(drawn, tmp_path / "b").charts}
    assert NEGATIVE not in charts["ranking"].note
