"""A durable learner as people look at it: in a terminal, and as a page like a report's."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from unbounded.durable import Durable, by_context
from unbounded.durable.replica import Status
from unbounded.experiments.grid import versions
from unbounded.frames import mappings
from unbounded.report.model import Axis, Chart, Column, Panel, Report, Section, Series, numbers

_SPANS = 24  # of time, as wide as a line of the terminal is comfortable with
_MOST_ARMS = 40
_MOST_NAMES, _MOST_VALUES = 5, 8  # of contexts
_LARGEST = sys.float_info.max
_BARS = "▁▂▃▄▅▆▇█"
_EPISODES = "episodes"  # what stands for the arms of a learner for MDPs


class Seen(NamedTuple):
    """A snapshot of a durable learner."""

    name: str
    path: str
    status: Status
    log: pl.DataFrame

    @property
    def told(self) -> pl.DataFrame:
        """Feedback in order, with the span of time that it is in."""
        told = self.log.filter(pl.col("loss").is_not_null()).sort("told_as").with_row_index("round")
        spans = min(_SPANS, max(told.height, 1))
        return told.with_columns(
            span=pl.col("round").cast(pl.Int64) * spans // max(told.height, 1),
            name=pl.col("name").fill_null(_EPISODES),
        )

    @property
    def arms(self) -> list[str]:
        """Of all epochs, those of now first; the most that can be shown."""
        once = self.log["name"].fill_null(_EPISODES).unique(maintain_order=True)
        return list(islice(dict.fromkeys([*self.status.arms, *once]), _MOST_ARMS))


def look(path: str | os.PathLike[str], name: str | None = None, schema: str = "unbounded") -> Seen:
    """Look at a durable learner, without writing to its file or database."""
    durable = Durable(path, read_only=True, name=name, schema=schema)
    try:
        return Seen(name or Path(path).name, str(path), durable.status(), durable.log())
    finally:
        durable.close()


def _command(seen: Seen) -> str:
    """Return the command that makes the page; an address without its user and password."""
    if "://" not in seen.path:
        return shlex.join(["unbounded", "inspect", seen.path, "--html", "page.html"])
    address = re.sub(r"://[^/]*@", "://", seen.path).partition("?")[0]
    named = ["--name", seen.name, "--html", "page.html"]
    return shlex.join(["unbounded", "inspect", address, *named])


def lines(seen: Seen) -> list[str]:
    """For a terminal: what it is, how it stands, and each arm's losses over time."""
    s = seen.status
    settings = ", ".join(f"{name}={value!r}" for name, value in s.settings.items())
    what = "rounds" if s.arms else "episodes"
    scale = "" if s.scale is None else f"scale {s.scale:.4g}, "
    found = [
        f"{s.algorithm}({settings})",
        f"{s.rounds} {what} told in epoch {s.epoch}, {s.outstanding} outstanding; "
        f"{scale}{s.clipped} clipped",
    ]
    told = seen.told
    if told.height:
        times = told["told"].dt.strftime("%Y-%m-%d %H:%M")
        found.append(f"losses from {times.min()!s} to {times.max()!s} UTC, from left to right:")
    width = max((len(name) for name in seen.arms), default=0)
    chances = dict(zip(s.arms, s.probabilities, strict=True))
    means = told.group_by("name", "span").agg(_mean())["loss"]
    ends = means.min(), means.max()
    for name in seen.arms:
        own = told.filter(pl.col("name") == name)
        now = f"{chances[name]:6.1%}" if name in chances else "      "
        mean = f"mean {own.select(_mean()).item():.4g} of {own.height}" if own.height else ""
        found.append(f"  {name:<{width}} {now}  {_bars(own, *ends)}  {mean}")
    if s.scale is not None and told.height:
        scales = told.select("span", loss="scale")
        found.append(f"  {'scale':<{width}} {'':6}  {_bars(scales, 0.0, scales['loss'].max())}")
    kinds = [
        (
            what,
            f"{asked} asked",
            "" if mean is None else f"mean {mean:.4g} of {told}",
            f"{most} {share:.0%}",
        )
        for what, asked, told, mean, most, share in _kinds(seen)
    ]
    if kinds:
        found.append("by context: losses, and the arm that was chosen most often:")
    widths = [max(map(len, column)) for column in zip(*kinds, strict=True)]
    return found + ["  " + "  ".join(map(str.ljust, kind, widths)).rstrip() for kind in kinds]


