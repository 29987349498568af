"""The views that a section can have, by name, and which of them the data ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unbounded.lab.config import ConfigError, nearest
from unbounded.report import comparisons, curves
from unbounded.report.data import Data
from unbounded.report.model import Chart

VIEWS: Mapping[str, Callable[[Data], Chart | str]] = {
    "time": curves.over_time,
    "rounds": curves.against_rounds,
    "arms": curves.against_arms,
    "states": curves.against_states,
    "actions": curves.against_actions,
    "scale": curves.against_scale,
    "shift": curves.against_shift,
    "slopes": comparisons.slopes,
    "quantiles": curves.quantiles,
    "thresholds": curves.thresholds,
    "explored": comparisons.explored,
    "reach": comparisons.reach,
    "heatmap": comparisons.heat_map,
    "bounds": comparisons.bounds,
    "paired": comparisons.paired,
}
"""Each makes a chart, or says what it would need."""

_REPLICATES_FOR_TAILS = 100


def charts(data: Data, wanted: Sequence[str] = ()) -> list[Chart]:
    """The wanted views in their order; without any, those that the data have something for."""
    if wanted:
        return [_asked_for(data, view) for view in checked(wanted)]
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


def checked(views: Sequence[str], where: str = "views") -> list[str]:
    """The names, if all are those of views.

    Examples
    --------
    >>> from unbounded.report.views import checked
    >>> checked(["time", "paired"])
    ['time', 'paired']
    """
    for view in views:
        if view not in VIEWS:
            raise ConfigError(f"{where} has an unknown name {view!r}; {nearest(view, VIEWS)}")
    return list(views)
