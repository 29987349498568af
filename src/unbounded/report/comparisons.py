"""Charts that compare: the ranking, slopes, the heat map, pairs of learners, bounds, exploration.

Each public function is the view of its name: it makes a chart, or says what it would need. `answer`
is the sentence that a page begins with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from unbounded.bounds import DELTA
from unbounded.report.data import HIGH, LOW, Data, by_replicate, cases, largest, losses_of, saying
from unbounded.report.labels import cited, settings_of
from unbounded.report.model import Axis, Chart, Column, Panel, Series, number
from unbounded.results.intervals import RESAMPLES, mean_interval, slope_interval


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
        "ranking", f"Which learner has the smallest {data.regret}?",
        f"{chosen}. The best is at the top.", "dots",
        Axis(f"{data.regret} / {data.norm}, {what}", "auto"), band="95% interval of the mean",
        panels=panels, start=largest(panels),
    )  # fmt: skip


def _sizes(data: Data) -> list[str]:
    """Return what must be equal for learners to be compared."""
    return [column for column in data.case if column not in ("adversary", "world")]


def _ranked(data: Data, case: dict[str, object], rows: pl.DataFrame) -> Panel | None:
    """Return the worst case of each learner, over the cases that all of them have met."""
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
        _dot(learner, mean, low, high, count) for (mean, low, high, count, _), learner in found
    ]
    names = [_named(data, across, where) for (*_, where), _ in found]
    return Panel(data.keys(case), series, columns=names)


def _named(data: Data, across: Sequence[str], where: tuple[object, ...]) -> str:
    return ", ".join(data.names[what][int(str(i))] for what, i in zip(across, where, strict=True))


def answer(data: Data, chart: Chart | str, names: Sequence[str]) -> str:
    """Return what a ranking says, in a few sentences; nothing without one."""
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
    apart = _differ(best, second)
    sentences.append(
        f"Next is {names[second.learner]} with {_text(second)}"
        + ("." if apart else "; the difference is not statistically significant.")
    )
    untold = [one for one in panel.series if one.learner not in told]
    if told and best.learner in told and untold:
        sentences.append(
            f"{names[best.learner]} was given the range of the losses; of those that were not, "
            f"{names[untold[0].learner]} is best with {_text(untold[0])}."
        )
    return " ".join(sentences)


def _text(one: Series) -> str:
    return f"{one.mean[0]:.3g}".replace("-", "−") if one.mean[0] is not None else "–"


def _differ(best: Series, second: Series) -> bool:
    """Return whether the difference of two means is significant at 5%, as of independent ones."""
    ends = (best.mean[0], best.high[0], second.mean[0], second.low[0])
    if None in ends:
        return False
    low, high, mean, other = (float(end or 0.0) for end in ends)
    return mean - low > math.hypot(high - low, mean - other)


_MOST_PAIRS = 20_000
_MOST_ROWS = 1000


def slopes(data: Data) -> Chart | str:
    """Return how fast regret grows with T, n, S and A, as exponents."""
    panels: list[Panel] = []
    if data.count("rounds") > 1:
        panels += _slope_panels(data, data.last, "rounds", "T")
    else:
        late = data.frame.filter(pl.col("round") * 100 >= pl.col("rounds"))
        if late["round"].n_unique() > 2:
            panels += _slope_panels(data, late, "round", "T")
    if data.mdp:
        panels += _slope_panels(data, data.last, "states", "S", 1.5)
        panels += _slope_panels(data, data.last, "actions", "A")
    else:
        panels += _slope_panels(data, data.last, "arms", "n")
    if not panels:
        return "needs several rounds, arms, states or actions"
    first = panels[0].keys["slope in"]
    runs = "runs" if data.count("rounds") > 1 else "checkpoints from T/100 on"
    return Chart(
        "slopes", f"How fast {data.regret} grows",
        f"The slope of log(mean {data.regret} / {data.unit}) against log T (over {runs}) and the "
        f"logs of other sizes, by least squares, with 95% bootstrap intervals ({RESAMPLES} "
        "resamples of whole replicates). The dashed line is the theorem's exponent. No dot: mean "
        f"{data.regret} is not positive everywhere.",
        "dots", Axis("slope"), band="95% bootstrap interval", panels=panels,
        start=largest([panel for panel in panels if panel.keys["slope in"] == first]),
    )  # fmt: skip


def _slope_panels(
    data: Data, rows: pl.DataFrame, x: str, symbol: str, reference: float = 0.5
) -> list[Panel]:
    if rows[x].drop_nulls().n_unique() < 2:
        return []
    varied = "rounds" if x == "round" else x
    by = [column for column in data.case if column != varied]
    if x in ("states", "actions"):
        other = "actions" if x == "states" else "states"
        by = ["adversary", "world_name", other, "rounds"]
    panels = []
    for case, part in cases(rows, by):
        series = []
        if x in ("states", "actions"):  # several worlds may have the same size
            part = part.group_by("learner", "replicate", x).agg(pl.col("relative").mean())
        for (learner,), own in part.sort("learner").group_by("learner", maintain_order=True):
            sizes, values = by_replicate(own, x, "relative")
            values = values[~np.isnan(values).any(axis=1)]
            if sizes.size < 2 or values.shape[0] == 0:
                continue
            slope, low, high = slope_interval(sizes.astype(np.float64), values)
            series.append(_dot(int(learner), slope, low, high, values.shape[0]))
        if series:
            data.arrange(series)
            keys = {"slope in": symbol, **data.keys(case)}
            panels.append(Panel(keys, series, reference=reference))
    return panels


def _dot(learner: int, value: float, low: float, high: float, replicates: int) -> Series:
    return Series(learner, [], [number(value)], [number(low)], [number(high)],
                  replicates=replicates)  # fmt: skip


def heatmap(data: Data) -> Chart | str:
    """Learners by adversaries."""
    if data.count("learner") < 2 or len(data.adversaries) * max(1, len(data.worlds)) < 2:
        return "needs two learners, and two adversaries or worlds"
    across = ["adversary", "world"] if data.mdp else ["adversary"]
    by = [column for column in data.case if column not in across]
    means = data.last.group_by("learner", *data.case).agg(pl.col("value").mean())
    panels = []
    for case, rows in cases(means, by):
        columns = rows.select(across).unique().sort(across).rows()
        present = set(rows["learner"])
        learners = [learner for learner in data.learners if learner in present]
        heat: list[list[float | None]] = [[None] * len(columns) for _ in learners]
        for learner, value, *place in rows.select("learner", "value", *across).iter_rows():
            heat[learners.index(learner)][columns.index(tuple(place))] = number(value)
        names = [
            " · ".join(data.names[what][i] for what, i in zip(across, column, strict=True)
                       if what == "adversary" or len(data.worlds) > 1)
            for column in columns
        ]  # fmt: skip
        panels.append(Panel(data.keys(case), learners=learners, columns=names, heat=heat))
    return Chart(
        "heatmap", "Learner against adversary",
        f"Mean {data.regret} at the last round, divided by {data.norm}. Stronger color is worse.",
        "heat", panels=panels, start=largest(panels),
    )  # fmt: skip


def paired(data: Data) -> Chart | str:
    """Differences between learners, replicate by replicate."""
    learners = list(data.learners)
    if len(learners) < 2:
        return "needs two learners"
    parts = cases(data.last, data.case)
    pairs = list(itertools.combinations(learners, 2))
    only_first = len(pairs) * len(parts) > _MOST_PAIRS
    if only_first:
        pairs = [(learners[0], j) for j in learners[1:]]
    panels = []
    for case, rows in parts:
        present, values = by_replicate(rows, "learner", "value")
        column = {int(learner): k for k, learner in enumerate(present)}
        found = []
        for i, j in pairs:
            if i not in column or j not in column:
                continue
            difference = values[:, column[j]] - values[:, column[i]]
            difference = difference[~np.isnan(difference)]  # replicates that both have played
            if difference.size == 0:
                continue
            won = float(((difference < 0.0) + 0.5 * (difference == 0.0)).mean())
            mean, low, high = mean_interval(difference)
            numbers = [number(mean), number(low), number(high), number(won)]
            found.append([i, j, *numbers, difference.size])
        if found:
            panels.append(Panel(data.keys(case), rows=found))
    if not panels:
        return "needs replicates that two learners have both played"
    return Chart(
        "paired", "Paired comparisons",
        "The difference to the reference in the same replicate (against adversaries that do not "
        f"look: on the same losses), in units of {data.norm}; below 0 is better than the "
        "reference. Mean with Student's 95% interval, and the share of replicates with less "
        f"{data.regret} than the reference (ties count half)."
        + (" Too many pairs: only the first learner can be the reference." if only_first else ""),
        "paired",
        columns=[
            Column("learner", "learner"), Column("difference"), Column("95% interval", "interval"),
            Column("won", "share"), Column("replicates"),
        ],
        panels=panels, start=largest(panels),
    )  # fmt: skip


def bounds(data: Data) -> Chart | str:
    """Return what the theorems say beside what was measured."""
    if not data.bounds:
        return "needs learners with a bound that has constants"
    worst: dict[tuple[int, int, int], list[Any]] = {}
    for row in data.grouped(data.case).sort([*data.case, "learner"]).iter_rows(named=True):
        bound = data.bounds.get(row["learner"])
        if bound is None:
            continue
        whole = bound.over_range(row["arms"], row["round"], losses_of(row))
        if math.isnan(whole):
            continue
        limit = whole / row["norm"]
        measured = row["high"] if bound.with_probability else row["mean"]
        ratio = measured / limit
        kind = f"{HIGH:.0%} quantile" if bound.with_probability else "mean"
        text = f"{bound.text}, δ = {DELTA:g}" if "δ" in bound.text else bound.text
        if math.isnan(saying(whole, row["round"])):
            text += " (trivial)"
        line = [
            row["learner"], row["arms"], row["rounds"], f"{text} [{cited(bound.reference)}]",
            number(limit), number(measured), kind, data.names["adversary"][row["adversary"]],
            number(ratio),
        ]  # fmt: skip
        place = row["learner"], row["arms"], row["rounds"]
        if place not in worst or ratio > worst[place][-1]:
            worst[place] = line
    if not worst:
        return "needs losses for which a bound holds"
    ranks = list(data.learners)

    def order(place: tuple[int, int, int]) -> tuple[int, int, int]:
        return place[1], place[2], ranks.index(place[0])

    return Chart(
        "bounds", "The theorems' bounds",
        "For each learner the adversary that comes nearest to its bound, everything divided by "
        f"{data.norm}. R is the range of the losses and ℓ∞ the largest absolute loss; a bound in "
        "ℓ∞, or in the range that the learner was given, is converted to the range of the losses. "
        "Only bounds with constants, and only where their conditions hold; trivial are those that "
        "no regret can exceed, because it is at most T ranges.",
        "table",
        columns=[
            Column("learner", "learner"), Column("n"), Column("T"), Column("theorem", "text"),
            Column("bound"), Column("measured"), Column("as", "text"),
            Column("against", "text"), Column("measured / bound"),
        ],
        panels=[Panel({}, rows=[worst[place] for place in sorted(worst, key=order)][:_MOST_ROWS])],
    )  # fmt: skip


_KINDS = ("relative", "relative_dynamic_regret", "relative_switching_regret")


def dynamic(data: Data) -> Chart | str:
    """Tabulate dynamic regret beside static regret."""
    rows = data.last.filter(pl.col("relative_dynamic_regret").is_not_null())
    if rows.height == 0:
        return "needs dynamic = true"
    means = [pl.col(name).mean() for name in (*_KINDS, "dynamic_pseudo_regret")]
    table = rows.group_by("learner", *data.case).agg(means)
    panels = []
    for case, part in cases(table, data.case):
        found = [
            [row["learner"], *(number(row[name]) for name in _KINDS),
             number(row["dynamic_pseudo_regret"])]
            for row in part.iter_rows(named=True)
        ]  # fmt: skip
        panels.append(Panel(data.keys(case), rows=found))
    return Chart(
        "dynamic", "Static and dynamic regret",
        "Mean realized regret at the last round, divided by the range of the losses: against the "
        "best fixed arm (static), against the best arm of each round (dynamic), and against the "
        "best sequence of arms with few switches, if those were followed. Dynamic pseudo-regret is "
        "about expected losses, each in units of the scale of its round, if the adversary declares "
        "them.",
        "table",
        columns=[
            Column("learner", "learner"), Column("static"), Column("dynamic"), Column("switching"),
            Column("dynamic pseudo-regret"),
        ],
        panels=panels, start=largest(panels),
    )  # fmt: skip


def explored(data: Data) -> Chart | str:
    """Return how many episodes were spent on exploration."""
    return _at_end(
        data, "explored", "Episodes of exploration",
        "How many of the episodes had been spent on exploration at the end: mean, and the middle "
        "80% of replicates.", "episodes",
    )  # fmt: skip


def reach(data: Data) -> Chart | str:
    """Return how well the exploration policies reach every state."""
    return _at_end(
        data, "reach", "Do the exploration policies reach every state?",
        "The smallest ratio, over states, of the probability with which a state's exploration "
        "policy reaches it to the largest with which any policy does; 1 is perfect. Mean, and the "
        "middle 80% of replicates. The dashed line is the paper's lemma: at least 1/2.",
        "smallest q(s) of its policy / max q(s)", 0.5,
    )  # fmt: skip


def _at_end(
    data: Data, column: str, title: str, note: str, label: str, reference: float | None = None
) -> Chart | str:
    rows = data.last.filter(pl.col(column).is_not_null() & pl.col(column).is_not_nan())
    if rows.height == 0:
        return f"needs rows with {column}"
    value = pl.col(column).cast(pl.Float64)
    table = rows.group_by("learner", *data.case).agg(
        value.mean().alias("mean"),
        value.quantile(LOW, "linear").alias("low"),
        value.quantile(HIGH, "linear").alias("high"),
        pl.len().alias("count"),
    )
    panels = []
    for case, part in cases(table, data.case):
        series = [
            _dot(row["learner"], row["mean"], row["low"], row["high"], row["count"])
            for row in part.iter_rows(named=True)
        ]
        data.arrange(series)
        panels.append(Panel(data.keys(case), series, reference=reference))
    return Chart(
        column, title, note, "dots", Axis(label, "auto"), band="10% to 90% of replicates",
        panels=panels, start=largest(panels),
    )  # fmt: skip
