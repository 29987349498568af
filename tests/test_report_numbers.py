"""The numbers of a report, again from the Parquet files by other means."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("polars")

import polars as pl
from scipy import stats

import report_helpers as helpers
from unbounded.report import statistics, views
from unbounded.report.data import prepared

CLOSE = {"rel": 1e-7, "abs": 1e-12}  # the page keeps 8 digits
VIEWS = {
    "sizes": ["time", "rounds", "arms", "scale", "shift", "slopes", "thresholds", "heatmap",
              "bounds", "paired"],
    "tails": ["time", "slopes", "quantiles", "thresholds", "bounds", "paired"],
}  # fmt: skip


class Page:
    """A report's numbers beside its rows."""

    def __init__(self, out: Path) -> None:
        self.data = helpers.embedded(out / "report.html")
        self.names = self.data["learners"]
        charts = [section["charts"] for section in self.data["sections"]]
        self.charts = {
            name: {chart["view"]: chart for chart in one}
            for name, one in zip(VIEWS, charts, strict=True)
        }
        self.rows = {name: helpers.Stored(out / name) for name in VIEWS}

    def curves(self, name: str, view: str):
        """Each panel's keys with each of its curves and the rows that belong to it."""
        for panel in self.charts[name][view]["panels"]:
            for series in panel["series"]:
                learner = self.names[series["learner"]]
                yield panel["keys"], series, learner, panel


@pytest.fixture(scope="session")
def found(reported: Path) -> Page:
    return Page(reported)


def check(series, i, values):
    for name, value in helpers.statistics(values).items():
        assert series[name][i] == pytest.approx(value, **CLOSE)
    assert series["replicates"] == len(values)


def test_the_views_that_the_data_ask_for(found):
    assert {name: list(charts) for name, charts in found.charts.items()} == VIEWS
    assert found.names == list(helpers.LEARNERS)


@pytest.mark.parametrize("name", VIEWS)
def test_regret_over_time(found, name):
    count = 0
    for keys, series, learner, _ in found.curves(name, "time"):
        for i, t in enumerate(series["x"]):
            rows = found.rows[name].rows(learner, keys, round=t)
            check(series, i, rows["relative_regret"])
            count += 1
    assert count == {"sizes": 4 * 4 * 4 * 7, "tails": 2 * 3}[name]


@pytest.mark.parametrize("view", ["arms", "rounds"])
def test_normalised_regret(found, view):
    column = view
    for keys, series, learner, _ in found.curves("sizes", view):
        assert len(series["x"]) == 2
        for i, size in enumerate(series["x"]):
            rows = found.rows["sizes"].rows(learner, keys, **{column: size})
            last = rows["round"] == rows["rounds"]
            norm = np.sqrt(rows["arms"][last] * rows["rounds"][last])
            check(series, i, rows["relative_regret"][last] / norm)


@pytest.mark.parametrize(("view", "adversary"), [
    ("scale", {1e-6: "StochasticGap scale=1e-6", 1.0: "StochasticGap"}),
    ("shift", {0.0: "StochasticGap", 5.0: "StochasticGap shift=5"}),
])  # fmt: skip
def test_against_settings_of_the_adversary(found, view, adversary):
    for keys, series, learner, _ in found.curves("sizes", view):
        assert series["x"] == list(adversary)
        for i, size in enumerate(series["x"]):
            n, T = int(keys["n"]), int(keys["T"].replace(",", ""))
            case = keys | {"adversary": adversary[size]}
            rows = found.rows["sizes"].rows(learner, case, round=T)
            check(series, i, rows["relative_regret"] / math.sqrt(n * T))


def test_thresholds(found):
    learners = set()
    for keys, series, learner, _ in found.curves("sizes", "thresholds"):
        learners.add(learner)
        for i, t in enumerate(series["x"]):
            rows = found.rows["sizes"].rows(learner, keys, round=t)
            values = rows["threshold"][rows["threshold"] > 0.0]
            assert series["median"][i] == pytest.approx(helpers.quantile(values, 0.5), **CLOSE)
    assert learners == {"SCB", "SCB clip=range", "TsallisINF"}


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
        chosen = np.random.default_rng(statistics.SEED).integers(0, len(table), (1000, len(table)))
        resampled = table[chosen].mean(axis=1)
        if resampled.min() > 0.0:
            all_slopes = [helpers.slope(sizes, one) for one in resampled]
            assert series["low"][0] == pytest.approx(helpers.quantile(all_slopes, 0.025), **CLOSE)
            assert series["high"][0] == pytest.approx(helpers.quantile(all_slopes, 0.975), **CLOSE)
        else:
            assert series["low"] == [None]
    assert symbols == ({"T", "n"} if name == "sizes" else {"T"})


