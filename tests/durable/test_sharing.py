"""Threads, tasks and children of a fork share a durable learner."""

import asyncio
import os
import sqlite3
import subprocess
import sys
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
    arms = made(path, timeout=60.0)
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
    arms, other = made(path, timeout=60.0), Durable(path)

    async def play():
        with held(path):  # nobody else can write for a while
            waits = asyncio.create_task(arms.aask(key="k"))
            for _ in range(50):  # the loop goes on meanwhile
                await asyncio.sleep(0.001)
            assert not waits.done()
        choice = await waits
        assert await arms.aask(key="k") == choice
        assert await arms.atell(choice.id, loss=1.0)

    asyncio.run(play())
    assert other.status().rounds == 1


CLOSING = """
import asyncio, ctypes, os, signal, sys, threading
from unbounded import SCB
from unbounded.durable import Durable

def interrupt(*_):
    raise SystemExit(7)

arms = Durable(sys.argv[1], SCB(n_arms=3, seed=0))
if sys.argv[2] == "interrupt":  # between the beginning of the thread and what follows it
    start = threading.Thread.start
    threading.Thread.start = lambda self: (start(self), interrupt())
choice = asyncio.run(arms.aask())
if sys.argv[2] == "c":
    child = ctypes.CDLL(None).fork()
    sys.exit(0 if child == 0 else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(("way", "code"), [("exit", 0), ("interrupt", 7), ("c", 0)])
def test_python_ends_although_asyncio_was_used(path, way, code):
    """Also in a child that Python does not know of, or if an interrupt came in the middle."""
    done = subprocess.run(
        [sys.executable, "-c", CLOSING, str(path), way],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"UNBOUNDED_JIT": "never"},
    )
    assert (done.returncode, done.stderr) == (code, "")


def test_what_was_closed_answers_tasks_too(path):
    async def play():
        arms = made(path)
        waits = [asyncio.create_task(arms.aask()) for _ in range(5)]
        await asyncio.sleep(0)
        arms.close()  # when they are done
        assert len({choice.id for choice in await asyncio.gather(*waits)}) == 5
        with pytest.raises(RuntimeError, match="closed"):
            await arms.aask()

    asyncio.run(play())


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
    arms = made(path, timeout=60.0)
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
