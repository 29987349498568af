"""What a report is made of, between the numbers and the drawing: charts of plain values.

The page and the printed figures are drawn from these, and from nothing else.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Axis(msgspec.Struct, omit_defaults=True):
    """What an axis shows. "auto" is logarithmic where that shows most of the data."""

    label: str
    scale: Literal["linear", "log", "auto", "steps"] = "linear"


class Series(msgspec.Struct, omit_defaults=True):
    """One learner's curve or points: for each x the mean, the median and an interval.

    ``learner`` is a position in the page's list of learners. In a chart of dots, ``x`` is empty and
    the lists have one entry.
    """

    learner: int
    x: list[float | None]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]
    median: list[float | None] = []
    replicates: int = 0


class Line(msgspec.Struct, omit_defaults=True):
    """A theorem's bound, beside the curve of its learner."""

    learner: int
    text: str
    x: list[float | None]
    y: list[float | None]


class Panel(msgspec.Struct, omit_defaults=True):
    """One of the cases that a chart can show, with what tells it from the others.

    ``rows`` are those of a table; ``heat`` has a row of values for each of ``learners``;
    ``reference`` is where a chart of dots has a line to compare with.
    """

    keys: dict[str, str]
    series: list[Series] = []
    bounds: list[Line] = []
    rows: list[list[Any]] = []
    learners: list[int] = []
    columns: list[str] = []
    heat: list[list[float | None]] = []
    reference: float | None = None


class Column(msgspec.Struct, omit_defaults=True):
    """Of a table. ``kind`` says what its cells are, and so how they are written and sorted."""

    label: str
    kind: Literal["learner", "text", "number", "interval", "share"] = "number"


class Chart(msgspec.Struct, omit_defaults=True):
    """A chart of a section, for one view; ``start`` is the panel to show first."""

    view: str
    title: str
    note: str
    kind: Literal["lines", "dots", "heat", "table", "paired", "none"]
    x: Axis | None = None
    y: Axis | None = None
    band: str = ""
    columns: list[Column] = []
    panels: list[Panel] = []
    start: int = 0


class Section(msgspec.Struct, omit_defaults=True):
    """One experiment."""

    id: str
    title: str
    learners: list[int]
    charts: list[Chart]
    command: str
    answer: str = ""
    claim: list[str] = []
    facts: list[list[str]] = []
    warnings: list[str] = []
    settings: list[list[str]] = []
    experiment: str = ""
    versions: list[str] = []
    code: list[list[str]] = []


class Report(msgspec.Struct, omit_defaults=True):
    """The page: every learner has one name and one look (a number) in all sections."""

    title: str
    learners: list[str]
    looks: list[int]
    sections: list[Section]


def number(value: float | None) -> float | None:
    """With 8 significant digits; None for what is not finite."""
    if value is None or value - value != 0.0:
        return None
    return float(f"{value:.8g}")


def numbers(values: Any) -> list[float | None]:
    """`number` of each."""
    return [number(value) for value in values]
