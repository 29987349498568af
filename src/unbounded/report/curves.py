"""Charts of curves: over time, and against n, T, S, A, scale, shift and delta.

Each public name is the view of its name: it makes a chart, or says what it would need.
"""

from __future__ import annotations

import json
import math
from functools import partial

import polars as pl

from unbounded.report.data import (
    MOST_PANELS,
    STATISTICS,
    Data,
    bound_line,
    cases,
    curves,
    largest,
    losses_of,
    saying,
)
from unbounded.report.labels import Variant, settings_of, short_names
from unbounded.report.model import Axis, Chart, Line, Panel, Series, numbers
from unbounded.results.intervals import tail_levels, tail_quantiles

_BAND = "10% to 90% of replicates"
_DOTTED = "Dotted: the theorems' bounds, where they are not trivial (above T ranges)."


def time(data: Data) -> Chart | str:
    """Chart regret over time."""
    if data.frame.group_by("cell").agg(pl.col("round").n_unique())["round"].max() in (None, 1):
        return "needs more than one checkpoint"
    found = curves(data, data.over_time, data.case, "round", normalized=False)
    what, unit = "Realized regret over rounds", "the range of the losses so far"
    if data.mdp:
        what = "Pseudo-regret (expected, exact by occupancy measures) over episodes"
        unit = "Σℓ∞, the sum over layers of the largest absolute loss"
    return _chart(
        "time", f"{data.regret.capitalize()} over time",
        f"{what} 1..t, divided by {unit}. Bands hold the middle 80% of replicates. {_DOTTED}"
        f"{_thinning(data)}",
        Axis("episode t" if data.mdp else "round t", "log"),
        Axis(f"{data.regret} / {data.unit}", "auto"), found,
    )  # fmt: skip


def thresholds(data: Data) -> Chart | str:
    """Return the learners' own idea of the scale."""
    frame = data.frame.filter(pl.col("threshold") > 0.0).with_columns(value="threshold")
    if frame.height == 0 or data.frame["round"].n_unique() < 2:
        return "needs learners that keep a threshold, and more than one checkpoint"
    table = data.thinned(frame).group_by("learner", *data.case, "round").agg(*STATISTICS)
    found = curves(data, table, data.case, "round", normalized=False, bounded=False)
    return _chart(
        "thresholds", "Thresholds over time",
        "What each learner takes for the scale or the range of the losses, in the units of the "
        "losses. Bands hold the middle 80% of replicates; zeros are left out." + _thinning(data),
        Axis("episode t" if data.mdp else "round t", "log"), Axis("threshold", "auto"), found,
    )  # fmt: skip


def best(data: Data) -> Chart | str:
    """Chart the probability of the arm that is best at the moment."""
    frame = data.frame.filter(pl.col("best_probability").is_not_null())
    if frame.height == 0 or frame["round"].n_unique() < 2:
        return "needs dynamic = true, and more than one checkpoint"
    frame = data.thinned(frame.with_columns(value="best_probability"))
    table = frame.group_by("learner", *data.case, "round").agg(*STATISTICS)
    found = curves(data, table, data.case, "round", normalized=False, bounded=False)
    return _chart(
        "best", "Probability of the best arm over time",
        "The probability of the arm with the smallest expected loss of its round, or the smallest "
        "loss if the adversary does not declare expected losses, in the mean over the rounds since "
        "the last checkpoint. Bands hold the middle 80% of replicates." + _thinning(data),
        Axis("round t"), Axis("probability of the best arm"), found,
    )  # fmt: skip


def _thinning(data: Data) -> str:
    return f" One checkpoint in {data.every} is shown." if data.every > 1 else ""


