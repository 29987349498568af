"""The answer to the claim of an experiment: what the first of its views shows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from unbounded.report.data import Data
from unbounded.report.model import Chart, Panel, Series

_MOST = 5  # names in a list
_LABEL = re.compile(r"((?:Remark|Theorem|Lemma|Corollary|Proposition) [^:]*):")


def verdict(
    data: Data, charts: Sequence[Chart], views: Sequence[str], title: str, names: Sequence[str]
) -> str:
    """Return the answer of the first of the ``views`` that has one; of the invariances by default.

    ``names`` are the page's learners, ``title`` that of the experiment.
    """
    drawn = {chart.view: chart for chart in charts if chart.panels}
    for view in views or ("scale", "shift"):
        if view in drawn and view in _ANSWERS:
            return _ANSWERS[view](data, drawn[view], title, names)
    return ""


def _invariance(
    what: str, claim: str, data: Data, chart: Chart, title: str, names: Sequence[str]
) -> str:
    """Count the units, or shifts, in which a learner plays as in the middle one."""
    alike: dict[int, dict[float | None, bool]] = {}  # in all sizes
    for panel in chart.panels:
        for one in panel.series:
            units = alike.setdefault(one.learner, {})
            points = list(zip(one.mean, one.low, one.high, strict=True))
            for x, point in zip(one.x, points, strict=True):
                units[x] = units.get(x, True) and point == points[len(points) // 2]
    same = {i: (sum(units.values()), len(units)) for i, units in alike.items()}
    known = data.known("learners")
    specs = {i: getattr(known.get(name), "cls", None) for i, (name, _) in data.learners.items()}
    claimed = {i for i in same if getattr(getattr(specs[i], "spec", None), claim, False)}
    wrong = {i for i in claimed if same[i][0] < same[i][1]}
    called = {"scale_free": "Scale-freeness", "translation_invariant": "Translation invariance"}
    found = _LABEL.match(title)
    label = found[1] if found else called[claim]
    counts: dict[tuple[int, int], list[int]] = {}
    for i, (k, of) in same.items():
        counts.setdefault((k, of), []).append(i)
    parts = [
        f"in {k} of {of}{f' {what}' if first else ''} for {_listed([names[i] for i in those])}"
        for first, ((k, of), those) in zip(
            [True, *[False] * len(counts)], sorted(counts.items(), reverse=True), strict=False
        )
    ]
    said = "the play is identical " + "; ".join(parts)
    units_met = [x for units in alike.values() for x in units]
    exact = claim == "scale_free" and all(x and math.frexp(x)[0] == 0.5 for x in units_met)
    if not claimed or (wrong and not exact):
        rounded = " (other units than powers of two round the losses)" if wrong else ""
        return f"{said[0].upper()}{said[1:]}{rounded}."
    return f"{label} {'does not hold' if wrong else 'holds'}: {said}."


def _slopes(data: Data, chart: Chart, title: str, names: Sequence[str]) -> str:
    panel = chart.panels[chart.start]
    symbol = panel.keys["slope in"]
    parts = [
        f"{symbol}^{one.mean[0]:.2f} for {names[one.learner]} ({_interval(one)})"
        for one in panel.series
        if one.mean[0] is not None
    ]
    if not parts:
        return ""
    return (
        f"{data.regret.capitalize()} grows like {_listed(parts)}; the theorem's exponent is "
        f"{panel.reference:g} ({_case(panel, without='slope in')}, 95% intervals)."
    )


def _interval(one: Series) -> str:
    low, high = one.low[0], one.high[0]
    return "–" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _bounds(data: Data, chart: Chart, title: str, names: Sequence[str]) -> str:
    rows = [row for row in chart.panels[0].rows if row[-1] is not None]
    if not rows:
        return ""
    above = [row for row in rows if row[-1] > 1.0]
    worst = max(rows, key=lambda row: row[-1])
    found = _LABEL.match(title)
    label = f"{found[1]} " if found else "The regret bounds "
    verb = ("does not hold" if above else "holds") if found else ("fail" if above else "hold")
    return (
        f"{label}{verb}: measured {data.regret} is at most {worst[-1]:.2g} of its bound in "
        f"{len(rows)} of {len(rows)} rows below ({names[worst[0]]} comes nearest)."
        if not above
        else f"{label}{verb} in {len(above)} of {len(rows)} rows below: measured {data.regret} is "
        f"{worst[-1]:.2g} times its bound for {names[worst[0]]}."
    )


def _flat(data: Data, chart: Chart, title: str, names: Sequence[str]) -> str:
    """Say by which factor normalized regret changes along the axis."""
    panel = chart.panels[chart.start]
    assert chart.x is not None
    parts = []
    for one in panel.series:
        values = [v for v in one.mean if v is not None]
        if len(values) > 1 and min(values) > 0.0:
            parts.append(
                f"{names[one.learner]} from {values[0]:.2g} to {values[-1]:.2g} (largest "
                f"{max(values):.2g})"
            )
    xs = [x for one in panel.series for x in one.x if x is not None]
    if not parts or not xs or not math.isfinite(max(xs)):
        return ""
    return (
        f"{data.regret.capitalize()} / {data.norm} against the {chart.x.label}, {min(xs):,.0f} to "
        f"{max(xs):,.0f}: {'; '.join(parts)} ({_case(panel)}). It does not grow where the "
        "theorem's rate is right."
    )


def _reach(data: Data, chart: Chart, title: str, names: Sequence[str]) -> str:
    dots = [one for panel in chart.panels for one in panel.series if one.mean[0] is not None]
    above = [one for one in dots if (one.mean[0] or 0.0) >= 0.5]
    return (
        f"In {len(above)} of {len(dots)} cases the exploration policies reach every state at least "
        "half as often as any policy can."
    )


def _case(panel: Panel, without: str = "") -> str:
    return ", ".join(
        value if key in ("adversary", "world") else f"{key} = {value}"
        for key, value in panel.keys.items()
        if key != without
    )


def _listed(parts: Sequence[str]) -> str:
    """Join names or phrases; settings of a name that have a comma go into parentheses."""
    parts = [re.sub(r"^(\S+) (\S+=.*, .*)$", r"\1 (\2)", part) for part in parts]
    if len(parts) > _MOST:
        parts = [*parts[: _MOST - 1], f"{len(parts) - _MOST + 1} more"]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


_ANSWERS: Mapping[str, Callable[[Data, Chart, str, Sequence[str]], str]] = {
    "scale": partial(_invariance, "units of the losses", "scale_free"),
    "shift": partial(_invariance, "shifts of the losses", "translation_invariant"),
    "slopes": _slopes,
    "bounds": _bounds,
    "arms": _flat,
    "rounds": _flat,
    "states": _flat,
    "actions": _flat,
    "reach": _reach,
}
