"""Charts of curves: over time, and against n, T, S, A, scale, shift and delta."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from unbounded.report.data import STATISTICS, Data, losses_of
from unbounded.report.model import Axis, Chart, Line, Panel, Series, numbers
from unbounded.report.names import Variant, settings_of, short_names
from unbounded.report.statistics import tail_levels, tail_quantiles

MOST_PANELS = 2000  # of a chart; the rest is left out, and the note says so

_BAND = "10% to 90% of replicates"
_DOTTED = "Dotted: the theorems' bounds, where they are not trivial (above T ranges)."


def over_time(data: Data) -> Chart | str:
    """Regret over time."""
    if data.frame.group_by("cell").agg(pl.col("round").n_unique())["round"].max() in (None, 1):
        return "needs more than one checkpoint"
    panels = _panels(data, data.over_time, data.case, "round", normalised=False)
    return _chart(
        "time", "Regret over time",
        f"{'Regret over episodes' if data.mdp else 'Realised regret over rounds'} 1..t, divided "
        f"by {data.unit_in_words}. "
        f"Bands hold the middle 80% of replicates. {_DOTTED}{_thinning(data)}",
        Axis("episode t" if data.mdp else "round t", "log"),
        Axis(f"regret / {data.unit}", "auto"), panels,
    )  # fmt: skip


def thresholds(data: Data) -> Chart | str:
    """The learners' own idea of the scale."""
    frame = data.frame.filter(pl.col("threshold") > 0.0).with_columns(value="threshold")
    if frame.height == 0 or data.frame["round"].n_unique() < 2:
        return "needs learners that keep a threshold, and more than one checkpoint"
    table = data.thinned(frame).group_by("learner", *data.case, "round").agg(*STATISTICS)
    panels = _panels(data, table, data.case, "round", normalised=False, bounded=False)
    return _chart(
        "thresholds", "Thresholds over time",
        "What each learner takes for the scale or the range of the losses, in the units of the "
        "losses. Bands hold the middle 80% of replicates; zeros are left out." + _thinning(data),
        Axis("episode t" if data.mdp else "round t", "log"), Axis("threshold", "auto"), panels,
    )  # fmt: skip


def _thinning(data: Data) -> str:
    return f" One checkpoint in {data.every} is shown." if data.every > 1 else ""


def against_arms(data: Data) -> Chart | str:
    """Normalised regret against the number of arms."""
    return _against(data, "arms", ["adversary", "rounds"], "arms", "number of arms n")


def against_states(data: Data) -> Chart | str:
    """Normalised regret against the number of states."""
    by = ["adversary", "world_name", "actions", "rounds"]
    return _against(data, "states", by, "states", "number of states S")


def against_actions(data: Data) -> Chart | str:
    """Normalised regret against the number of actions."""
    by = ["adversary", "world_name", "states", "rounds"]
    return _against(data, "actions", by, "actions", "number of actions A")


def _against(data: Data, view: str, by: list[str], x: str, label: str) -> Chart | str:
    if data.count(x) < 2:
        return f"needs two values of {x}"
    panels = _panels(data, data.grouped([*by, x]), by, x, normalised=True)
    return _chart(
        view, f"Regret against the {label}",
        f"Regret at the last round, divided by {data.norm}: flat means that the theorem's rate "
        f"is right. Bands hold the middle 80% of replicates. {_DOTTED}",
        Axis(label, "log"), Axis(f"regret / {data.norm}", "auto"), panels,
    )  # fmt: skip


