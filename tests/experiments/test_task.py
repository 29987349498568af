"""What a worker does: the rows are those of the simulators, however the work is cut up."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("msgspec")

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import experiment_helpers as helpers
from paces import forget
from tiers import first_only
from unbounded import SCB, SCBRL, UOBREPS, TsallisINF, UniformPolicy, experiments, simulate, worlds
from unbounded.adversaries import StochasticGap
from unbounded.adversaries.mdps import Hide, Stochastic
from unbounded.experiments import config, grid, provenance, task
from unbounded.experiments.task import Span
from unbounded.jit.schedule import Code
from unbounded.simulation.mdp import simulate_mdp

BANDITS = config.experiment(helpers.PAIR)
MDPS = config.experiment(helpers.WORLDS)
LOCK = worlds.combination_lock(3, 2, np.random.default_rng(72))


@pytest.fixture(scope="module")
def bandits() -> pl.DataFrame:
    return experiments.run(BANDITS, engine="serial").drop(experiments.TIMING)


@pytest.fixture(scope="module")
def mdps() -> pl.DataFrame:
    return experiments.run(MDPS, engine="serial").drop(experiments.TIMING)


def cell(frame: pl.DataFrame, learner: str, settings: str, adversary: str) -> pl.DataFrame:
    return frame.filter(
        (pl.col("learner") == learner)
        & (pl.col("world") == "combination_lock")
        & pl.col("learner_settings").cast(pl.String).str.contains(settings, literal=True)
        & (pl.col("adversary") == adversary)
    )


def test_rows_are_those_of_simulate(bandits: pl.DataFrame) -> None:
    result = simulate(
        SCB(20, clip="range"), StochasticGap(gap=0.2), 3000, 12, seed=7, checkpoints=5
    )
    rows = bandits.filter(
        (pl.col("learner") == "SCB")
        & (pl.col("learner_settings").cast(pl.String).str.contains('"clip":"range"'))
        & (pl.col("adversary") == "StochasticGap")
        & (pl.col("arms") == 20)
    )
    assert rows["regret"].to_list() == result.regret.ravel().tolist()
    assert rows["pseudo_regret"].to_list() == result.pseudo_regret.ravel().tolist()
    assert rows["clipped"].to_list() == result.clipped.ravel().tolist()
    assert rows["round"].to_list()[:5] == result.checkpoints.tolist()


@given(st.sets(st.integers(1, 11)))
@settings(deadline=None, max_examples=20)
def test_replicates_do_not_depend_on_how_they_are_cut(cuts: set[int]) -> None:
    learner, adversary = SCB(4), StochasticGap()
    whole = simulate(learner, adversary, 200, 12, seed=3, checkpoints=[200])
    edges = [0, *sorted(cuts), 12]
    parts = [
        simulate(learner, adversary, 200, b - a, seed=3, checkpoints=[200], first_replicate=a)
        for a, b in itertools.pairwise(edges)
    ]
    regrets = np.concatenate([part.regret for part in parts])
    assert regrets.tolist() == whole.regret.tolist()
    last = parts[-1]
    assert last.seed(0).spawn_key == whole.seed(edges[-2]).spawn_key


def test_learners_face_the_same_losses() -> None:
    """In round 1 every learner is uniform, so pseudo-regret is a fingerprint of the losses."""
    e = helpers.PAIR | {"arms": 50, "checkpoints": [1], "replicates": 10}
    frame = experiments.run(e, engine="serial").filter(pl.col("adversary") == "StochasticGap")
    prints = frame.group_by("replicate").agg(
        pl.len(), pl.col("regret").n_unique(), pl.col("pseudo_regret").n_unique()
    )
    assert prints["len"].to_list() == [3] * 10
    assert prints["regret"].to_list() == [1] * 10
    assert prints["pseudo_regret"].to_list() == [1] * 10
    assert frame["pseudo_regret"].n_unique() > 5


def test_cells_of_different_settings_are_paired() -> None:
    """A scale-free learner repeats itself exactly when the same losses are 2^20 times larger."""
    e = helpers.PAIR | {
        "learners": [{"name": "SCB"}],
        "adversaries": [{"name": "StochasticGap", "scale": [1.0, 2.0**20]}],
        "arms": 5,
    }
    small, large = experiments.run(e, engine="serial").partition_by("cell")
    assert small["relative_regret"].to_list() == large["relative_regret"].to_list()
    assert small["relative_regret"].n_unique() > 10


def test_a_real_error_is_recorded_with_its_traceback() -> None:
    plan = grid.cells(BANDITS)
    settings = plan[0].settings._replace(arms=-3)
    good, bad = task.run([(Span(0, 0, 1), plan[0].settings), (Span(1, 0, 1), settings)])
    assert not good.error
    assert bad.error == "ArgumentValueError: n_arms must be at least 1, got -3"
    assert "Traceback" in bad.traceback


def test_rows_are_those_of_the_simulator(mdps: pl.DataFrame) -> None:
    rows = cell(mdps, "SCBRL", '"clip":"scale"', "Hide")
    result = simulate_mdp(
        SCBRL([1, 2, 2], 2, 300, reading={"clip": "scale"}), LOCK, Hide(scale=4.0), 300, 5, 3,
        checkpoints=[60, 300],
    )  # fmt: skip
    realized, expected = result.regret, result.pseudo_regret
    assert rows["regret"].to_list() == realized.ravel().tolist()
    assert rows["pseudo_regret"].to_list() == expected.ravel().tolist()
    assert rows["regret"].to_list() != rows["pseudo_regret"].to_list()
    largest = np.maximum(np.abs(result.low), np.abs(result.high)).sum(axis=2)
    assert rows["relative_regret"].to_list() == pytest.approx((realized / largest).ravel())
    assert rows["relative_pseudo_regret"].to_list() == pytest.approx((expected / largest).ravel())
    assert rows["clipped"].to_list() == result.clipped.ravel().tolist()
    assert rows["low"].to_list() == result.low.min(axis=2).ravel().tolist()
    assert rows["round"].to_list() == [60, 300] * 5
    last = rows.filter(pl.col("round") == 300)
    assert last["explored"].to_list() == result.explored.tolist()
    reach = [None if np.isnan(x) else x for x in result.reach.tolist()]  # no policy for a state
    assert last["reach"].to_list() == reach
    one = rows.row(0, named=True)
    assert (one["states"], one["actions"], one["horizon"], one["rounds"]) == (5, 2, 3, 300)
    assert one["arms"] is None
    assert one["threshold"] is None
    assert one["world_settings"] == '{"horizon":3,"n_actions":2,"seed":72,"slip":0.0}'


def test_exploration_is_shown_as_it_goes(mdps: pl.DataFrame) -> None:
    rows = mdps.filter((pl.col("learner") == "RFELP") & (pl.col("world") == "dirichlet"))
    never = rows.filter(pl.col("learner_settings").cast(pl.String).str.contains('"early_stop":0'))
    assert never["explored"].to_list() == [60, 100] * 10
    first, last = (never.filter(pl.col("round") == t)["reach"] for t in (60, 300))
    assert first.null_count() == 10  # not over yet
    assert last.is_between(0.0, 1.0 + 1e-12).all()
    stopped = rows.join(never, on="cell", how="anti")
    assert stopped.filter(pl.col("round") == 300)["explored"].max() < 100
    other = mdps.filter(pl.col("learner") == "UOBREPS")
    assert other["reach"].null_count() == other.height
    assert set(other["explored"]) == {0}


@pytest.mark.parametrize("workers", [1, 2])
def test_local_workers_give_the_same(mdps: pl.DataFrame, workers: int) -> None:
    assert experiments.run(MDPS, workers=workers).drop(experiments.TIMING).equals(mdps)


def test_disk_and_resume_give_the_same(mdps: pl.DataFrame, tmp_path: Path) -> None:
    for replicates in (1, 4, 5):
        e = config.experiment(helpers.WORLDS | {"replicates": replicates})
        frame = experiments.run(e, out=tmp_path, engine="serial")
        assert frame.drop(experiments.TIMING).equals(mdps.filter(pl.col("replicate") < replicates))
    assert experiments.results(tmp_path).equals(frame)


def test_the_true_range_is_that_of_the_losses(mdps: pl.DataFrame) -> None:
    rows = cell(mdps, "UOBREPS", "true", "Stochastic").filter(pl.col("round") == 300)
    adversary = Stochastic(scale=4.0)
    for r in range(5):
        uniform = UniformPolicy([1, 2, 2], 2)
        met = simulate_mdp(uniform, LOCK, adversary, 300, 1, 3, first_replicate=r)
        told = np.stack([met.low[0, -1], met.high[0, -1]], axis=1)
        learner = UOBREPS([1, 2, 2], 2, 300, loss_range=told)
        result = simulate_mdp(learner, LOCK, adversary, 300, 1, 3, first_replicate=r)
        assert rows["pseudo_regret"][r] == result.pseudo_regret[0, -1]
    assert set(rows["clipped"]) == {0}


def test_the_range_of_an_adversary_that_looks_is_told_for_every_layer(mdps: pl.DataFrame) -> None:
    rows = cell(mdps, "UOBREPS", "true", "Hide").filter(pl.col("round") == 300)
    adversary = Hide(scale=4.0)
    met = simulate_mdp(UniformPolicy([1, 2, 2], 2), LOCK, adversary, 300, 5, 3, checkpoints=[300])
    assert np.ptp(met.low) > 0  # it did not do the same in every layer
    for r in range(5):
        widest = float(met.low[r].min()), float(met.high[r].max())
        learner = UOBREPS([1, 2, 2], 2, 300, loss_range=widest)
        result = simulate_mdp(learner, LOCK, adversary, 300, 1, 3, first_replicate=r)
        assert rows["pseudo_regret"][r] == result.pseudo_regret[0, -1]


def test_a_range_that_is_empty_is_made_wider() -> None:
    constant = {"name": "Replay", "losses": [[3.0, 3.0]] * 50}
    frame = experiments.run(
        {
            "learners": [{"name": "TsallisINF", "loss_range": "true"}],
            "adversaries": [constant],
            "arms": 2,
            "rounds": 50,
            "replicates": 2,
        },
        engine="serial",
    )
    assert frame.height > 0
    assert set(frame["clipped"]) == {0}


def test_pseudo_regret_is_followed_if_it_is_wanted() -> None:
    pseudo = {"pseudo_regret", "relative_pseudo_regret"}
    cells = grid.cells(BANDITS)[0].settings, grid.cells(MDPS)[0].settings
    for own, follows in zip(cells, (False, True), strict=True):
        wanted = own._replace(rounds=60, checkpoints=[60])
        assert pseudo < set(task.play(wanted, 0, 1))
        unwanted = wanted._replace(pseudo_regret=False)
        assert (pseudo < set(task.play(unwanted, 0, 1))) == follows


def test_the_code_of_bandits_and_of_mdps() -> None:
    settings = grid.cells(BANDITS)[0].settings
    bandits = {
        task.code_version(settings._replace(learner=learner, adversary=adversary))
        for learner in ("SCB", "AHB")
        for adversary in ("Switch", "SpikeLeastLikely")
    }
    assert len(bandits) == 4
    assert not bandits & {task.code_version(cell.settings) for cell in grid.cells(MDPS)}


@pytest.mark.parametrize(("fingerprint", "parses"), [(None, False), ("of other files", True)])
def test_a_worker_with_the_same_files_parses_none(
    fingerprint: str | None, parses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = grid.cells(BANDITS)[0].settings
    code, parsed = task.code_version(settings), task.parsed()
    if fingerprint:
        parsed = parsed._replace(fingerprint=fingerprint)
    seen = []
    monkeypatch.setattr(task, "_versions", {})  # as in a worker that has just begun
    monkeypatch.setattr(provenance, "package_hash", lambda module: seen.append(module) or "")
    [outcome] = task.run_with(parsed, task.run, [(Span(0, 0, 1), settings)])
    assert bool(seen) is parses
    assert (outcome.code == code) is not parses


def test_files_that_change_have_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "_PACKAGE", tmp_path)
    seen = set()
    for text in ("q = 1", "q = 1  # one", "q = 2"):
        (tmp_path / "a.py").write_text(text)
        seen.add(provenance.fingerprint.__wrapped__())
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    seen.add(provenance.fingerprint.__wrapped__())
    assert len(seen) == 4


def test_the_first_play_is_not_timed_and_a_round_is() -> None:
    settings = grid.cells(BANDITS)[0].settings
    [short] = task.warm([(settings._replace(rounds=2000), 2000)])
    [long] = task.warm([(settings._replace(rounds=200_000), 200_000)])
    # Wide of the mark on purpose: a busy machine is no fault, seconds for a whole run would be.
    assert 1e-9 < long.seconds_per_round < 1e-2
    assert short.seconds_per_round < 1e-1


@pytest.mark.parametrize(("rounds", "compiled"), [(1000, False), (100_000_000, True)])
def test_what_is_short_is_interpreted(
    rounds: int, compiled: bool, monkeypatch: pytest.MonkeyPatch, bandits: pl.DataFrame
) -> None:
    monkeypatch.setattr("unbounded.settings.jit", "auto")
    monkeypatch.setattr(Code, "load", lambda self: None)  # as if nothing were kept
    monkeypatch.setattr(task, "_loaded", set())
    forget(monkeypatch)
    settings = grid.cells(BANDITS)[0].settings
    [warmed] = task.warm([(settings, rounds)])
    assert all(part.loaded for part in task._parts(settings)) == compiled
    assert warmed.seconds_per_round > 0.0
    assert experiments.run(BANDITS, engine="serial").drop(experiments.TIMING).equals(bandits)


def test_the_true_range_of_bandits() -> None:
    frame = experiments.run(
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
    zeros = {"adversaries": [{"name": "Stochastic", "scale": 0.0}], "replicates": 1}
    frame = experiments.run(helpers.WORLDS | zeros, engine="serial")
    assert set(frame["relative_regret"]) == {0.0}


_KEYS = """
import json, sys
from unbounded.experiments import config, grid
bandits = {"learners": [{"name": "SCB"}], "adversaries": [{"name": "StochasticGap"}],
           "arms": 3, "rounds": 10}
