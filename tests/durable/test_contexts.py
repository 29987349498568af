"""Contexts beside the journal: the log, estimates, deletion, storages, older files, damage."""

import json
import re
import sqlite3

import numpy as np
import pytest
from postgres_server import missing

from unbounded import SCB, CostExp4, CostSCB, UniformPolicy
from unbounded.cli.app import main
from unbounded.durable import Durable, DurableError, by_context, estimate

EU, US = {"region": "eu", "tier": 1}, {"region": "us", "tier": 2.5, "batch": True, "plan": None}


@pytest.fixture
def arms(tmp_path):
    with Durable(tmp_path / "arms.db", CostSCB(3, seed=0), arms=["a", "b", "c"]) as arms:
        yield arms


def contexts_of(arms):
    return [None if one is None else json.loads(one) for one in arms.log()["context"]]


def test_contexts_change_no_choice_and_no_digest(tmp_path, arms):
    """A control: what is in the journal changes the digests, and so the ids."""
    with Durable(tmp_path / "other.db", CostSCB(3, seed=0), arms=["a", "b", "c"]) as other:
        for t in range(30):
            mine = arms.ask(key=f"{t}", context=[EU, US, None][t % 3])
            its = other.ask(key=f"{t}")
            assert (mine.arm, mine.probability) == (its.arm, its.probability)
            for one, choice in ((arms, mine), (other, its)):
                one.tell(choice.id, loss=0.1 * t)
        assert contexts_of(arms) == [EU, US, None] * 10
        rows, others = (
            one._session.look(lambda one=one: one._session.store.rows(1)) for one in (arms, other)
        )
        one, two = rows[0], others[0]._replace(at=rows[0].at)
        assert one.content == two.content
        assert one.content != two._replace(key="x").content
        assert arms.verify() == other.verify() == 60


def test_batches_have_one_for_all_or_one_each(arms):
    arms.ask(n=2, context=EU)
    arms.ask(n=3, context=[EU, None, US])
    assert contexts_of(arms) == [EU, EU, EU, None, US]
    with pytest.raises(ValueError, match="context must be a sequence of n = 3"):
        arms.ask(n=3, context=[EU, US])


def test_a_key_gives_its_first_context_again(arms):
    first = arms.ask(key="a", context=EU)
    assert arms.ask(key="a", context=US) == first
    assert contexts_of(arms) == [EU]


@pytest.mark.parametrize(
    "context",
    ["eu", 3, [], ["eu"], {"x": float("nan")}, {"x": np.float64("inf")}, {1: "x"}, {"x": [1]},
     {"x": b"x"}, {"x": {}}],
)  # fmt: skip
def test_a_context_that_makes_no_sense_writes_nothing(arms, context):
    with pytest.raises((TypeError, ValueError), match="context"):
        arms.ask(context=context)
    assert arms.status().rows == 0


def test_any_letters_and_numbers_of_numpy_come_back(arms):
    strange = {"\0'\"; --\ud800": "☃\n|", "x": np.int64(3), "y": np.float32(0.5), "": -0.0}
    arms.ask(context=strange)
    assert contexts_of(arms) == [strange]


def deleted(arms):
    tickets = [arms.ask(key=f"user 1, {t}", context=EU) for t in range(3)]
    tickets.append(arms.ask(context=US))
    for ticket in tickets:
        arms.tell(ticket.id, loss=1.0)
    before = arms.status()
    assert arms.delete_contexts(["user 1, 0", "user 1, 2", "nobody"]) == 2
    assert contexts_of(arms) == [None, EU, None, US]
    assert arms.delete_contexts("user 1, 0") == 0
    assert arms.delete_contexts([tickets[3], tickets[1].id]) == 2
    assert contexts_of(arms) == [None] * 4
    with pytest.raises(ValueError, match="no ticket"):
        arms.delete_contexts([12345 << 20])
    assert arms.status() == before
    assert arms.verify() == 8
    assert arms.tell(arms.ask(key="user 1, 4", context=US), loss=2.0)
    assert contexts_of(arms) == [None] * 4 + [US]