def against_rounds(data: Data) -> Chart | str:
    """Normalised regret against the number of rounds, or at the checkpoints of one run."""
    by = [column for column in data.case if column != "rounds"]
    several = data.count("rounds") > 1
    if several:
        table = data.grouped([*by, "rounds"])
        source = "Each T is a run of its own"
    else:
        normalised = (pl.col("relative") / pl.col("norm")).alias("value")
        frame = data.thinned(data.frame.with_columns(normalised))
        losses = data.over_time.drop("mean", "median", "low", "high", "count")
        table = (
            frame.group_by("learner", *data.case, "round")
            .agg(*STATISTICS, pl.col("norm").mean())
            .join(losses, on=["learner", *data.case, "round"], nulls_equal=True)
            .drop("rounds")
            .rename({"round": "rounds"})
        )
        source = "The checkpoints of one run"
    if table["rounds"].n_unique() < 2:
        return "needs two values of rounds, or two checkpoints"
    panels = _panels(data, table, by, "rounds", normalised=True)
    what = "episodes" if data.mdp else "rounds"
    return _chart(
        "rounds", f"Regret against the number of {what} T",
        f"Regret divided by {data.norm}: flat means that the theorem's rate is right. {source}. "
        f"Bands hold the middle 80% of replicates. {_DOTTED}",
        Axis(f"number of {what} T", "log"), Axis(f"regret / {data.norm}", "auto"), panels,
    )  # fmt: skip


def against_scale(data: Data) -> Chart | str:
    """Normalised regret against the scale of the losses."""
    return _against_setting(data, "scale", "Does a change of units matter?")


def against_shift(data: Data) -> Chart | str:
    """Normalised regret against a constant that is added to all losses."""
    return _against_setting(data, "shift", "Does a constant that is added to all losses matter?")


def _against_setting(data: Data, setting: str, question: str) -> Chart | str:
    """Against a number in the settings of adversaries that are equal but for it."""
    values: dict[int, float] = {}
    members: dict[Variant, list[int]] = {}
    for i, (name, text) in enumerate(data.adversaries):
        settings = settings_of(text)
        value = settings.pop(setting, None)
        if isinstance(value, int | float):
            values[i] = float(value)
            members.setdefault((name, json.dumps(settings)), []).append(i)
    several = {family: those for family, those in members.items() if len(those) > 1}
    if not several:
        return f"needs an adversary with two values of {setting}"
    names = list(short_names(list(several)).values())
    family = {i: k for k, those in enumerate(several.values()) for i in those}
    adversary = pl.col("adversary")
    rows = data.last.filter(adversary.is_in(list(family))).with_columns(
        adversary.replace_strict(family, return_dtype=pl.Int64).alias("family"),
        adversary.replace_strict(values, return_dtype=pl.Float64).alias("x"),
    )
    by = ["family", *data.case[1:]]
    table = data.grouped([*by, "x"], rows)
    panels = _panels(data, table, by, "x", normalised=True, families=names)
    positive = all(values[i] > 0.0 for i in family)
    return _chart(
        setting, f"Regret against the {setting} of the losses",
        f"{question} Regret at the last round, divided by {data.norm}. Bands hold the middle 80% "
        f"of replicates. {_DOTTED}",
        Axis(f"{setting} of the losses", "log" if positive else "steps"),
        Axis(f"regret / {data.norm}", "auto"), panels,
    )  # fmt: skip


def quantiles(data: Data) -> Chart | str:
    """The (1 - delta) quantile against log(1 / delta)."""
    panels = []
    for case, rows in cases(data.last, data.case):
        series: list[Series] = []
        lines: list[Line] = []
        for (learner,), own in rows.group_by("learner", maintain_order=True):
            values = own["value"].to_numpy()
            deltas = tail_levels(values.size)
            level, low, high = tail_quantiles(values, deltas)
            x = [-math.log(delta) for delta in deltas]
            series.append(
                Series(int(learner), numbers(x), numbers(level), numbers(low), numbers(high),
                       replicates=values.size)
            )  # fmt: skip
            bound = data.bounds.get(int(learner))
            if bound is None or not bound.with_probability:
                continue
            one = own.row(0, named=True)
            losses = losses_of(
                {"low_loss": own["low_loss"].min(), "high_loss": own["high_loss"].max(),
                 "size": own["size"].mean(), "inverse_range": own["inverse_range"].mean()}
            )  # fmt: skip
            T = one["round"]
            y = [
                saying(bound.over_range(one["arms"], T, losses, delta), T) / one["norm"]
                for delta in deltas
            ]
            lines += _line(int(learner), bound.text, x, y)
        panels.append(Panel(data.keys(case), series, lines))
    return _chart(
        "quantiles", "Tails: the (1 - δ) quantile of regret",
        f"Of realised regret at the last round, divided by {data.norm}, against ln(1/δ); a bound "
        "that holds with probability 1 - δ for every δ is a line there. Bands are 95% intervals, "
        "from order statistics.",
        Axis("ln(1/δ)"), Axis(f"quantile of regret / {data.norm}"), panels,
        band="95% interval of the quantile",
    )  # fmt: skip


