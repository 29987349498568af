"""Experiments with MDPs: rows are those of the simulator, however the work is cut up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("msgspec")

import polars as pl
from unbounded.adversaries.mdps.kinds import MDPAdversary
from unbounded.mdps.baselines import UniformPolicy

from unbounded import SCBRL, UOBREPS, TsallisINF, lab, simulate, worlds
from unbounded.adversaries import StochasticGap
from unbounded.lab import config, grid, task
from unbounded.play.simulate_mdp import simulate_mdp

LOCK = {"name": "combination_lock", "horizon": 3, "n_actions": 2, "seed": 72}
DOCUMENT = {
    "learners": [
        {"name": "SCBRL", "clip": ["scale", "range"]},
        {"name": "UOBREPS", "loss_range": "true"},
        {"name": "RFELP", "episodes": 20, "early_stop": [0, 4]},
    ],
    "adversaries": [{"name": "MDPAdversary", "kind": ["stochastic", "hide"], "scale": 4.0}],
    "worlds": [LOCK, {"name": "dirichlet", "sizes": [2, 3], "n_actions": 2}],
    "episodes": 300,
    "replicates": 5,
    "checkpoints": [60, 300],
    "seed": 3,
}
EXPERIMENT = config.experiment(DOCUMENT)
MDP = worlds.combination_lock(3, 2, np.random.default_rng(72))


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(lab.TIMING)


@pytest.fixture(scope="module")
def reference() -> pl.DataFrame:
    return plain(lab.run(EXPERIMENT, engine="serial"))


def cell(frame: pl.DataFrame, learner: str, settings: str, kind: str) -> pl.DataFrame:
    return frame.filter(
        (pl.col("learner") == learner)
        & (pl.col("world") == "combination_lock")
        & pl.col("learner_settings").cast(pl.String).str.contains(settings, literal=True)
        & pl.col("adversary_settings").cast(pl.String).str.contains(kind)
    )


def test_rows_are_those_of_the_simulator(reference: pl.DataFrame) -> None:
    rows = cell(reference, "SCBRL", '"clip":"scale"', "hide")
    result = simulate_mdp(
        SCBRL([1, 2, 2], 2, 300, clip="scale"), MDP, MDPAdversary("hide", 4.0), 300, 5, 3,
        checkpoints=[60, 300],
    )  # fmt: skip
    assert rows["regret"].to_list() == result.regret.ravel().tolist()
    assert rows["pseudo_regret"].to_list() == result.regret.ravel().tolist()
    largest = np.maximum(np.abs(result.low), np.abs(result.high)).sum(axis=2)
    assert rows["relative_regret"].to_list() == pytest.approx((result.regret / largest).ravel())
    assert rows["clipped"].to_list() == result.clipped.ravel().tolist()
    assert rows["low"].to_list() == result.low.min(axis=2).ravel().tolist()
    assert rows["round"].to_list() == [60, 300] * 5
    last = rows.filter(pl.col("round") == 300)
    assert last["explored"].to_list() == result.explored.tolist()
    assert last["reach"].to_list() == result.reach.tolist()
    one = rows.row(0, named=True)
    assert (one["states"], one["actions"], one["horizon"], one["rounds"]) == (5, 2, 3, 300)
    assert one["arms"] is None
    assert one["threshold"] is None
    assert one["world_settings"] == '{"horizon":3,"n_actions":2,"seed":72,"slip":0.0}'


def test_exploration_is_shown_as_it_goes(reference: pl.DataFrame) -> None:
    rows = reference.filter((pl.col("learner") == "RFELP") & (pl.col("world") == "dirichlet"))
    never = rows.filter(pl.col("learner_settings").cast(pl.String).str.contains('"early_stop":0'))
    assert never["explored"].to_list() == [60, 100] * 10
    first, last = (never.filter(pl.col("round") == t)["reach"] for t in (60, 300))
    assert first.null_count() == 10  # not over yet
    assert last.is_between(0.0, 1.0 + 1e-12).all()
    stopped = rows.join(never, on="cell", how="anti")
    assert stopped.filter(pl.col("round") == 300)["explored"].max() < 100
    other = reference.filter(pl.col("learner") == "UOBREPS")
    assert other["reach"].null_count() == other.height
    assert set(other["explored"]) == {0}


@pytest.mark.parametrize("workers", [1, 2])
def test_local_workers_give_the_same(reference: pl.DataFrame, workers: int) -> None:
    assert plain(lab.run(EXPERIMENT, workers=workers)).equals(reference)


def test_disk_and_resume_give_the_same(reference: pl.DataFrame, tmp_path: Path) -> None:
    for replicates in (1, 4, 5):
        e = config.experiment(DOCUMENT | {"replicates": replicates})
        frame = lab.run(e, out=tmp_path, engine="serial")
        assert plain(frame).equals(reference.filter(pl.col("replicate") < replicates))
    assert lab.results(tmp_path).equals(frame)


def test_the_true_range_is_that_of_the_losses(reference: pl.DataFrame) -> None:
    rows = cell(reference, "UOBREPS", "true", "stochastic").filter(pl.col("round") == 300)
    adversary = MDPAdversary("stochastic", 4.0)
    for r in range(5):
        uniform = UniformPolicy([1, 2, 2], 2)
        met = simulate_mdp(uniform, MDP, adversary, 300, 1, 3, first_replicate=r)
        told = np.stack([met.low[0, -1], met.high[0, -1]], axis=1)
        learner = UOBREPS([1, 2, 2], 2, 300, loss_range=told)
        result = simulate_mdp(learner, MDP, adversary, 300, 1, 3, first_replicate=r)
        assert rows["regret"][r] == result.regret[0, -1]
    assert set(rows["clipped"]) == {0}


def test_the_true_range_of_bandits() -> None:
    frame = lab.run(
        {
            "learners": [{"name": "TsallisINF", "loss_range": ["true", [0.0, 1.0]]}],
            "adversaries": [{"name": "StochasticGap", "scale": 8.0, "shift": 2.0}],
            "arms": 4,
            "rounds": 500,
            "replicates": 3,
            "checkpoints": 4,
        },
        engine="serial",
    )
    told, wrong = frame.partition_by("cell", maintain_order=True)
    learner = TsallisINF(4, loss_range=(2.0, 10.0))
    result = simulate(learner, StochasticGap(scale=8.0, shift=2.0), 500, 3, 0, checkpoints=4)
    assert told["regret"].to_list() == result.regret.ravel().tolist()
    assert wrong["clipped"].sum() > told["clipped"].sum() == 0


def test_losses_that_are_all_zero() -> None:
    zeros = {"adversaries": [{"name": "MDPAdversary", "scale": 0.0}], "replicates": 1}
    frame = lab.run(DOCUMENT | zeros, engine="serial")
    assert set(frame["relative_regret"]) == {0.0}


def test_the_key_has_the_world_and_its_code() -> None:
    keys = {c.key for c in grid.cells(EXPERIMENT)}
    other = DOCUMENT | {"worlds": [{**LOCK, "seed": 73}]}
    assert not keys & {c.key for c in grid.cells(config.experiment(other))}
    same = DOCUMENT | {"worlds": [{**LOCK, "slip": 0.0}]}
    assert {c.key for c in grid.cells(config.experiment(same))} < keys
    assert task.code_version("SCBRL", "MDPAdversary", mdp=True) != task.code_version(
        "RFELP", "MDPAdversary", mdp=True
    )