def _kinds(seen: Seen) -> list[tuple[str, int, int, float | None, str, float]]:
    """Return, for values in the contexts of requests: how often asked and told, the mean loss, the
    arm that was chosen most often, and its share.
    """
    named = seen.log.with_columns(name=pl.col("name").fill_null(_EPISODES))
    names = {name: None for one in mappings(named, "context") for name in one or ()}
    found = []
    for name in islice(names, _MOST_NAMES):
        parts = sorted(by_context(named, name).items(), key=lambda part: -part[1].height)
        for value, part in parts[:_MOST_VALUES]:
            told = part.filter(pl.col("loss").is_not_null())
            arm, count = part["name"].value_counts(sort=True).row(0)
            mean = told.select(_mean()).item() if told.height else None
            share = count / part.height
            what = f"no {name}" if value is None else f"{name}={value}"
            found.append((what, part.height, told.height, mean, arm, share))
    return found


def _bars(own: pl.DataFrame, low: object, high: object) -> str:
    """The mean loss in each span of time, from the lowest mean of all arms to the highest."""
    means = dict(own.group_by("span").agg(_mean().clip(-_LARGEST, _LARGEST)).iter_rows())
    bottom, top = (
        min(max(float(end), -_LARGEST), _LARGEST) if isinstance(end, int | float) else 0.0
        for end in (low, high)
    )
    half = 0.5 * top - 0.5 * bottom  # which cannot overflow
    bars = []
    for span in range(_SPANS):
        if math.isnan(means.get(span, math.nan)):  # nothing, or infinite losses of both signs
            bars.append(" ")
        else:
            share = (0.5 * means[span] - 0.5 * bottom) / half if half > 0.0 else 0.0
            bars.append(_BARS[min(len(_BARS) - 1, max(0, int(share * len(_BARS))))])
    return "".join(bars)


def _mean() -> pl.Expr:
    """Return the mean loss, also where the sum of the losses overflows."""
    loss = pl.col("loss")
    largest = loss.abs().max()
    safe = (loss / largest).mean() * largest
    usual = loss.mean().is_finite() | largest.is_infinite()
    return pl.when(usual).then(loss.mean()).otherwise(safe).alias("loss")


def live_report(seen: Seen) -> Report:
    """Return the numbers of a page, before they are drawn."""
    names = seen.arms
    scaled = seen.status.scale is not None
    labels = [*names, "scale"] if scaled else names
    charts = [_arms_now(seen, names), _losses(seen, names), _shares(seen, names)]
    if scaled:
        charts.append(_scale(seen, len(names)))
    if _kinds(seen):
        charts.append(_contexts(seen))
    section = Section(
        id="live",
        title=f"{seen.status.algorithm} in {seen.name}",
        facts=_facts(seen),
        learners=list(range(len(labels))),
        charts=[chart for chart in charts if chart.panels[0].series or chart.panels[0].rows],
        command=_command(seen),
        experiment=json.dumps(dict(seen.status.settings), indent=1),
        versions=[versions()],
    )
    return Report(section.title, labels, list(range(len(labels))), [section])


