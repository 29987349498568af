"""Who is best: a ranking by the worst case, and the sentence that a page begins with."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unbounded.report.data import Data
from unbounded.report.labels import settings_of
from unbounded.report.model import Axis, Chart, Panel, Series, number
from unbounded.report.panels import cases, largest
from unbounded.report.statistics import mean_interval


def ranking(data: Data) -> Chart | str:
    """Learners by the mean regret of their worst case."""
    if data.count("learner") < 2:
        return "needs two learners"
    found = [_ranked(data, case, rows) for case, rows in cases(data.last, _sizes(data))]
    panels = [panel for panel in found if panel is not None]
    if not panels:
        return "needs an adversary that all learners have met"
    several = len(data.adversaries) * max(1, len(data.worlds)) > 1
    what = "worst case" if several else "mean"
    chosen = (
        f"Mean {data.regret} at the last round, divided by {data.norm}, in the case where that is "
        f"largest for the learner, with Student's 95% interval of that mean"
        if several
        else f"Mean {data.regret} at the last round, divided by {data.norm}, with Student's 95% "
        "interval"
    )
    return Chart(
        "ranking", f"Who has the least {data.regret}?",
        f"{chosen}. The best is at the top.", "dots",
        Axis(f"{data.regret} / {data.norm}, {what}", "auto"), band="95% interval of the mean",
        panels=panels, start=largest(panels),
    )  # fmt: skip


def _sizes(data: Data) -> list[str]:
    """What must be equal for learners to be compared."""
    return [column for column in data.case if column not in ("adversary", "world")]


def _ranked(data: Data, case: dict[str, object], rows: pl.DataFrame) -> Panel | None:
    """The worst case of each learner, over the cases that all of them have met."""
    across = [column for column in ("adversary", "world") if column in data.case]
    learners = rows["learner"].n_unique()
    met = rows.group_by(across).agg(pl.col("learner").n_unique().alias("met"))
    common = rows.join(met.filter(pl.col("met") == learners), on=across, nulls_equal=True)
    found = []
    for (learner,), own in common.group_by("learner"):
        each = [
            (*mean_interval(part["value"].to_numpy()), part.height, where)
            for where, part in own.group_by(across)
        ]
        found.append((max(each, key=lambda one: (one[0], one[4])), int(str(learner))))
    found.sort(key=lambda one: (one[0][0], one[1]))
    if len(found) < 2:
        return None
    series = [
        Series(learner, [], [number(mean)], [number(low)], [number(high)], replicates=count)
        for (mean, low, high, count, _), learner in found
    ]
    names = [_named(data, across, where) for (*_, where), _ in found]
    return Panel(data.keys(case), series, columns=names)


def _named(data: Data, across: Sequence[str], where: tuple[object, ...]) -> str:
    return ", ".join(data.names[what][int(str(i))] for what, i in zip(across, where, strict=True))


def answer(data: Data, chart: Chart | str, names: Sequence[str]) -> str:
    """What a ranking says, in a few sentences; nothing without one."""
    if isinstance(chart, str):
        return ""
    panel = chart.panels[chart.start]
    best, *others = panel.series
    told = {i for i, (_, text) in data.learners.items() if settings_of(text).get("loss_range")}
    cases_of = len(data.adversaries) * max(1, len(data.worlds))
    sizes = ", ".join(f"{name} = {value}" for name, value in panel.keys.items())
    kind = f"worst-case {data.regret}" if cases_of > 1 else f"mean {data.regret}"
    against = f" (against {panel.columns[0]})" if cases_of > 1 else f" against {panel.columns[0]}"
    first = (
        f"{names[best.learner]} has the smallest {kind}{against} of {len(panel.series)} learners: "
        f"{_text(best)} × {data.norm[1:-1]}, {sizes}."
    )
    sentences = [first]
    second = others[0]
    apart = _high(best) < _low(second)
    sentences.append(
        f"Next is {names[second.learner]} with {_text(second)}"
        + ("." if apart else ", which the replicates do not tell from it.")
    )
    untold = [one for one in panel.series if one.learner not in told]
    if told and best.learner in told and untold:
        sentences.append(
            f"{names[best.learner]} was told the range of the losses; of those that were not, "
            f"{names[untold[0].learner]} is best with {_text(untold[0])}."
        )
    return " ".join(sentences)


def _text(one: Series) -> str:
    return f"{one.mean[0]:.3g}".replace("-", "−") if one.mean[0] is not None else "–"


def _low(one: Series) -> float:
    return one.low[0] if one.low[0] is not None else float("-inf")


def _high(one: Series) -> float:
    return one.high[0] if one.high[0] is not None else float("inf")
