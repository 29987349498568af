"""The curves of a report, again from the Parquet files by other means."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from report_helpers import CLOSE, check
from unbounded.report import curves
from unbounded.report.data import prepared


@pytest.mark.parametrize("name", helpers.VIEWS)
def test_regret_over_time(found, name):
    count = 0
    for keys, series, learner, _ in found.curves(name, "time"):
        for i, t in enumerate(series["x"]):
            rows = found.rows[name].rows(learner, keys, round=t)
            check(series, i, rows["relative_regret"])
            count += 1
    assert count == {"sizes": 4 * 4 * 4 * 7, "tails": 2 * 3}[name]


@pytest.mark.parametrize("view", ["arms", "rounds"])
def test_normalized_regret(found, view):
    column = view
    for keys, series, learner, _ in found.curves("sizes", view):
        assert len(series["x"]) == 2
        for i, size in enumerate(series["x"]):
            rows = found.rows["sizes"].rows(learner, keys, **{column: size})
            last = rows["round"] == rows["rounds"]
            norm = np.sqrt(rows["arms"][last] * rows["rounds"][last])
            check(series, i, rows["relative_regret"][last] / norm)


DEFAULT = ("StochasticGap scale=1, shift=0", "StochasticGap")  # the second without the x axis


@pytest.mark.parametrize(("view", "adversary"), [
    ("scale", {1e-6: "StochasticGap scale=1e-6", 1.0: DEFAULT[0]}),
    ("shift", {0.0: DEFAULT[0], 5.0: "StochasticGap shift=5"}),
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
    assert learners == {"SCB profile=paper", "SCB", "TsallisINF"}


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
                    if learner == "SCB":
                        assert y * norm == pytest.approx(7 * math.sqrt(n * t) + 4 * n + 1, rel=1e-6)
                    elif learner == "TsallisINF" and panel["keys"]["adversary"] in DEFAULT:
                        assert y * norm >= (4 * math.sqrt(n * t) + 1) * (1 - 1e-7)
                    assert y * norm < t
    assert drawn == {"SCB", "TsallisINF"}  # 27 sqrt(nT) is more than T here


def test_axes_name_the_regret(found):
    charts = found.charts["sizes"]
    assert charts["time"]["y"]["label"] == "regret / range"
    assert charts["time"]["note"].startswith("Realized regret over rounds 1..t, divided by the ran")
    assert charts["arms"]["y"]["label"] == "regret / (range · √(nT))"


@pytest.mark.parametrize(
    ("view", "sizes", "fixed"),
    [("states", [4, 8], {"actions": 2}), ("actions", [2, 4], {"states": 4})],
)
def test_pseudo_regret_against_the_size_of_mdps(view, sizes, fixed):
    data = prepared(helpers.mdp_rows(), helpers.MDP_LEARNERS, 5)
    chart = getattr(curves, view)(data)
    assert chart.y.label == "pseudo-regret / (Σℓ∞ · S √(AT))"
    assert chart.note.startswith("Pseudo-regret at the last round")
    for series in chart.panels[0].series:
        assert series.x == sizes
        assert series.replicates == 10  # two worlds of five
        for i, size in enumerate(sizes):
            own = helpers.mdp_values(series.learner, round=100, **{view: size}, **fixed)
            norm = own["states"] * np.sqrt(own["actions"] * 100)
            check(msgspec.to_builtins(series), i, own["relative_pseudo_regret"] / norm)


def test_pseudo_regret_of_mdps_over_time():
    chart = curves.time(prepared(helpers.mdp_rows(), helpers.MDP_LEARNERS, 5))
    assert chart.title == "Pseudo-regret over time"
    assert chart.y.label == "pseudo-regret / Σℓ∞"
    assert "over episodes 1..t, divided by Σℓ∞" in chart.note
    first = chart.panels[0]
    for series in first.series:
        name = ("SCBRL", "UOBREPS")[series.learner]
        for i, t in enumerate((10, 100)):
            own = helpers.mdp_values(series.learner, round=t, cell=f"{name}-4-2-1")
            check(msgspec.to_builtins(series), i, own["relative_pseudo_regret"])
