"""Rows that are ready to be grouped: what is divided by what, and which rows are taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("polars")

import polars as pl

import report_helpers as helpers
from unbounded.report import data as module
from unbounded.report import source
from unbounded.report.data import Data, by_replicate, losses_of, prepared


def of(results: source.Results) -> Data:
    kinds = results.frame.select(pl.col("learner", "learner_settings").cast(pl.String))
    variants = kinds.unique(maintain_order=True).rows()
    ids = {variant: 10 + i for i, variant in enumerate(variants)}
    return prepared(results.frame, ids, results.experiment.replicates)


@pytest.fixture(scope="module")
def sizes(reported) -> Data:
    return of(source.read(reported / "sizes"))


def test_names_are_positions(sizes):
    assert sizes.kind == "bandits"
    assert list(sizes.learners) == [10, 11, 12, 13]
    assert [name for name, _ in sizes.learners.values()] == ["SCB", "SCB", "TsallisINF", "Uniform"]
    assert set(sizes.frame["learner"]) == {10, 11, 12, 13}
    assert sizes.frame["adversary"].max() == len(sizes.adversaries) - 1 == 3
    assert sizes.names["adversary"] == [
        "StochasticGap scale=1e-6", "StochasticGap scale=1, shift=0", "StochasticGap shift=5",
        "SpikeLeastLikely",
    ]  # fmt: skip
    assert sizes.names["world"] == []
    assert sizes.keys({"adversary": 1, "arms": 3, "rounds": 1200}) == {
        "adversary": "StochasticGap scale=1, shift=0", "n": "3", "T": "1,200"}  # fmt: skip


def test_regret_is_divided_by_range_and_rate_at_each_round(sizes, reported):
    stored = source.read(reported / "sizes").frame
    assert sizes.frame["relative"].equals(stored["relative_regret"], check_names=False)
    norm = np.sqrt(stored["arms"].to_numpy() * stored["round"].to_numpy())
    assert sizes.frame["norm"].to_list() == pytest.approx(norm.tolist())
    last = stored.filter(pl.col("round") == pl.col("rounds"))
    assert sizes.last.height == last.height
    value = last["relative_regret"] / (last["arms"] * last["rounds"]).sqrt()
    assert sizes.last["value"].to_list() == pytest.approx(value.to_list())


def test_what_is_known_of_the_losses(sizes, reported):
    stored = source.read(reported / "sizes").frame
    low, high = stored["low"].to_numpy(), stored["high"].to_numpy()
    wide = high > low
    size = np.maximum(np.abs(low), np.abs(high))[wide] / (high - low)[wide]
    assert sizes.frame.filter(pl.Series(wide))["size"].to_list() == pytest.approx(size.tolist())
    inverse = 1.0 / (high - low)[wide]
    found = sizes.frame.filter(pl.Series(wide))["inverse_range"].to_list()
    assert found == pytest.approx(inverse.tolist())
    assert sizes.frame.filter(pl.Series(~wide))["size"].null_count() == (~wide).sum()
    losses = losses_of({"low_loss": -1.0, "high_loss": 2.0, "size": None, "inverse_range": 0.5})
    assert (losses.low, losses.high, losses.inverse_range) == (-1.0, 2.0, 0.5)
    assert math.isnan(losses.size)
    over = sizes.grouped(["adversary"])
    assert over["high_loss"].max() == sizes.last["high_loss"].max()
    assert over["low_loss"].min() == sizes.last["low_loss"].min()


def test_bands_hold_the_middle_of_the_replicates(sizes):
    row = sizes.grouped(sizes.case).row(0, named=True)
    own = sizes.last.filter(
        pl.col("learner") == row["learner"],
        *(pl.col(column) == row[column] for column in sizes.case),
    )["value"].to_numpy()
    assert own.size == row["count"] == 6
    expected = helpers.statistics(own)
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_mdps_have_pseudo_regret():
    frame = helpers.mdp_rows()
    data = prepared(frame, helpers.MDP_LEARNERS, 5)
    assert data.kind == "MDPs"
    assert data.frame["relative"].equals(frame["relative_pseudo_regret"], check_names=False)
    norm = frame["states"] * (frame["actions"].cast(pl.Float64) * frame["round"]).sqrt()
    assert data.frame["norm"].to_list() == pytest.approx(norm.to_list())
    assert data.case == ["adversary", "world", "rounds"]
    assert (data.regret, data.unit, data.bounds) == ("pseudo-regret", "Σℓ∞", {})
    assert len(data.names["world"]) == 6


def test_many_checkpoints_are_thinned_from_the_last_on(sizes, monkeypatch):
    points = sizes.frame.select("cell", "round").unique().height
    monkeypatch.setattr(module, "MOST_POINTS", math.ceil(points / 4))
    thin = Data(sizes.frame, sizes.learners, sizes.adversaries, sizes.worlds, "bandits", 6)
    assert thin.every == 4
    shown = thin.thinned(thin.frame).group_by("cell").agg(pl.col("round").unique().sort())
    every = thin.frame.group_by("cell").agg(pl.col("round").unique().sort())
    for (_, some), (_, whole) in zip(
        shown.sort("cell").iter_rows(), every.sort("cell").iter_rows(), strict=True
    ):
        assert some == whole[::-1][::4][::-1] != whole[::4]


def test_by_replicate_has_nan_where_there_is_none():
    rows = pl.DataFrame({"replicate": [4, 4, 7], "x": [1, 2, 2], "value": [0.1, 0.2, 0.3]})
    kinds, values = by_replicate(rows, "x", "value")
    assert kinds.tolist() == [1, 2]
    assert values[0].tolist() == [0.1, 0.2]
    assert math.isnan(values[1, 0])
    assert values[1, 1] == 0.3


def test_no_rows_at_all(reported):
    empty = source.read(reported / "sizes").frame.clear()
    data = prepared(empty, {}, 3)
    assert (data.kind, data.learners, list(data.adversaries)) == ("bandits", {}, [])
