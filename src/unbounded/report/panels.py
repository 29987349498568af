"""What charts are put together from: a panel for each case, a curve for each learner."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from unbounded.report.data import Data, losses_of
from unbounded.report.model import Line, Panel, Series, numbers

MOST_PANELS = 2000  # of a chart; the rest is left out, and the note says so


def cases(table: pl.DataFrame, by: Sequence[str]) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """The parts of a table, in order, with what they have in common."""
    ordered = table.sort([*by, "learner"], maintain_order=True)
    parts = ordered.group_by(list(by), maintain_order=True)
    return [(dict(zip(by, key, strict=True)), part) for key, part in parts][:MOST_PANELS]


def curves(
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
                lines += bound_line(learner, bound.text, across, y)
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


def bound_line(learner: int, text: str, x: Sequence[float], y: Sequence[float]) -> list[Line]:
    """A bound where it says something, or nothing."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(b)]
    return [Line(learner, text, *map(numbers, zip(*points, strict=True)))] if points else []


def largest(panels: Sequence[Panel]) -> int:
    """The panel to show first: the first adversary, and the largest of each number."""

    def size(i: int) -> tuple[float, int]:
        texts = [panels[i].keys.get(key, "0").replace(",", "") for key in ("n", "T", "S", "A")]
        return math.prod(1.0 + float(text) for text in texts), -i

    first = {key: panels[0].keys[key] for key in ("adversary", "world") if key in panels[0].keys}
    same = [i for i, p in enumerate(panels) if all(p.keys[k] == v for k, v in first.items())]
    return max(same, key=size)