def _facts(seen: Seen) -> list[list[str]]:
    s = seen.status
    facts = [
        ["looked at", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"],
        ["epoch", str(s.epoch)],
        ["told in it", str(s.rounds)],
        ["clipped", str(s.clipped)],
        ["outstanding", str(s.outstanding)],
        ["rows of the journal", str(s.rows)],
    ]
    return facts if s.scale is None else [*facts, ["scale", f"{s.scale:.6g}"]]


def _arms_now(seen: Seen, names: list[str]) -> Chart:
    chances = dict(zip(seen.status.arms, seen.status.probabilities, strict=True))
    asked = dict(seen.log["name"].fill_null(_EPISODES).value_counts().iter_rows())
    told = seen.told
    rows = []
    for i, name in enumerate(names):
        own = told.filter(pl.col("name") == name)
        losses = own["loss"]
        ends = [own.select(_mean()).item(), losses.min(), losses.max()]
        rows.append([i, chances.get(name), asked.get(name, 0), len(losses), *numbers(ends)])
    columns = [
        Column("arm", "learner"), Column("probability now", "share"), Column("asked"),
        Column("told"), Column("mean loss"), Column("least"), Column("largest"),
    ]  # fmt: skip
    note = "All that is in the journal. An arm without a probability is retired."
    return Chart(
        "arms", "The arms now", note, "table", columns=columns, panels=[Panel({}, rows=rows)]
    )


def _contexts(seen: Seen) -> Chart:
    columns = [
        Column("context", "text"), Column("asked"), Column("told"), Column("mean loss"),
        Column("most often", "text"), Column("its share", "share"),
    ]  # fmt: skip
    rows = [[*kind[:3], *numbers([kind[3]]), *kind[4:]] for kind in _kinds(seen)]
    note = f"Of the first {_MOST_NAMES} names, the {_MOST_VALUES} most frequent values."
    return Chart(
        "contexts", "By context", note, "table", columns=columns, panels=[Panel({}, rows=rows)]
    )


def _losses(seen: Seen, names: list[str]) -> Chart:
    loss = pl.col("loss")
    spans = seen.told.group_by("name", "span").agg(
        pl.col("round").max() + 1, _mean(), loss.quantile(0.1).alias("low"),
        loss.quantile(0.9).alias("high"), pl.len(),
    )  # fmt: skip
    return _curves(
        "losses", "Losses by arm over time",
        "Mean of the losses that were told in each span of the journal; bands hold the middle 80%.",
        "mean loss", names, spans,
    )  # fmt: skip


def _shares(seen: Seen, names: list[str]) -> Chart:
    told = seen.told
    whole = told.group_by("span").agg(pl.col("round").max() + 1, pl.len().alias("all"))
    spans = (
        told.group_by("name", "span")
        .agg(pl.len())
        .join(whole, on="span")
        .with_columns(loss=pl.col("len") / pl.col("all"))
        .with_columns(low=pl.col("loss"), high=pl.col("loss"))
    )
    return _curves(
        "shares", "What was chosen over time", "The share of each arm in each span of the journal.",
        "share", names, spans,
    )  # fmt: skip


def _scale(seen: Seen, place: int) -> Chart:
    scale = pl.col("scale")
    spans = seen.told.group_by("span").agg(
        pl.col("round").max() + 1, scale.last().alias("loss"), scale.min().alias("low"),
        scale.max().alias("high"), pl.len(),
    ).with_columns(name=pl.lit("scale"))  # fmt: skip
    chart = _curves(
        "scale", "The scale over time",
        "What losses were clipped to: last in each span of the journal; bands from least to most.",
        "scale", ["scale"], spans,
    )  # fmt: skip
    for series in chart.panels[0].series:
        series.learner = place
    return chart


def _curves(
    view: str, title: str, note: str, label: str, names: list[str], spans: pl.DataFrame
) -> Chart:
    series = []
    for i, name in enumerate(names):
        own = spans.filter(pl.col("name") == name).sort("span")
        if own.height:
            means, low, high = (numbers(own[column]) for column in ("loss", "low", "high"))
            count = int(own["len"].sum())
            series.append(Series(i, numbers(own["round"]), means, low, high, replicates=count))
    return Chart(
        view, title, note, "lines", Axis("losses told"), Axis(label, "auto"), "in the span",
        panels=[Panel({}, series)],
    )  # fmt: skip
