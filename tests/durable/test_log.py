"""The log as a table, and as other programs read it."""

import json
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from postgres_server import missing

from unbounded import SCB, UniformPolicy
from unbounded.durable import Durable, DurableError, open_bandit_feedback, vw_lines
from unbounded.durable import learner as durable_learner
from unbounded.durable.log import COLUMNS

POSTGRES = pytest.mark.skipif(missing(), reason="there is no PostgreSQL")


@pytest.fixture
def arms(tmp_path):
    with Durable(
        tmp_path / "arms.db", SCB(n_arms=2, profile="paper", seed=0), arms=["a", "b"]
    ) as arms:
        yield arms


def test_the_log_has_what_happened(arms, tmp_path):
    began = datetime.now(UTC)
    alone = SCB(n_arms=2, profile="paper", seed=0)
    first, second, third = arms.ask(key="one"), arms.ask(), arms.ask()
    arms.tell(second.id, loss=3.0)
    arms.tell(first.id, loss=-8.0)
    log = arms.log()
    assert dict(log.schema) == COLUMNS
    assert log["id"].to_list() == [first.id, second.id, third.id]
    assert log["key"].to_list() == ["one", None, None]
    assert log["arm"].to_list() == [alone.ask().arm for _ in range(3)]
    assert log["name"].to_list() == ["ab"[arm] for arm in log["arm"]]
    assert log["probability"].to_list() == [0.5] * 3
    assert log["loss"].to_list() == [-8.0, 3.0, None]
    assert log["scale"].to_list() == [16.0, 6.0, None]
    assert log["clipped"].to_list() == [1, 1, None]
    assert log["status"].to_list() == ["told", "told", "waiting"]
    assert log["asked_as"].to_list() == [1, 2, 3]
    assert log["told_as"].to_list() == [5, 4, None]
    assert log["told"][2] is None
    for time in (*log["time"], log["told"][0]):
        assert began - timedelta(seconds=1) < time <= datetime.now(UTC)
    log.write_parquet(tmp_path / "log.parquet")
    assert pl.read_parquet(tmp_path / "log.parquet").equals(log)


def test_an_empty_log_has_its_columns(arms):
    assert arms.log().height == 0
    assert dict(arms.log().schema) == COLUMNS


def test_rows_for_vowpal_wabbit_and_the_open_bandit_pipeline(arms):
    tickets = [arms.ask() for _ in range(20)]
    for ticket in tickets[:15]:
        arms.tell(ticket.id, loss=0.1 * ticket.arm)
    log = arms.log()
    lines = list(vw_lines(log))
    assert len(lines) == 15
    for line, ticket in zip(lines, tickets[:15], strict=True):
        label, tag, _ = line.split(" ")
        action, cost, probability = label.split(":")
        assert int(action) == ticket.arm + 1
        assert float(cost) == 0.1 * ticket.arm
        assert float(probability) == ticket.probability
        assert tag == f"'{ticket.id}"
    feedback = open_bandit_feedback(log)
    assert feedback["n_rounds"] == 15
    assert feedback["n_actions"] == 2
    assert feedback["context"].shape == (15, 1)
    np.testing.assert_array_equal(feedback["action"], [t.arm for t in tickets[:15]])
    np.testing.assert_array_equal(feedback["reward"], [-0.1 * t.arm for t in tickets[:15]])
    np.testing.assert_array_equal(feedback["pscore"], [t.probability for t in tickets[:15]])
    arms.add_arm("c")
    for _ in range(5):
        arms.tell(arms.ask().id, loss=1.0)
    assert open_bandit_feedback(arms.log())["n_rounds"] == 5  # arms have other numbers before


def test_mdps_are_not_written_as_arms(tmp_path):
    with Durable(tmp_path / "plans.db", UniformPolicy([1, 2], 2, seed=0)) as plans:
        plan = plans.ask()
        states = [0, 1]
        actions = [plan.act(h, s) for h, s in enumerate(states)]
        plans.tell(plan.id, states=states, actions=actions, rewards=[1.0, 2.0])
        log = plans.log()
        assert log["losses"][0].to_list() == [-1.0, -2.0]
        assert log["loss"][0] == -3.0
        assert log["chances"][0].to_list() == [0.5, 0.5]
        assert log["probability"][0] == 0.25
        for export in (lambda: list(vw_lines(log)), lambda: open_bandit_feedback(log)):
            with pytest.raises(ValueError, match="only the log of a bandit"):
                export()


def test_a_worker_needs_neither_polars_nor_mdps(tmp_path):
    script = """
        import json, sys
        from unbounded import SCB
        from unbounded.durable import Durable
        with Durable(sys.argv[1], SCB(n_arms=2)) as arms:
            arms.tell(arms.ask().id, loss=1.0)
        print(json.dumps([name for name in ("polars", "unbounded.mdps") if name in sys.modules]))
    """
    command = [sys.executable, "-c", "\n".join(map(str.strip, script.splitlines()))]
    command[-1] = command[-1].replace("\narms.tell", "\n    arms.tell")
    done = subprocess.run([*command, str(tmp_path / "a.db")], capture_output=True, text=True)
    assert json.loads(done.stdout) == [], done.stderr


@pytest.mark.parametrize("where", ["file", pytest.param("database", marks=POSTGRES)])
def test_an_archive_and_the_log_have_each_choice_once(request, tmp_path, where, monkeypatch):
    monkeypatch.setattr(durable_learner, "_PART", 20)
    place = {"path": tmp_path / "x.db"}
    if where == "database":
        place = {"path": request.getfixturevalue("database").url(), "name": "archived"}
    control = Durable(tmp_path / "y.db", SCB(2, seed=0))
    arms, rng, late = Durable(**place, learner=SCB(2, seed=0)), random.Random(5), []
    for t in range(150):
        context = {"t": t} if t % 3 == 0 else None
        late.append([one.ask(key=str(t), context=context) for one in (arms, control)])
        if rng.random() < 0.8:
            choices = late.pop(rng.randrange(len(late)))
            for one, choice in zip((arms, control), choices, strict=True):
                one.tell(choice, float(t))
        if t in (60, 120):
            arms.archive(tmp_path / "log", timedelta(0))
    for one in (arms, control):
        one.expire(timedelta(0), loss=7.0)
    assert arms.archive(tmp_path / "log", timedelta(days=1)) == 0
    assert arms.archive(tmp_path / "log", timedelta(0)) > 100
    files = sorted((tmp_path / "log").iterdir())
    assert len(files) > 5
    assert not any(file.name.endswith(".part") for file in files)
    found = pl.concat([*map(pl.read_parquet, files), arms.log()])
    right = control.log()
    columns = [name for name in right.columns if name not in ("id", "time", "told")]
    assert found.select(columns).equals(right.select(columns))
    assert arms.status() == control.status()
    with pytest.raises(DurableError, match="read_only"):  # what cannot be removed is not archived
        Durable(**place, read_only=True).archive(tmp_path / "no", timedelta(0))
