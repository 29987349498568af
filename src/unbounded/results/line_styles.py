"""What tells learners apart in a chart: colour, dashes and marker, never the colour alone.

`tests/report/test_colours.py` looks at the colours with other eyes and without colour.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

COLOURS = ("#2b5bc6", "#903043", "#039cd8", "#5c3d07", "#a95194", "#8a8500", "#4c147d")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 2)), (0, (6, 2, 1.2, 2)))
MARKERS = ("o", "s", "^", "D", "v")


def line(number: int) -> dict[str, Any]:
    """How matplotlib should draw the line of a learner with this number.

    Examples
    --------
    >>> from unbounded.results.line_styles import line
    >>> line(1)["color"], line(1)["marker"]
    ('#903043', 's')
    """
    return {
        "color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 3.0, "linewidth": 1.3, "markeredgewidth": 0.0,
    }  # fmt: skip


def wants_log(values: Iterable[float | None]) -> bool:
    """As on the report's page: nearly everything is positive and spans a factor of 8 or more.

    Examples
    --------
    >>> from unbounded.results.line_styles import wants_log
    >>> wants_log([1.0, None, 10.0]), wants_log([-1.0, 10.0])
    (True, False)
    """
    there = [v for v in values if v is not None]
    positive = [v for v in there if v > 0.0]
    if not positive or len(positive) < 0.95 * len(there):
        return False
    return max(positive) > 8.0 * min(positive)
