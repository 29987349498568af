"""Figures for print."""

from __future__ import annotations

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


from unbounded.report import contents
from unbounded.report.figures import draw


@pytest.mark.parametrize("y", [
    [1e-300, 1.0, 1e300], [1.0, 1.0, 1.0], [-1.0, 0.0, 5.0], [None, None, None], [1.0, 2.0, 11.0],
])  # fmt: skip
def test_figures_of_numbers_of_any_size(reported, tmp_path, y):
    made = contents(reported / "tails")
    for series in (s for chart in made.sections[0].charts for p in chart.panels for s in p.series):
        if series.x:
            series.x = [1e-307, 1.0, 1e307]
            series.mean = series.low = series.high = y
        else:
            series.mean, series.low, series.high = y[:1], y[1:2], y[2:]
    assert len(draw(made, tmp_path)) == 8
