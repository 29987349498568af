"""Figures for print."""

from __future__ import annotations

import pytest

pytest.importorskip("polars")
pytest.importorskip("matplotlib")

from unbounded.report import contents
from unbounded.report.figures import draw, shown, wants_log
from unbounded.report.model import Chart, Panel


@pytest.mark.parametrize("y", [
    [1e-300, 1.0, 1e300], [None, None, None],
    *(pytest.param(y, marks=pytest.mark.long)
      for y in ([1.0, 1.0, 1.0], [-1.0, 0.0, 5.0], [1.0, 2.0, 11.0])),
])  # fmt: skip
def test_figures_of_numbers_of_any_size(reported, tmp_path, y):
    made = contents(reported / "tails")
    for series in (s for chart in made.sections[0].charts for p in chart.panels for s in p.series):
        if series.x:
            series.x = [1e-307, 1.0, 1e307]
            series.mean = series.low = series.high = y
        else:
            series.mean, series.low, series.high = y[:1], y[1:2], y[2:]
    assert len(draw(made, tmp_path)) == 10


@pytest.mark.parametrize(
    ("values", "log"),
    [([1.0, 8.5], True), ([1.0, 7.5], False), ([None, 1.0, 100.0], True),
     ([-1.0, 1.0, 100.0], False), ([0.0], False), ([], False)],
)  # fmt: skip
def test_an_axis_is_logarithmic_where_that_shows_most(values, log):
    assert wants_log(values) == log


def panels(*keys):
    return [Panel(dict(zip(("adversary", "n"), key, strict=True))) for key in keys]


def test_the_panels_of_a_figure():
    """The case that the page shows first, for every adversary; or its sizes up to that one."""
    both = panels("a1", "a2", "b1", "b2")
    chart = Chart("time", "", "", "lines", panels=both, start=1)
    assert shown(chart) == [both[1], both[3]]
    one = panels(*(f"a{n}" for n in range(9)))
    chart = Chart("time", "", "", "lines", panels=one, start=7)
    assert shown(chart) == one[2:8]
    chart = Chart("heatmap", "", "", "heat", panels=one, start=7)
    assert shown(chart) == one[7:8]