def cases(table: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """The parts of a table, in order, with what they have in common."""
    ordered = table.sort([*by, "learner"], maintain_order=True)
    parts = ordered.group_by(list(by), maintain_order=True)
    return [(dict(zip(by, key, strict=True)), part) for key, part in parts][:MOST_PANELS]


def _panels(
    data: Data,
    table: pl.DataFrame,
    by: list[str],
    x: str,
    *,
    normalised: bool,
    bounded: bool = True,
    families: Sequence[str] = (),
) -> list[Panel]:
    """A panel for each combination of the columns ``by``, with a curve for each learner."""
    ordered = table.sort([*by, "learner", x])
    values = {name: ordered[name].to_list() for name in ordered.columns}
    panels = []
    for start, stop in _runs(values, by, 0, ordered.height)[:MOST_PANELS]:
        case = {name: values[name][start] for name in by}
        series, lines = [], []
        for a, b in _runs(values, ["learner"], start, stop):
            learner = values["learner"][a]
            mean, low, high, median = (
                numbers(values[name][a:b]) for name in ("mean", "low", "high", "median")
            )
            across = values[x][a:b]
            count = max(values["count"][a:b])
            series.append(Series(learner, numbers(across), mean, low, high, median, count))
            bound = data.bounds.get(learner) if bounded else None
            if bound is not None:
                y = []
                for k in range(a, b):
                    row = {name: column[k] for name, column in values.items()}
                    n, T = row["arms"], row.get("round", row["rounds"])
                    value = saying(bound.over_range(n, T, losses_of(row)), T)
                    y.append(value / row["norm"] if normalised else value)
                lines += _line(learner, bound.text, across, y)
        family = case.pop("family", None)
        words = data.keys(case)
        if family is not None:
            words = {"adversary": families[family], **words}
        if len({value for one in series for value in one.x}) > 1:  # a curve has two ends
            panels.append(Panel(words, series, lines))
    return panels


def _runs(
    values: Mapping[str, Sequence[Any]], names: Sequence[str], start: int, stop: int
) -> list[tuple[int, int]]:
    """Where all of the named columns stay the same."""
    columns = [values[name] for name in names]
    changes = (
        k for k in range(start + 1, stop) if any(column[k] != column[k - 1] for column in columns)
    )
    edges = [start, *changes, stop]
    return list(itertools.pairwise(edges)) if stop > start else []


def saying(bound: float, T: int) -> float:
    """A bound over the range, or NaN if it says nothing: no regret exceeds T ranges."""
    return bound if bound < T else math.nan


def _line(learner: int, text: str, x: Sequence[float], y: Sequence[float]) -> list[Line]:
    """A bound where it says something, or nothing."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(b)]
    return [Line(learner, text, *map(numbers, zip(*points, strict=True)))] if points else []


def _chart(
    view: str, title: str, note: str, x: Axis, y: Axis, panels: list[Panel], band: str = _BAND
) -> Chart | str:
    if not panels:
        return f"needs results for two values of {x.label}, all else being equal"
    if not any(panel.bounds for panel in panels):
        note = note.replace(f" {_DOTTED}", "")
    if len(panels) == MOST_PANELS:
        note += f" Only the first {MOST_PANELS} cases are shown."
    return Chart(view, title, note, "lines", x, y, band, panels=panels, start=largest(panels))


def largest(panels: Sequence[Panel]) -> int:
    """The panel to show first: the first adversary, and the largest of each number."""

    def size(i: int) -> tuple[float, int]:
        texts = [panels[i].keys.get(key, "0").replace(",", "") for key in ("n", "T", "S", "A")]
        return math.prod(1.0 + float(text) for text in texts), -i

    first = {key: panels[0].keys[key] for key in ("adversary", "world") if key in panels[0].keys}
    same = [i for i, p in enumerate(panels) if all(p.keys[k] == v for k, v in first.items())]
    return max(same, key=size)
