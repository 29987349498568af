"""The comparisons of a report, again from the Parquet files by other means."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("polars")

from scipy import stats

import report_helpers as helpers
from report_helpers import CLOSE
from unbounded.report import comparisons
from unbounded.report.data import prepared
from unbounded.results import intervals


@pytest.mark.parametrize(("name", "column"), [("sizes", "rounds"), ("tails", "round")])
def test_slopes(found, name, column):
    symbols = set()
    for keys, series, learner, _ in found.curves(name, "slopes"):
        symbols.add(keys["slope in"])
        x = column if keys["slope in"] == "T" else "arms"
        rows = found.rows[name].rows(learner, keys)
        if x != "round":
            at_end = rows["round"] == rows["rounds"]
            rows = {key: values[at_end] for key, values in rows.items()}
        sizes = np.unique(rows[x])
        table = np.array([
            [rows["relative_regret"][(rows["replicate"] == r) & (rows[x] == size)][0]
             for size in sizes]
            for r in np.unique(rows["replicate"])
        ])  # fmt: skip
        means = table.mean(axis=0)
        if means.min() <= 0.0:
            assert series["mean"] == [None]
            continue
        assert series["mean"][0] == pytest.approx(helpers.slope(sizes, means), **CLOSE)
        chosen = np.random.default_rng(intervals.SEED).integers(0, len(table), (1000, len(table)))
        resampled = table[chosen].mean(axis=1)
        if resampled.min() > 0.0:
            all_slopes = [helpers.slope(sizes, one) for one in resampled]
            assert series["low"][0] == pytest.approx(helpers.quantile(all_slopes, 0.025), **CLOSE)
            assert series["high"][0] == pytest.approx(helpers.quantile(all_slopes, 0.975), **CLOSE)
        else:
            assert series["low"] == [None]
    assert symbols == ({"T", "n"} if name == "sizes" else {"T"})


def test_heat_map(found):
    chart = found.charts["sizes"]["heatmap"]
    assert len(chart["panels"]) == 4
    for panel in chart["panels"]:
        n, T = int(panel["keys"]["n"]), int(panel["keys"]["T"].replace(",", ""))
        assert set(panel["columns"]) == set(helpers.ADVERSARIES)
        for learner, line in zip(panel["learners"], panel["heat"], strict=True):
            for adversary, value in zip(panel["columns"], line, strict=True):
                case = panel["keys"] | {"adversary": adversary}
                rows = found.rows["sizes"].rows(found.names[learner], case, round=T)
                mean = np.mean(rows["relative_regret"]) / math.sqrt(n * T)
                assert value == pytest.approx(mean, **CLOSE)


def test_paired_comparisons(found):
    for name, rows in found.rows.items():
        for panel in found.charts[name]["paired"]["panels"]:
            n, T = int(panel["keys"]["n"]), int(panel["keys"]["T"].replace(",", ""))
            assert len(panel["rows"]) == {"sizes": 6, "tails": 1}[name]
            for i, j, mean, low, high, won, count in panel["rows"]:
                a, b = (
                    rows.rows(found.names[k], panel["keys"], round=T)["relative_regret"]
                    for k in (i, j)
                )
                difference = (b - a) / math.sqrt(n * T)
                interval = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
                assert mean == pytest.approx(difference.mean(), **CLOSE)
                assert [low, high] == pytest.approx([*interval], rel=1e-6, abs=1e-12)
                wins = sum(1.0 if d < 0 else 0.5 if d == 0 else 0.0 for d in difference)
                assert won == pytest.approx(wins / len(difference), **CLOSE)
                assert count == len(difference)


def test_the_table_of_bounds(found):
    rows = found.charts["tails"]["bounds"]["panels"][0]["rows"]
    assert [found.names[row[0]] for row in rows] == ["SCB", "Exp3IX"]
    for row, p in zip(rows, (None, 0.9), strict=True):
        stored = found.rows["tails"].rows(found.names[row[0]], {}, round=400)
        values = stored["relative_regret"] / math.sqrt(3 * 400)
        seen = np.mean(values) if p is None else helpers.quantile(values, p)
        assert row[5] == pytest.approx(seen, **CLOSE)
        assert row[8] == pytest.approx(seen / row[4], rel=1e-6)


# ---------------------------------------------------------------- MDPs


@pytest.fixture(scope="module")
def mdps():
    return prepared(helpers.mdp_rows(), helpers.MDP_LEARNERS, 5)


def test_slopes_in_the_size_of_mdps(mdps):
    chart = comparisons.slopes(mdps)
    assert "log(mean pseudo-regret / Σℓ∞)" in chart.note
    references = {panel.keys["slope in"]: panel.reference for panel in chart.panels}
    assert references == {"S": 1.5, "A": 0.5}
    states = next(panel for panel in chart.panels if panel.keys["slope in"] == "S")
    for series in states.series:
        small, large = (
            helpers.mdp_values(series.learner, round=100, actions=2, states=S)
            for S in (4, 8)
        )  # fmt: skip
        ratio = large["relative_pseudo_regret"].mean() / small["relative_pseudo_regret"].mean()
        assert series.mean[0] == pytest.approx(math.log2(ratio), **CLOSE)


def test_exploration(mdps):
    explored = comparisons.explored(mdps).panels[0]
    assert [(series.learner, series.mean) for series in explored.series] == [(0, [50.0])]
    reach = comparisons.reach(mdps).panels[0]
    values = helpers.mdp_values(0, round=100, cell="SCBRL-4-2-1")["reach"].astype(float)
    assert [series.learner for series in reach.series] == [0]
    assert reach.reference == 0.5
    assert reach.series[0].mean[0] == pytest.approx(values.mean(), **CLOSE)
    assert reach.series[0].low[0] == pytest.approx(helpers.quantile(values, 0.1), **CLOSE)
    assert reach.series[0].high[0] == pytest.approx(helpers.quantile(values, 0.9), **CLOSE)


def test_heat_map_and_pairs_of_mdps(mdps):
    heat = comparisons.heatmap(mdps)
    assert heat.note.startswith("Mean pseudo-regret at the last round")
    own = helpers.mdp_values(0, round=100, cell="SCBRL-4-2-1")["relative_pseudo_regret"]
    other = helpers.mdp_values(1, round=100, cell="UOBREPS-4-2-1")["relative_pseudo_regret"]
    norm = 4 * math.sqrt(2 * 100)
    assert heat.panels[0].heat[0][0] == pytest.approx(own.mean() / norm, **CLOSE)
    pairs = comparisons.paired(mdps)
    assert "with less pseudo-regret than the reference" in pairs.note
    i, j, mean, *_, count = pairs.panels[0].rows[0]
    assert (i, j, count) == (0, 1, 5)
    assert mean == pytest.approx((other - own).mean() / norm, **CLOSE)


def test_what_a_view_would_need(mdps):
    assert comparisons.bounds(mdps) == "needs learners with a bound that has constants"
    alone = prepared(
        helpers.mdp_rows().filter(helpers.mdp_rows()["cell"] == "UOBREPS-4-2-1"),
        helpers.MDP_LEARNERS, 5,
    )  # fmt: skip
    assert comparisons.paired(alone) == "needs two learners"
    assert comparisons.explored(alone) == "needs rows with explored"
    assert comparisons.slopes(alone) == "needs several rounds, arms, states or actions"