def test_tails(found):
    for keys, series, learner, _ in found.curves("tails", "quantiles"):
        rows = found.rows["tails"].rows(learner, keys, round=400)
        values = np.sort(rows["relative_regret"]) / math.sqrt(3 * 400)
        assert series["x"][0] == pytest.approx(math.log(2))
        assert series["x"][-1] == pytest.approx(math.log(150 / 10))
        for x, level, low, high in zip(
            series["x"], series["mean"], series["low"], series["high"], strict=True
        ):
            p = 1.0 - math.exp(-x)
            assert level == pytest.approx(helpers.quantile(values, p), rel=1e-6)
            assert low <= level <= high


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


def test_bounds_beside_the_curves(found):
    drawn = set()
    for view in ("time", "arms", "rounds", "scale"):
        for panel in found.charts["sizes"][view]["panels"]:
            for line in panel.get("bounds", []):
                learner = found.names[line["learner"]]
                drawn.add(learner)
                for x, y in zip(line["x"], line["y"], strict=True):
                    if view == "time":
                        n, t, norm = int(panel["keys"]["n"]), x, 1.0
                    else:
                        known = {"n": panel["keys"].get("n"), "T": panel["keys"].get("T")}
                        known |= {"arms": {"n": str(x)}, "rounds": {"T": str(x)}}.get(view, {})
                        n, t = (int(float(known[k].replace(",", ""))) for k in ("n", "T"))
                        norm = math.sqrt(n * t)
                    if learner == "SCB clip=range":
                        assert y * norm == pytest.approx(8 * math.sqrt(n * t) + 2 * n + 1, rel=1e-6)
                    elif learner == "TsallisINF" and panel["keys"]["adversary"] == "StochasticGap":
                        assert y * norm >= (4 * math.sqrt(n * t) + 1) * (1 - 1e-7)
                    assert y * norm < t
    assert drawn == {"SCB clip=range", "TsallisINF"}  # 27 sqrt(nT) is more than T here


def test_the_table_of_bounds(found):
    rows = found.charts["tails"]["bounds"]["panels"][0]["rows"]
    assert [found.names[row[0]] for row in rows] == ["SCB clip=range", "Exp3IX"]
    for row, p in zip(rows, (None, 0.9), strict=True):
        stored = found.rows["tails"].rows(found.names[row[0]], {}, round=400)
        values = stored["relative_regret"] / math.sqrt(3 * 400)
        seen = np.mean(values) if p is None else helpers.quantile(values, p)
        assert row[5] == pytest.approx(seen, **CLOSE)
        assert row[8] == pytest.approx(seen / row[4], rel=1e-6)


@pytest.mark.parametrize("count", [40, 150, 10_000])
def test_intervals_of_quantiles(count):
    values = np.arange(count, dtype=float)  # so that an order statistic is its own place
    deltas = statistics.tail_levels(count)
    assert deltas[-1] == pytest.approx(min(10 / count, 0.5))
    for delta, low, high in zip(
        deltas, *statistics.tail_quantiles(values, deltas)[1:], strict=True
    ):
        below = stats.binom(count, 1.0 - delta)  # how many values are below the true quantile
        certain = high == count - 1  # nothing larger was seen: no upper end can be given
        chance = (1.0 if certain else below.cdf(high)) - below.cdf(low)
        assert 0.94 < chance < (1.0 if certain or delta * count < 30 else 0.98)