def test_deleting_leaves_choices_and_the_chain(arms, tmp_path):
    secret = "a secret of 1"
    arms.ask(key="k", context={"who": secret})
    arms._session.store.query("PRAGMA wal_checkpoint(TRUNCATE)")
    assert secret.encode() in (tmp_path / "arms.db").read_bytes()
    arms.delete_contexts("k")
    arms.close()
    assert secret.encode() not in b"".join(one.read_bytes() for one in tmp_path.iterdir())
    with Durable(tmp_path / "fresh.db", CostSCB(3, seed=0)) as fresh:
        deleted(fresh)


def test_pruned_rows_take_their_contexts_along(arms):
    from datetime import timedelta

    arms.tell_many(arms.ask(n=4, context=EU), [1.0] * 4)
    assert arms.prune(timedelta(0)) > 0
    left = len(arms.log())
    found = arms._session.look(lambda: arms._session.store.contexts(1, 100))
    assert len(found) == left < 4


def test_a_file_without_the_table_is_one_without_contexts(tmp_path):
    """Files of older versions have no such table; nor do those in which nobody gave any."""
    path = tmp_path / "arms.db"
    with Durable(path, SCB(2, seed=0)) as arms:
        arms.tell(arms.ask(key="old"), loss=1.0)
        with sqlite3.connect(path) as file:
            assert (
                file.execute("SELECT name FROM sqlite_master WHERE name='contexts'").fetchall()
                == []
            )
        assert arms.delete_contexts("old") == 0
        assert contexts_of(arms) == [None]
    with Durable(path, read_only=True) as arms:
        assert contexts_of(arms) == [None]
    with Durable(path) as arms, Durable(path) as other:
        other.ask()
        arms.ask(context=EU)
        assert contexts_of(other) == [None, None, EU]
    with sqlite3.connect(path) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (1,)


def test_damage_is_found(arms, tmp_path):
    arms.ask(context=EU)
    arms.close()
    with sqlite3.connect(tmp_path / "arms.db") as file:
        file.execute("UPDATE contexts SET text = replace(text, 'eu', 'us')")
    with Durable(tmp_path / "arms.db") as arms:
        for look in (arms.log, arms.verify):
            with pytest.raises(DurableError, match="context of row 1"):
                look()


def test_copies_have_them(arms, tmp_path):
    arms.ask(n=3, context=[EU, None, US])
    arms.copy_to(tmp_path / "copy.db")
    arms.backup(tmp_path / "backup.db")
    for name in ("copy.db", "backup.db"):
        with Durable(tmp_path / name) as other:
            assert contexts_of(other) == [EU, None, US]


def test_mdps_and_experts_have_contexts_too(tmp_path):
    with Durable(tmp_path / "plans.db", UniformPolicy([1, 2], 2, seed=0)) as plans:
        plans.ask(context=EU)
        assert contexts_of(plans) == [EU]
    with Durable(tmp_path / "arms.db", CostExp4(2, 2, seed=0)) as arms:
        experts = [lambda request: int(request["region"] == "us")] * 2
        assert arms.ask(advice=experts, context=US).arm == 1
        assert arms.ask(advice=experts, context=EU).arm == 0
        assert arms.verify() == 2


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """In "eu" a costs 1 and b 2, in "us" the other way round."""
    noise = 0.1 * np.random.default_rng(0).random(800)
    path = tmp_path_factory.mktemp("log") / "arms.db"
    with Durable(path, CostSCB(2, rate=0.05, seed=0), arms=["a", "b"]) as arms:
        for t in range(800):
            choice = arms.ask(context=[EU, US][t % 2])
            arms.tell(choice.id, loss=1.0 + (choice.arm != t % 2) + noise[t] - 0.05)
        return arms.log()


