"""The charts of a report as figures for print: SVG and PDF, by matplotlib."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from unbounded.experiments.store import write_whole, writing
from unbounded.report.model import Chart, Panel, Report, Section
from unbounded.results.plot import line, wants_log

MOST_PANELS = 6  # of a figure; the page has the others
WIDTH = 7.0  # inches, of a text column

_ROW, _COLUMN = 40, 28  # letters in a line of the names of rows and of columns
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#888888",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e6e8ea",
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.size": 0.0,
    "ytick.minor.size": 0.0,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.hashsalt": "unbounded",
}


Looks = Sequence[dict[str, Any]]
"""What each learner looks like, as on the page."""


def draw(report: Report, directory: Path) -> list[Path]:
    """Write a figure for each chart that is not a table; their paths."""
    written: list[Path] = []
    for section in report.sections:
        for chart in section.charts:
            if chart.kind not in ("lines", "dots", "heat"):
                continue
            with writing(directory):
                directory.mkdir(parents=True, exist_ok=True)
            with matplotlib.rc_context(_STYLE):
                figure = _figure(report, section, chart)
                for form in ("svg", "pdf"):
                    path = directory / f"{section.id}-{chart.view}.{form}"
                    write_whole(path, _bytes(figure, form))
                    written.append(path)
    return written


def _bytes(figure: Figure, form: str) -> bytes:
    """Return the file; without dates, so that equal rows make equal files."""
    buffer = io.BytesIO()
    if form == "svg":
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
    else:
        FigureCanvasPdf(figure).print_pdf(buffer, metadata={"CreationDate": None})
    return buffer.getvalue()


def _figure(report: Report, section: Section, chart: Chart) -> Figure:
    panels, look = shown(chart), [line(number) for number in report.looks]
    columns = len(panels) if len(panels) < 4 else 2 if len(panels) == 4 else 3
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(WIDTH, rows * _height(chart, panels, columns)), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=chart.kind == "dots")
    for place in axes.flat[len(panels) :]:
        place.set_visible(False)
    common = _common(panels)
    for k, (place, panel) in enumerate(zip(axes.flat, panels, strict=False)):
        own = {a: b for a, b in panel.keys.items() if a not in common}
        place.set_title(
            _wrapped(_words(own), (64 if chart.kind == "dots" else 100) // columns),
            loc="left",
            color="#333333",
        )
        if chart.kind == "lines":
            _lines(place, chart, panel, look, labelled=k % columns == 0)
        elif chart.kind == "dots":
            _dots(place, chart, panel, look, report.learners)
        else:
            _heat(place, panel, report.learners)
    named = _words(common)
    title = f"{section.title}: {chart.title}" + (f" ({named})" if named else "")
    figure.suptitle(_wrapped(title, 100), x=0.01, ha="left", fontsize=9.5)
    if chart.kind == "lines":
        _legend(figure, panels, look, report.learners)
    with warnings.catch_warnings():  # where names leave no room, they overlap
        warnings.filterwarnings("ignore", "constrained_layout not applied")
        figure.draw_without_rendering()  # lays it out, once for both files
    figure.set_layout_engine("none")
    return figure


def _words(keys: Mapping[str, str]) -> str:
    forms = {"adversary": "{1}", "world": "{1}", "slope in": "in {1}"}
    return ", ".join(forms.get(k, "{0} = {1}").format(k, v) for k, v in keys.items())


def shown(chart: Chart) -> list[Panel]:
    """The panels of a figure: as on the page at first, but for the adversary and the world."""
    first = chart.panels[chart.start]
    if chart.kind == "heat":
        return [first]
    may_differ = ("adversary", "world")
    like = {key: value for key, value in first.keys.items() if key not in may_differ}
    panels = [p for p in chart.panels if all(p.keys.get(k) == v for k, v in like.items())]
    if len(panels) == 1:
        panels = [p for p in chart.panels if p.keys.keys() == first.keys.keys()]
        at = panels.index(first)
        panels = panels[max(0, at + 1 - MOST_PANELS) : at + 1]
    return panels[:MOST_PANELS]


def _height(chart: Chart, panels: Sequence[Panel], columns: int) -> float:
    if chart.kind == "lines":
        return 3.8 if columns == 1 else 2.6
    rows = max(len(panel.series) or len(panel.learners) for panel in panels)
    if chart.kind == "dots":
        return 0.9 + 0.2 * rows
    names = panels[0].columns
    head = 0.08 * min(max(map(len, names)), _COLUMN) if len(names) > 4 else 0.5
    return 0.7 + head + 0.22 * rows


def _common(panels: Sequence[Panel]) -> dict[str, str]:
    if len(panels) == 1:
        return {}
    first = panels[0].keys
    return {k: v for k, v in first.items() if all(panel.keys.get(k) == v for panel in panels)}


def _lines(place: Axes, chart: Chart, panel: Panel, look: Looks, *, labelled: bool) -> None:
    assert chart.x is not None
    assert chart.y is not None
    central = [v for s in panel.series for v in s.mean]
    limits = [v for bound in panel.bounds for v in bound.y]
    log = chart.y.scale == "log" or (chart.y.scale == "auto" and wants_log(central + limits))
    xs = sorted({v for s in panel.series for v in s.x if v is not None})
    x_log = chart.x.scale == "log"
    at = {v: float(i) for i, v in enumerate(xs)} if chart.x.scale == "steps" else None

    def across(values: Iterable[float | None]) -> list[float]:
        if at:
            return [math.nan if v is None else at[v] for v in values]
        return _placed(values, x_log)

    highest = max((v for v in central if v is not None), default=1.0)
    floor = min((v for v in _placed(central, log) if not math.isnan(v)), default=0.0)
    for s in panel.series:
        x = across(s.x)
        place.plot(x, _placed(s.mean, log), **look[s.learner], zorder=3)
        low = [floor - 1.0 if log and math.isnan(v) else v for v in _placed(s.low, log)]
        place.fill_between(
            x, low, _placed(s.high, log), color=look[s.learner]["color"], alpha=0.1, linewidth=0
        )
        highest = max([highest, *(v for v in s.high if v is not None)])
    for bound in panel.bounds:
        near = [v if log or (v is not None and v <= 1.6 * highest) else None for v in bound.y]
        place.plot(across(bound.x), _placed(near, log), color=look[bound.learner]["color"],
                   linestyle=":", linewidth=0.9)  # fmt: skip
    if log:
        place.set_ylim(bottom=floor - 0.3)
        place.set_yticks(*_log_ticks(*place.get_ylim()))
    if at:
        place.set_xticks(list(at.values()), [f"{v:g}" for v in at])
    elif x_log and len(xs) <= 4:
        place.set_xticks([math.log10(v) for v in xs], [_power(v) for v in xs])
    elif x_log:
        place.set_xticks(*_log_ticks(*place.get_xlim()))
    place.grid(axis="y")
    place.set_xlabel(chart.x.label)
    if labelled:
        place.set_ylabel(chart.y.label)


def _log_ticks(low: float, high: float, count: int = 5) -> tuple[list[float], list[str]]:
    """Return where ticks are, as logarithms, and what they say.

    Axes are drawn on the logarithms: losses may be anywhere from 1e-308 to 1e308, which is more
    than matplotlib's own logarithmic axis can draw.
    """
    span = high - low
    if span < 0.7:
        values = [float(v) for v in MaxNLocator(count).tick_values(10.0**low, 10.0**high)]
    else:
        every = next(e for e in (1, 2, 3, 5, 10, 20, 50, 100, 200) if e >= span / count - 0.2)
        inside = (1, 2, 5) if span <= count / 3 else (1, 3) if span <= count / 2 else (1,)
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [float(f"{m}e{k}") for k in powers if k % every == 0 for m in inside]
    values = [v for v in values if v > 0.0 and low <= math.log10(v) <= high]
    return [math.log10(v) for v in values], [_power(v) for v in values]


def _power(value: float) -> str:
    """Return a number for an axis: 300, or times a power of ten where that is shorter."""
    if value == 0.0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    power = "10" + str(int(exponent)).translate(_RAISED)
    return power if float(mantissa) == 1.0 else f"{float(mantissa):g}·{power}"


def _placed(values: Iterable[float | None], log: bool) -> list[float]:
    """Return values on an axis; NaN where there is none."""
    if log:
        return [math.nan if v is None or v <= 0.0 else math.log10(v) for v in values]
    return [math.nan if v is None else v for v in values]


def _dots(place: Axes, chart: Chart, panel: Panel, look: Looks, names: Sequence[str]) -> None:
    assert chart.x is not None
    series = list(reversed(panel.series))
    values = [v for s in series for v in (*s.mean, *s.low, *s.high)]
    log = chart.x.scale == "auto" and wants_log(values)
    for row, s in enumerate(series):
        [low], [middle], [high] = (_placed(part, log) for part in (s.low, s.mean, s.high))
        place.plot([low, high], [row, row], color=look[s.learner]["color"], linewidth=1.6)
        place.plot([middle], [row], color=look[s.learner]["color"], markersize=4.5,
                   marker=look[s.learner]["marker"])  # fmt: skip
    if panel.reference is not None:
        [at] = _placed([panel.reference], log)
        place.axvline(at, color="#666666", linewidth=0.8, linestyle="--", zorder=1)
    place.set_yticks(range(len(series)), [_wrapped(names[s.learner], _ROW) for s in series])
    place.set_ylim(-0.7, len(series) - 0.3)
    place.label_outer(remove_inner_ticks=True)
    place.tick_params(labelbottom=True)
    place.grid(axis="x")
    if log:
        place.set_xticks(*_log_ticks(*place.get_xlim()))
    symbol = panel.keys.get("slope in")
    place.set_xlabel(f"slope in {symbol}" if symbol else chart.x.label)


def _heat(place: Axes, panel: Panel, names: Sequence[str]) -> None:
    values = [v for row in panel.heat for v in row if v is not None]
    floor = max(
        min((abs(v) for v in values if v != 0.0), default=1.0), max(values, default=1.0) / 1e4
    )
    shades = [
        [math.nan if v is None else math.log(max(v, floor) / floor) for v in row]
        for row in panel.heat
    ]
    colors = matplotlib.colors.LinearSegmentedColormap.from_list("heat", ["#ffffff", "#d79a78"])
    place.imshow(shades, aspect="auto", cmap=colors, vmin=0.0)
    for i, row in enumerate(panel.heat):
        for j, v in enumerate(row):
            place.text(j, i, "–" if v is None else f"{v:.3g}", ha="center", va="center", fontsize=7)
    columns = [_wrapped(name, _COLUMN) for name in panel.columns]
    tall = len(columns) > 4
    place.set_xticks(
        range(len(columns)), columns, rotation=90 if tall else 0, fontsize=6.5 if tall else 7.5
    )
    place.set_yticks(range(len(panel.learners)), [_wrapped(names[i], _ROW) for i in panel.learners])
    place.tick_params(length=0)
    for spine in place.spines.values():
        spine.set_visible(False)


def _legend(figure: Figure, panels: Sequence[Panel], look: Looks, names: Sequence[str]) -> None:
    learners = sorted({s.learner for panel in panels for s in panel.series})
    handles = [Line2D([], [], label=names[i], **look[i]) for i in learners]
    if any(panel.bounds for panel in panels):
        bound = Line2D([], [], color="#333333", linestyle=":", linewidth=0.9, label="its bound")
        handles.append(bound)
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(len(handles), int(108 / (longest + 8))))
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, handlelength=3.0)


def _wrapped(title: str, width: int) -> str:
    return "\n".join(textwrap.wrap(title, width))