def test_student_and_resampling():
    for freedom in (1, 2, 3, 4, 9, 10, 49, 500, 1999):
        assert statistics.student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)
    rng = np.random.default_rng(0)
    x = np.array([1.0, 10.0, 100.0])
    exact = np.outer(np.ones(5), 3.0 * x**0.5)
    assert statistics.slope_interval(x, exact) == pytest.approx((0.5, 0.5, 0.5))
    assert math.isnan(statistics.slope_interval(x, exact - 4.0)[0])
    inside = 0
    for _ in range(200):  # the interval of the bootstrap holds the truth about as often as it says
        low, high = statistics.slope_interval(x, exact[:1] * rng.gamma(4.0, 0.25, (40, 3)))[1:]
        inside += low <= 0.5 <= high
    assert 170 <= inside <= 199


# ---------------------------------------------------------------- MDPs

LEARNER, OTHER = ("SCBRL", '{"profile":"practical"}'), ("UOBREPS", "{}")


def mdp_rows() -> pl.DataFrame:
    """Of two learners in worlds of S = 4, 8 (A = 2) and A = 4 (S = 4), two worlds of each size."""
    rng = np.random.default_rng(5)
    rows = []
    for learner, settings in (LEARNER, OTHER):
        for S, A, world in itertools.product((4, 8), (2, 4), (1, 2)):
            if (S, A) == (8, 4):
                continue
            for replicate, t in itertools.product(range(5), (10, 100)):
                rows.append(
                    {"cell": f"{learner}-{S}-{A}-{world}", "learner": learner,
                     "learner_settings": settings, "adversary": "Stochastic",
                     "adversary_settings": "{}", "world": "dirichlet",
                     "world_settings": json.dumps({"sizes": [S], "n_actions": A, "seed": world}),
                     "states": S, "actions": A, "horizon": 2, "arms": None, "rounds": 100,
                     "replicate": replicate, "round": t,
                     "relative_regret": rng.gamma(4.0) * S * math.sqrt(A * t),
                     "low": -1.0, "high": 1.0, "threshold": None,
                     "explored": t // 2 if learner == "SCBRL" else None,
                     "reach": rng.random() if learner == "SCBRL" and t == 100 else None}
                )  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"arms": pl.Int64, "threshold": pl.Float64})


def test_mdps():
    frame = mdp_rows()
    data = prepared(frame, {LEARNER: 0, OTHER: 1}, 5)
    assert data.mdp
    charts = {chart.view: chart for chart in views.charts(data)}
    asked_for = "time states actions slopes explored reach heatmap paired"
    assert " ".join(charts) == asked_for
    rows = frame.to_dict(as_series=False)
    rows = {name: np.array(values) for name, values in rows.items()}

    def chosen(learner, **equal):
        keep = rows["learner"] == ("SCBRL", "UOBREPS")[learner]
        for name, value in equal.items():
            keep &= rows[name] == value
        return {name: values[keep] for name, values in rows.items()}

    for view, x, fixed in (("states", (4, 8), {"actions": 2}), ("actions", (2, 4), {"states": 4})):
        first = charts[view].panels[0]
        for series in first.series:
            assert series.x == [*x]
            assert series.replicates == 10  # two worlds of five
            for i, size in enumerate(x):
                own = chosen(series.learner, round=100, **{view: size}, **fixed)
                norm = own["states"] * np.sqrt(own["actions"] * 100)
                check(msgspec.to_builtins(series), i, own["relative_regret"] / norm)
    assert {panel.keys["slope in"]: panel.reference for panel in charts["slopes"].panels} == {
        "S": 1.5, "A": 0.5}  # fmt: skip
    states = next(p for p in charts["slopes"].panels if p.keys["slope in"] == "S")
    for series in states.series:
        means = [
            chosen(series.learner, round=100, actions=2, states=S)["relative_regret"].mean()
            for S in (4, 8)
        ]
        assert series.mean[0] == pytest.approx(math.log2(means[1] / means[0]), **CLOSE)
    assert charts["explored"].panels[0].series[0].mean == [50.0]
    reach = charts["reach"].panels[0]
    own = chosen(0, round=100, states=4, actions=2)
    first_world = own["reach"][own["cell"] == "SCBRL-4-2-1"].astype(float)
    assert [series.learner for series in reach.series] == [0]
    assert reach.series[0].mean[0] == pytest.approx(first_world.mean(), **CLOSE)
    assert "S √(AT)" in charts["states"].y.label
    assert charts["paired"].panels[0].rows[0][-1] == 5