mdps = {"learners": [{"name": "UniformPolicy"}], "adversaries": [{"name": "Hide"}],
        "worlds": [{"name": "combination_lock", "horizon": 2, "n_actions": 2}], "episodes": 10}
print(json.dumps([grid.cells(config.experiment(e))[0].key for e in (bandits, mdps)]))
"""


@pytest.mark.parametrize("every", first_only([False, True]))
def test_an_edit_of_what_makes_columns_changes_keys_and_an_edit_of_what_shows_them_does_not(
    tmp_path: Path, every: bool
) -> None:
    package = Path(task.__file__).parents[1]
    copy = tmp_path / "unbounded"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("kernels"))

    def keys() -> tuple[str, str]:
        """Of bandits and of MDPs, in a process that imports the copy."""
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-c", _KEYS]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return tuple(json.loads(out.stdout))

    def edited(*names: str, by: str = "_edited = 1") -> tuple[str, str]:
        for name in names:
            with (copy / name).open("a") as file:
                file.write(f"{by}\n")
        return keys()

    bandits, _ = first = keys()
    silent = [
        "cli/app.py",
        "report/page.py",
        "report/data.py",
        "bounds.py",
        "bandits/baselines/exp3.py",
    ]
    silent += [
        f"experiments/{file.name}"
        for file in (copy / "experiments").glob("*.py")
        if file.stem not in task._COLUMNS
    ]
    assert {"experiments/progress.py", "experiments/store.py", "experiments/runner.py"} <= set(
        silent
    )
    columns = [f"experiments/{name}.py" for name in task._COLUMNS]
    for name in [*columns, "core/random.py"]:
        with (copy / name).open("a") as file:
            file.write("# A comment.\n")
    assert edited(*silent) == first
    made_by = [*columns, "simulation/bandit.py", "core/random.py"]
    for name in made_by if every else made_by[-1:]:
        before = bandits
        bandits, mdps = edited(name)
        assert bandits != before, name
    after = edited("worlds.py")
    assert after[0] == bandits  # which have none
    assert after[1] != mdps
