"""Half-lives that are times: the clock is that of the storage, and the journal has it."""

import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest
from postgres_server import missing

from unbounded import AdaINF, CostSCB, CostSCBIX, CostSCBRL
from unbounded.durable import Durable
from unbounded.durable.database import Database

STORAGES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.skipif(missing(), reason="no PostgreSQL")),
]
HOUR = timedelta(hours=1)
START = 1_800_000_000_000_000
LOSSES = {"a": 3.0, "b": 1.0, "c": 2.0, "d": 0.5}


@pytest.fixture
def clock(monkeypatch):
    """A clock for both storages, that the test sets."""
    from unbounded.durable.postgres import PostgresStore

    now = [START]
    monkeypatch.setattr(Database, "now", lambda store: now[0])
    monkeypatch.setattr(PostgresStore, "now", lambda store: now[0])
    return now


@pytest.fixture
def opened(request, tmp_path):
    found = []

    def again(learner=None, **options):
        if request.param == "sqlite":
            found.append(Durable(tmp_path / "arms.db", learner, **options))
        else:
            url = request.getfixturevalue("database").url()
            found.append(Durable(url, learner, name=request.node.name, **options))
        return found[-1]

    yield again
    for one in found:
        one.close()


def gaps(rng, n: int) -> list[int]:
    """Microseconds between asks: often seconds, at times hours, days, a year, or backwards."""
    usual = rng.exponential(20e6, n).astype(np.int64)
    rare = rng.choice([-3, -9 * 3600, 3 * 3600, 365 * 86400, 3600 * 10**5], n) * 10**6
    return np.where(rng.random(n) < 0.1, rare, usual).tolist()


@pytest.mark.parametrize("cls", [CostSCB, CostSCBIX, AdaINF])
@pytest.mark.parametrize("opened", STORAGES, indirect=True)
def test_handles_play_as_one_learner_whose_time_is_that_of_the_journal(opened, clock, cls):
    handles = [opened(cls(3, half_life=HOUR, seed=0), arms=["a", "b", "c"]), opened()]
    alone, still = (cls(3, half_life=HOUR, seed=0) for _ in range(2))
    waiting, apart = [], 0.0
    for t, gap in enumerate(gaps(np.random.default_rng(1), 120)):
        clock[0] += gap
        some = ["a", "b"] if t % 7 == 0 else None
        choice = handles[t % 2].ask(key=f"{t}", available=some)
        alone.set_time(clock[0])
        mask = None if some is None else [True, True, False]
        expected, control = alone.ask(available=mask), still.ask(available=mask)
        assert (choice.arm, choice.probability) == (expected.arm, expected.probability)
        apart = max(apart, abs(control.probability - choice.probability))
        waiting.append((choice, expected, control))
        clock[0] += 10**6
        while len(waiting) > t % 5:
            choice, expected, control = waiting.pop()
            handles[t % 3 == 0].tell(choice, LOSSES[choice.name])
            alone.tell(expected, LOSSES[choice.name])
            still.tell(control, LOSSES["abc"[control.arm]])
        if t == 60:
            handles[0].prune(timedelta(0))
            handles[0] = opened()
    assert apart > 0.05  # the control, for which no time passes
    assert handles[0].verify() > 0
    assert handles[1].learner().scale == alone.scale
    assert np.array_equal(handles[1].learner().probabilities(), alone.probabilities())


@pytest.mark.parametrize("opened", STORAGES, indirect=True)
def test_it_goes_on_after_a_snapshot_and_when_arms_come_and_go(opened, clock):
    first, arms = opened(CostSCB(3, half_life=HOUR, seed=0), arms=["a", "b", "c"]), None
    for t in range(300):
        clock[0] += 30 * 10**6
        first.tell(first.ask(), LOSSES["b"])
        if t % 100 == 50:
            first.add_arm("d")
            first.prune(timedelta(0))
            late = opened()
            clock[0] += 3600 * 10**6
            arms = [one.ask(key=f"{t}") for one in (late, first)]
            assert arms[0] == arms[1]
            first.tell(arms[0], 1.0)
            first.retire_arm("d")
    assert first.verify() > 0
    assert opened().status().probabilities == first.status().probabilities


@pytest.mark.parametrize("opened", STORAGES, indirect=True)
def test_a_year_without_calls(opened, clock):
    arms = opened(CostSCB(2, half_life=HOUR, seed=0))
    for _ in range(100):
        clock[0] += 10**7
        choice = arms.ask()
        arms.tell(choice, float(choice.arm))
    assert arms.ask(key="now").probability != 0.5
    assert arms.status().probabilities[0] > 0.7
    clock[0] += 365 * 86400 * 10**6
    assert abs(opened().ask().probability - 0.5) < 1e-9
    assert arms.verify() == 202


def test_another_half_life_and_other_learners(tmp_path, monkeypatch):
    path = tmp_path / "arms.db"
    with Durable(path, CostSCB(2, half_life=HOUR, seed=0)) as arms:
        arms.tell(arms.ask(), 1.0)
    for other, said in ((timedelta(minutes=1), "60 s"), (100, "100"), (None, "None")):
        with pytest.raises(ValueError, match=f"half_life='3600 s', and not '?{said}"):
            Durable(path, CostSCB(2, half_life=other))
    with Durable(path, CostSCB(2, half_life="3600 s")) as arms:
        assert arms.status().settings["half_life"] == "3600 s"
    with pytest.raises(TypeError, match="half_life"):
        CostSCBRL([2, 2], 2, half_life=HOUR)
    monkeypatch.setattr(Database, "now", lambda store: -5)  # no clock of ours
    with Durable(path) as arms:
        arms.ask()
        assert arms.verify() == 3


@pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
def test_asks_take_turns(database):
    with pytest.raises(ValueError, match="staleness=0"):
        Durable(database.url(), CostSCB(2, half_life=HOUR), name="timed", staleness=3)


def test_another_process_sees_the_same_clock(tmp_path):
    path = tmp_path / "arms.db"
    with Durable(path, CostSCB(2, half_life=timedelta(seconds=1), seed=0)) as arms:
        for _ in range(5):
            arms.tell(arms.ask(), 1.0)
        program = (
            "import sys; from unbounded.durable import Durable; arms = Durable(sys.argv[1])\n"
            "for _ in range(5): arms.tell(arms.ask(), 1.0)\n"
            "print(arms.verify(), arms.ask(key='k').probability)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["20", repr(arms.ask(key="k").probability)]
        assert arms.verify() == 21