def _against(x: str, label: str, by: list[str], data: Data) -> Chart | str:
    """Normalized regret against the column ``x``; the other sizes ``by`` are equal."""
    if data.count(x) < 2:
        return f"needs two values of {x}"
    found = curves(data, data.grouped([*by, x]), by, x, normalized=True)
    return _chart(
        x, f"{data.regret.capitalize()} against the {label}",
        f"{data.regret.capitalize()} at the last round, divided by {data.norm}: flat means that "
        f"the theorem's rate is right. Bands hold the middle 80% of replicates. {_DOTTED}",
        Axis(label, "log"), Axis(f"{data.regret} / {data.norm}", "auto"), found,
    )  # fmt: skip


arms = partial(_against, "arms", "number of arms n", ["adversary", "rounds"])
states = partial(
    _against, "states", "number of states S", ["adversary", "world_name", "actions", "rounds"]
)
actions = partial(
    _against, "actions", "number of actions A", ["adversary", "world_name", "states", "rounds"]
)


def rounds(data: Data) -> Chart | str:
    """Normalized regret against the number of rounds, or at the checkpoints of one run."""
    by = [column for column in data.case if column != "rounds"]
    several = data.count("rounds") > 1
    if several:
        table = data.grouped([*by, "rounds"])
        source = "Each T is a run of its own"
    else:
        normalized = (pl.col("relative") / pl.col("norm")).alias("value")
        frame = data.thinned(data.frame.with_columns(normalized))
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
    found = curves(data, table, by, "rounds", normalized=True)
    what = "episodes" if data.mdp else "rounds"
    return _chart(
        "rounds", f"{data.regret.capitalize()} against the number of {what} T",
        f"{data.regret.capitalize()} divided by {data.norm}: flat means that the theorem's rate is "
        f"right. {source}. Bands hold the middle 80% of replicates. {_DOTTED}",
        Axis(f"number of {what} T", "log"), Axis(f"{data.regret} / {data.norm}", "auto"), found,
    )  # fmt: skip


def _against_setting(setting: str, question: str, data: Data) -> Chart | str:
    """Normalized regret against a number that alone tells some adversaries apart."""
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
    names = list(short_names(list(several), data.known("adversaries")).values())
    family = {i: k for k, those in enumerate(several.values()) for i in those}
    adversary = pl.col("adversary")
    rows = data.last.filter(adversary.is_in(list(family))).with_columns(
        adversary.replace_strict(family, return_dtype=pl.Int64).alias("family"),
        adversary.replace_strict(values, return_dtype=pl.Float64).alias("x"),
    )
    by = ["family", *data.case[1:]]
    table = data.grouped([*by, "x"], rows)
    found = curves(data, table, by, "x", normalized=True, families=names)
    positive = all(values[i] > 0.0 for i in family)
    return _chart(
        setting, f"{data.regret.capitalize()} against the {setting} of the losses",
        f"{question} {data.regret.capitalize()} at the last round, divided by {data.norm}. "
        f"Bands hold the middle 80% of replicates. {_DOTTED}",
        Axis(f"{setting} of the losses", "log" if positive else "steps"),
        Axis(f"{data.regret} / {data.norm}", "auto"), found,
    )  # fmt: skip


scale = partial(_against_setting, "scale", "Does a change of units matter?")
shift = partial(_against_setting, "shift", "Does a constant that is added to all losses matter?")


def quantiles(data: Data) -> Chart | str:
    """Return the (1 - delta) quantile against log(1 / delta)."""
    found = []
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
            lines += bound_line(int(learner), bound.text, x, y)
        found.append(Panel(data.keys(case), series, lines))
    return _chart(
        "quantiles", f"Tails: the (1 - δ) quantile of {data.regret}",
        f"Of {data.regret if data.mdp else 'realized regret'} at the last round, divided by "
        f"{data.norm}, against ln(1/δ); a bound that holds with probability 1 - δ for every δ is a "
        "line there. Bands are 95% intervals, from order statistics.",
        Axis("ln(1/δ)"), Axis(f"quantile of {data.regret} / {data.norm}"), found,
        band="95% interval of the quantile",
    )  # fmt: skip


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
