"""The ranking, again from the Parquet files; and what the sentence says of it."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("polars")

import polars as pl
from scipy.stats import t as student

import report_helpers as helpers
from report_helpers import CLOSE
from unbounded import experiments
from unbounded.report import contents
from unbounded.report.comparisons import _differ, _ranked, answer, ranking
from unbounded.report.data import prepared
from unbounded.report.model import Series


def worst(found, learner, keys):
    """The adversaries against which the mean is largest, and the values there."""
    n, T = int(keys["n"]), int(keys["T"].replace(",", ""))
    cases = {}
    for adversary in helpers.ADVERSARIES:
        rows = found.rows["sizes"].rows(learner, keys | {"adversary": adversary}, round=T)
        cases[adversary] = rows["relative_regret"] / math.sqrt(n * T)
    most = max(values.mean() for values in cases.values())
    there = [name for name, values in cases.items() if math.isclose(values.mean(), most)]
    return there, cases[there[0]]


def test_ranking(found):
    chart = found.charts["sizes"]["ranking"]
    assert len(chart["panels"]) == 4
    for panel in chart["panels"]:
        means = []
        for series, against in zip(panel["series"], panel["columns"], strict=True):
            where, values = worst(found, found.names[series["learner"]], panel["keys"])
            half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
            assert series["mean"] == [pytest.approx(values.mean(), **CLOSE)]
            assert series["low"] == [pytest.approx(values.mean() - half, rel=1e-6)]
            assert series["high"] == [pytest.approx(values.mean() + half, rel=1e-6)]
            assert against in where  # another scale is the same case
            means += series["mean"]
        assert means == sorted(means)
        assert len(means) == 4


def test_learners_are_ranked_where_all_of_them_have_played():
    """Only one of them met the adversary against whom its regret is largest."""

    class Data:
        case = ("adversary",)
        names: ClassVar = {"adversary": {0: "all", 1: "one"}}

        def keys(self, case: object) -> dict[str, str]:
            return {}

    played = [(0, 0, 1.0), (0, 0, 1.2), (1, 0, 2.0), (1, 0, 2.2), (0, 1, 9.0), (0, 1, 9.2)]
    rows = pl.DataFrame(played, schema=["learner", "adversary", "value"], orient="row")
    panel = _ranked(Data(), {}, rows)
    assert [series.learner for series in panel.series] == [0, 1]
    assert list(panel.columns) == ["all", "all"]
    assert panel.series[0].mean == [pytest.approx(1.1)]


def test_the_sentence_says_what_the_ranking_shows(reported, found):
    section = contents(reported).sections[0]
    chart = section.charts[0]
    best, second = chart.panels[chart.start].series[:2]
    assert chart.panels[chart.start].keys == {"n": "8", "T": "1,200"}
    assert section.answer.startswith(
        f"{found.names[best.learner]} has the smallest worst-case regret (against "
        f"{chart.panels[chart.start].columns[0]}) of 4 learners: {best.mean[0]:.3g} × "
        "range · √(nT), n = 8, T = 1,200. "
        f"Next is {found.names[second.learner]} with {second.mean[0]:.3g}"
    )
    doubtful = "; the difference is not statistically significant."
    half = [one.high[0] - one.mean[0] for one in (best, second)]
    significant = second.mean[0] - best.mean[0] > math.hypot(*half)
    assert (doubtful in section.answer) == (not significant)
    assert "in 2 of 2 units of the losses for SCB profile=paper, SCB and Uniform;" in section.answer


def test_who_was_given_the_range_is_named(tmp_path):
    told = {
        "learners": [{"name": "Uniform"}, {"name": "TsallisINF", "loss_range": [0.0, 1.0]}],
        "adversaries": [{"name": "StochasticGap", "gap": 0.4}],
        "arms": 2, "rounds": 2000, "replicates": 4, "checkpoints": 2,
    }  # fmt: skip
    experiments.run(told, out=tmp_path, engine="serial")
    section = contents(tmp_path).sections[0]
    assert "has the smallest mean regret against StochasticGap of 2 learners" in section.answer
    assert "was given the range of the losses; of those that were not, Uniform is" in section.answer


def test_only_cases_that_all_have_met_count():
    rows = helpers.mdp_rows()
    data = prepared(rows, helpers.MDP_LEARNERS, 5)
    chart = ranking(data)
    assert [s.replicates for s in chart.panels[0].series] == [5, 5]
    easy = rows.filter((rows["learner"] == "SCBRL") | (rows["actions"] == 4))
    short = ranking(prepared(easy, helpers.MDP_LEARNERS, 5))
    values = [
        max(
            np.mean(mine / (4 * math.sqrt(4 * 100)))
            for world in (1, 2)
            for rows in [helpers.mdp_values(i, actions=4, round=100)]
            for mine in [rows["relative_pseudo_regret"][_is(rows, world)]]
        )
        for i in (0, 1)
    ]
    assert sorted(s.mean[0] for s in short.panels[0].series) == pytest.approx(sorted(values))


def _is(rows, world):
    return np.array([f'"seed": {world}' in text for text in rows["world_settings"]])


def test_one_learner_has_no_rank():
    rows = helpers.mdp_rows()
    data = prepared(rows.filter(rows["learner"] == "SCBRL"), helpers.MDP_LEARNERS, 5)
    assert ranking(data) == "needs two learners"
    assert answer(data, ranking(data), ["SCBRL", "UOBREPS"]) == ""


def test_intervals_that_overlap_may_still_differ():
    def dot(mean, half):
        return Series(0, [], [mean], [mean - half], [mean + half])

    assert not _differ(dot(1.0, 0.4), dot(1.5, 0.4))
    assert _differ(dot(1.0, 0.4), dot(1.6, 0.4))  # they overlap, and the means differ
    assert not _differ(Series(0, [], [1.0], [None], [None]), dot(9.0, 0.1))  # one replicate
