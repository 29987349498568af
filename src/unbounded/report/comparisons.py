"""Charts that compare: slopes, the heat map, pairs of learners, bounds, exploration.

Each public function is the view of its name: it makes a chart, or says what it would need.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl

from unbounded.bounds import DELTA
from unbounded.report.data import HIGH, LOW, Data, by_replicate, losses_of
from unbounded.report.model import Axis, Chart, Column, Panel, Series, number
from unbounded.report.panels import cases, largest, saying
from unbounded.report.statistics import RESAMPLES, mean_interval, slope_interval

_MOST_PAIRS = 20_000
_MOST_ROWS = 1000


def slopes(data: Data) -> Chart | str:
    """How fast regret grows with T, n, S and A, as exponents."""
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
        f"Mean {data.regret} at the last round, divided by {data.norm}. Stronger colour is worse.",
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
    """What the theorems say beside what was measured."""
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
            row["learner"], row["arms"], row["rounds"], f"{text} [{bound.reference}]",
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
        "ℓ∞, or in the range that the learner was told, is converted to the range of the losses. "
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


def explored(data: Data) -> Chart | str:
    """How many episodes were spent on exploration."""
    return _at_end(
        data, "explored", "Episodes of exploration",
        "How many of the episodes had been spent on exploration at the end: mean, and the middle "
        "80% of replicates.", "episodes",
    )  # fmt: skip


def reach(data: Data) -> Chart | str:
    """How well the exploration policies reach every state."""
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
