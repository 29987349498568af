"""Which views there are, and which of them the data ask for."""

from __future__ import annotations

import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from unbounded.experiments import experiment
from unbounded.report import comparisons, curves, sections, source
from unbounded.report.data import prepared


def test_every_view_that_an_experiment_may_ask_for_is_the_function_of_its_name():
    assert tuple(sections.VIEWS) == experiment.VIEWS
    for name, make in sections.VIEWS.items():
        assert make in (getattr(curves, name, None), getattr(comparisons, name, None))


def test_the_views_that_the_data_ask_for(found):
    assert {name: list(charts) for name, charts in found.charts.items()} == helpers.VIEWS
    assert found.names == list(helpers.LEARNERS)


def test_the_views_that_mdps_ask_for():
    data = prepared(helpers.mdp_rows(), helpers.MDP_LEARNERS, 5)
    asked_for = "ranking time states actions slopes explored reach heatmap paired"
    assert [chart.view for chart in sections.charts(data)] == asked_for.split()


def test_views_that_were_asked_for(reported):
    results = source.read(reported / "tails")
    learners = {("SCB", _settings(results, "SCB")): 0, ("Exp3IX", _settings(results, "Exp3IX")): 1}
    charts = sections.charts(prepared(results.frame, learners, 150), ["paired", "rounds", "scale"])
    assert [(chart.view, chart.kind) for chart in charts] == [
        ("paired", "paired"), ("rounds", "lines"), ("scale", "none")]  # fmt: skip
    assert charts[2].note == "This view needs an adversary with two values of scale."
    assert charts[1].panels[0].series[0].x == [100, 200, 400]


def _settings(results, learner):
    frame = results.frame
    return frame.filter(frame["learner"] == learner)["learner_settings"][0]
