"""Many asks and tells in one transaction: of one caller, and of many tasks of asyncio."""

import asyncio

import pytest
from postgres_server import missing

from unbounded import CostSCB
from unbounded.bandits.baselines.solo_ftrl import SOLOFTRL
from unbounded.durable import Durable
from unbounded.durable.store import Store

POSTGRES = pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
_names = iter(range(10**6))


@pytest.fixture(params=["file", *(pytest.param(k, marks=POSTGRES) for k in ("turns", "relaxed"))])
def opened(request, tmp_path):
    """Open the same learner, as often as this is called."""
    name = f"batch {next(_names)}"
    if request.param == "file":
        return lambda learner=None: Durable(tmp_path / "x.db", learner)
    url = request.getfixturevalue("database").url()
    staleness = 8 if request.param == "relaxed" else 0
    return lambda learner=None: Durable(url, learner, name=name, staleness=staleness)


def counted(monkeypatch, store):
    """The transactions that begin from here on."""
    calls = []
    for step in ("write", "add"):
        if hasattr(store, step):
            real = getattr(store, step)
            monkeypatch.setattr(
                store, step, lambda *a, real=real: calls.append(1) or real(*a), raising=True
            )
    return calls


def test_a_batch_is_one_transaction(opened, monkeypatch):
    arms = opened(CostSCB(3, seed=0))
    arms.status()
    calls = counted(monkeypatch, arms._session.store)
    choices = arms.ask(n=20)
    assert len(calls) == 1
    assert arms.tell_many(choices, [1.0 + choice.arm for choice in choices]) == [True] * 20
    assert len(calls) == 2
    assert arms.tell_many([], []) == []
    log = arms.log()
    assert log["id"].to_list() == [choice.id for choice in choices]
    assert log["loss"].to_list() == [1.0 + choice.arm for choice in choices]
    assert arms.verify() == 40


def test_a_batch_in_turns_has_the_bits_of_single_calls(tmp_path):
    one, many = (Durable(tmp_path / f"{k}.db", CostSCB(3, seed=0)) for k in "ab")
    for _ in range(30):
        choices = many.ask(n=4)
        singles = [one.ask() for _ in range(4)]
        assert [c.probability for c in choices] == [c.probability for c in singles]
        losses = [1.0 + choice.arm for choice in choices]
        many.tell_many(choices, losses)
        for choice, loss in zip(singles, losses, strict=True):
            one.tell(choice, loss)
    assert one.status() == many.status()


def test_a_batch_is_stored_whole_or_not_at_all(opened):
    arms = opened(CostSCB(3, seed=0))
    choices = arms.ask(n=3)
    before = arms.status()
    nobody = 1 << 62
    for tickets, losses in (
        (choices, [1.0, float("nan"), 1.0]),
        ([*choices[:2], nobody], [1.0, 2.0, 3.0]),
        ([choices[0], choices[0]], [1.0, 1.0]),
        (choices, [1.0, 2.0]),
    ):
        with pytest.raises(ValueError, match=r".*\S.*"):
            arms.tell_many(tickets, losses)
        assert arms.status() == before
    assert arms.tell_many([choices[0]] * 2, [1.0, 2.0], repeated="ignore") == [True, False]
    assert arms.tell_many(choices, reward=[1, 2, 3], repeated="ignore") == [False, True, True]
    assert arms.log()["loss"].to_list() == [1.0, -2.0, -3.0]


def test_each_ask_of_a_batch_has_its_key(opened):
    arms, other = opened(CostSCB(3, seed=0)), opened()
    choices = arms.ask(["a", "b", "a"], n=3)
    assert choices[0] == choices[2] != choices[1]
    assert other.ask(["c", "b"], n=2)[1] == choices[1] == other.ask("b")
    assert arms.status().outstanding == 3
    for keys in ("ab", ["a"], ["a", ""]):
        with pytest.raises(ValueError, match="key"):
            arms.ask(keys, n=2)


def test_a_learner_that_takes_one_ask_at_a_time_takes_no_batch(tmp_path):
    arms = Durable(tmp_path / "x.db", SOLOFTRL(2, seed=0))
    with pytest.raises(RuntimeError, match="forget"):
        arms.ask(n=2)
    assert arms.status().outstanding == 0
    assert arms.tell_many(arms.ask(n=1), losses=[[0.5, 0.2]]) == [True]


def test_tasks_share_transactions_and_no_errors(opened, monkeypatch):
    arms = opened(CostSCB(3, seed=0))
    arms.status()
    calls = counted(monkeypatch, arms._session.store)

    async def task(k):
        choice = await arms.aask(key=str(k))
        with pytest.raises(ValueError, match="loss"):
            await arms.atell(choice, float("nan"))
        try:
            return await arms.atell(choice, 1.0 if k % 7 else float("inf"))
        except ValueError:
            return await arms.atell(choice.id, 2.0)

    async def together():
        return await asyncio.gather(*map(task, range(50)))

    assert asyncio.run(together()) == [True] * 50
    assert arms.status().rounds == 50
    assert arms.verify() == 100
    before = len(calls)

    async def good():
        choices = await asyncio.gather(*(arms.aask() for _ in range(50)))
        return await asyncio.gather(*(arms.atell(choice, 1.0) for choice in choices))

    assert asyncio.run(good()) == [True] * 50
    assert len(calls) - before < 20  # of one hundred; the first of each may go alone
    arms.close()


def test_writes_that_are_not_shared_are_counted(tmp_path, monkeypatch):
    """The control: single calls are as many transactions."""
    arms = Durable(tmp_path / "x.db", CostSCB(3, seed=0))
    calls = counted(monkeypatch, arms._session.store)
    assert isinstance(arms._session.store, Store)
    for _ in range(5):
        arms.tell(arms.ask(), 1.0)
    assert len(calls) == 10