def test_estimates_per_context_and_overall(log):
    parts = by_context(log, "region")
    assert list(parts) == ["eu", "us"]
    for region, loss in (("eu", 1.0), ("us", 2.0)):
        found = estimate(parts[region], "a", level=0.999)
        assert found.low < loss < found.high < loss + 0.3
    overall = estimate(log, "a", level=0.999)  # the control: it knows no context
    assert overall.low < 1.5 < overall.high
    assert overall.low > 1.2
    assert sorted(map(str, by_context(log, "tier", "batch"))) == ["(1, None)", "(2.5, True)"]


@pytest.mark.parametrize("method", ["dr", "ips"])
@pytest.mark.parametrize("weights", ["even", "stable"])
def test_a_policy_may_look_at_the_context(log, method, weights):
    def near(request):
        return "a" if request["region"] == "eu" else {"b": 0.5, "a": 0.5}

    found = estimate(log, near, method=method, weights=weights, level=0.999)
    assert found.low < 1.25 < found.high < 1.7
    assert found.rounds == 800
    import polars as pl

    told = log.with_columns(context=pl.when(pl.col("asked_as") > 800).then("context"))
    assert estimate(told, near).missing == 400
    with pytest.raises(ValueError, match="context"):
        estimate(log.drop("context"), near)


def test_inspect_shows_them(arms, tmp_path, capsys):
    for t in range(8):
        choice = arms.ask(context=US if t % 4 else EU)
        arms.tell(choice.id, loss=2.0)
    arms.ask(context=EU)
    arms.close()
    page = tmp_path / "page.html"
    assert main(["inspect", str(tmp_path / "arms.db"), "--html", str(page)]) == 0
    seen = re.sub(" +", " ", capsys.readouterr().out)
    assert "region=us 6 asked mean 2 of 6" in seen
    assert "region=eu 3 asked mean 2 of 2" in seen
    assert "By context" in page.read_text()


@pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
@pytest.mark.parametrize("staleness", [0, 16])
def test_postgresql_stores_them_with_and_without_turns(database, tmp_path, staleness):
    name = f"contexts {staleness}"
    arms = Durable(database.url(), CostSCB(3, seed=0), name=name, staleness=staleness)
    arms.ask(key="a", context=EU)
    arms.ask(n=3, context=[None, US, EU])
    arms.tell_many(arms.ask(n=2), [1.0, 2.0])
    strange = {"\0'\"; --\ud800": "☃\n|\\", "y": 0.1}
    arms.ask(context=strange, available=[1])
    expected = [EU, None, US, EU, None, None, strange]
    assert contexts_of(arms) == expected
    arms.copy_to(tmp_path / "copy.db")
    with Durable(tmp_path / "copy.db") as copy:
        assert contexts_of(copy) == expected
        copy.copy_to(database.url(), name=f"{name} again")
    assert contexts_of(Durable(database.url(), name=f"{name} again")) == expected
    assert arms.delete_contexts(["a"]) == 1
    arms.verify()
    with Durable(
        database.url(), CostSCB(3, seed=0), name=f"{name} fresh", staleness=staleness
    ) as fresh:
        deleted(fresh)


@pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
def test_an_older_schema_gets_the_table(database, monkeypatch):
    from unbounded.durable import postgres

    with monkeypatch.context() as older:
        older.setattr(postgres, "VERSION", 2)
        older.setattr(postgres, "_MIGRATIONS", postgres._MIGRATIONS[:2])
        old = Durable(database.url(), SCB(2, seed=0), name="x", schema="before", staleness=4)
        old.tell(old.ask(), 1.0)
    new = Durable(database.url(), name="x", schema="before", staleness=4)
    new.ask(context=EU)
    assert old.tell(old.ask(), 3.0)  # who is open goes on
    assert contexts_of(new) == [None, EU, None]
