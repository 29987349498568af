"""What charts are put together from."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("polars")

import polars as pl

from unbounded.report.data import bound_line, cases, largest, saying
from unbounded.report.model import Panel


def test_cases_are_in_order_with_what_they_have_in_common():
    table = pl.DataFrame({"b": [2, 1, 1], "learner": [0, 5, 3], "value": [0.1, 0.2, 0.3]})
    (first, one), (second, two) = cases(table, ["b"])
    assert (first, second) == ({"b": 1}, {"b": 2})
    assert one["learner"].to_list() == [3, 5]
    assert two["value"].to_list() == [0.1]


def test_a_bound_says_something_below_t_ranges():
    assert saying(99.9, 100) == 99.9
    assert math.isnan(saying(100.0, 100))
    assert math.isnan(saying(math.nan, 100))


def test_a_bound_is_drawn_where_it_says_something():
    [line] = bound_line(3, "bound", [1.0, 2.0, 3.0], [math.nan, 5.0, 6.0])
    assert (line.learner, line.x, line.y) == (3, [2.0, 3.0], [5.0, 6.0])
    assert bound_line(3, "bound", [1.0], [math.nan]) == []


def test_the_panel_that_is_shown_first():
    keys = [
        {"adversary": "a", "n": "2", "T": "1,000"}, {"adversary": "a", "n": "10", "T": "1,000"},
        {"adversary": "b", "n": "99", "T": "9,000"}, {"adversary": "a", "n": "10", "T": "1,000"},
    ]  # fmt: skip
    assert largest([Panel(one) for one in keys]) == 1
