"""The views that a section can have, by name, and which of them the data ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unbounded.experiments import experiment
from unbounded.report import comparisons, curves, ranking
from unbounded.report.data import Data
from unbounded.report.model import Chart

VIEWS: Mapping[str, Callable[[Data], Chart | str]] = {
    name: next(getattr(room, name) for room in (ranking, curves, comparisons) if name in vars(room))
    for name in experiment.VIEWS
}
"""Each makes a chart, or says what it would need: the function of that name."""

_REPLICATES_FOR_TAILS = 100


def charts(data: Data, wanted: Sequence[str] = ()) -> list[Chart]:
    """The wanted views in their order; without any, those that the data have something for."""
    if wanted:
        return [_asked_for(data, view) for view in wanted]
    chosen = dict(VIEWS)
    if data.count("rounds") < 2:
        del chosen["rounds"]  # the curve over time says it
    if data.replicates < _REPLICATES_FOR_TAILS:
        del chosen["quantiles"]
    made = [make(data) for make in chosen.values()]
    return [chart for chart in made if isinstance(chart, Chart)]


def _asked_for(data: Data, view: str) -> Chart:
    chart = VIEWS[view](data)
    if isinstance(chart, Chart):
        return chart
    return Chart(view, view.capitalize(), f"This view {chart}.", "none")
