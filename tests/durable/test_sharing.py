"""Threads, tasks and children of a fork share a durable learner."""

import asyncio
import os
import sqlite3
import threading
from contextlib import closing, contextmanager

import pytest

from unbounded import SCB
from unbounded.durable import BusyError, Durable

LOSSES = [3.0, 1.0, 2.0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arms.db"


def made(path, **options):
    return Durable(path, SCB(n_arms=3, profile="paper", seed=0), arms=["a", "b", "c"], **options)


@contextmanager
def held(path):
    """A transaction of another program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


def test_threads_share_it(path):
    arms = made(path)
    told = []

    def work():
        for _ in range(25):
            choice = arms.ask()
            arms.tell(choice.id, loss=LOSSES[choice.arm])
            assert arms.status().rounds > len(told) - 6
            told.append(choice.id)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(told)) == 150
    assert arms.status().rounds == 150
    assert arms.verify() == 300


def test_asyncio_does_not_wait_for_the_file(path):
    arms, other = made(path), Durable(path)

    async def play():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        clock = asyncio.create_task(tick())
        with held(path):  # nobody else can write for a while
            waits = asyncio.create_task(arms.aask(key="k"))
            await asyncio.sleep(0.1)
            assert not waits.done()
        choice = await waits
        assert await arms.aask(key="k") == choice
        assert await arms.atell(choice.id, loss=1.0)
        clock.cancel()
        return ticks

    assert asyncio.run(play()) > 10
    assert other.status().rounds == 1


def test_too_long_a_wait_is_an_error_and_changes_nothing(path):
    arms = made(path, timeout=0.05)
    with (
        held(path),
        pytest.raises(BusyError, match=r"in use by other processes for 0.05 s: call again"),
    ):
        arms.ask()
    assert arms.status().rows == 0
    with arms._session.lock, pytest.raises(BusyError, match="other threads"):
        arms.ask()
    assert arms.ask().id >> 20 == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_children_of_a_fork_play_on_together(path):
    arms = made(path)
    arms.tell(arms.ask().id, loss=1.0)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for _ in range(20):
                    choice = arms.ask()
                    arms.tell(choice.id, loss=LOSSES[choice.arm])
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    for _ in range(20):
        arms.tell(arms.ask().id, loss=1.0)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert arms.status().rounds == 81
    assert arms.verify() == 162
    assert arms.log()["id"].n_unique() == 81
