"""Regret over time, by matplotlib, in the colors of the report.

Learners differ in color, dashes and marker, never in the color alone:
`tests/report/test_colors.py` looks at the colors with other eyes and without color.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbounded.results import Played
from unbounded.results.intervals import mean_interval
from unbounded.validation import checked_flag, checked_option

COLORS = ("#2b5bc6", "#903043", "#039cd8", "#5c3d07", "#a95194", "#8a8500", "#4c147d")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 2)), (0, (6, 2, 1.2, 2)))
MARKERS = ("o", "s", "^", "D", "v")


def line(number: int) -> dict[str, Any]:
    """Return how matplotlib should draw the line of a learner with this number."""
    return {
        "color": COLORS[number % len(COLORS)], "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 3.0, "linewidth": 1.3, "markeredgewidth": 0.0,
    }  # fmt: skip


def wants_log(values: Iterable[float | None]) -> bool:
    """As on the report's page: nearly everything is positive and spans a factor of 8 or more."""
    there = [v for v in values if v is not None]
    positive = [v for v in there if v > 0.0]
    if not positive or len(positive) < 0.95 * len(there):
        return False
    return max(positive) > 8.0 * min(positive)


_COLUMNS = {
    "regret": "",
    "dynamic": "dynamic_regret",
    "switching": "switching_regret",
    "best": "best_probability",
}


def drawn(
    named: Mapping[str, Played],
    ax: Any,
    *,
    relative: bool,
    log: bool | None,
    interval: bool,
    what: str,
) -> Any:
    """Return a line for each learner, on ``ax`` or on axes of their own."""
    checked_flag("relative", relative)
    checked_flag("interval", interval)
    log = None if log is None else checked_flag("log", log)
    checked_option("what", what, tuple(_COLUMNS))
    first = next(iter(named.values()))
    column = _COLUMNS[what] or first.shown.column
    if column not in first.columns():
        raise ValueError(f"what={what!r} was not followed: play with dynamic=True, or switches=")
    label = column.replace("_", " ") if _COLUMNS[what] else first.shown.name
    if what == "best":
        label, log = "probability of the best arm", log or False
    elif relative:
        column, label = f"relative_{column}", f"{label} / {first.shown.unit}"
    ax = own_axes() if ax is None else ax
    before = len(ax.get_lines())  # more calls on the same axes get other looks
    curves = {name: _intervals(one.columns()[column]) for name, one in named.items()}
    if log is None:
        log = wants_log(np.concatenate([means for means, _, _ in curves.values()]))
    for k, (name, (mean, low, high)) in enumerate(curves.items(), before):
        rounds, look = named[name].checkpoints, line(k)
        ax.plot(rounds, mean, label=name, zorder=3, **look)
        if interval:
            ax.fill_between(rounds, low, high, color=look["color"], alpha=0.12, linewidth=0)
    ax.set_xscale("log" if log else "linear")
    ax.set_yscale("log" if log else "linear")
    if log:  # an interval may reach below zero: the axis is made for the means
        means = np.concatenate([mean for mean, _, _ in curves.values()])
        lowest = min(0.7 * means[means > 0.0].min(initial=np.inf), *_bottom(ax, before))
        ax.set_ylim(bottom=lowest if np.isfinite(lowest) else None)
    ax.set_xlabel(first.length.removesuffix("s"))
    ax.set_ylabel(label)
    ax.legend(frameon=False, handlelength=3.0)
    return ax


def _bottom(ax: Any, before: int) -> list[float]:
    return [ax.get_ylim()[0]] if before and ax.get_ylim()[0] > 0.0 else [np.inf]


def own_axes() -> Any:
    """Return axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ModuleNotFoundError("plot needs matplotlib: pip install 'unbounded[plot]'") from None
    _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#e6e8ea", linewidth=0.6)
    return ax


def _intervals(values: NDArray[np.float64]) -> Any:
    return np.array([mean_interval(column) for column in values.T]).T
