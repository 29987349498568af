"""Forks: what parent and child acknowledge is in the file, however one of them ends."""

import ctypes
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from unbounded import SCB
from unbounded.durable import Durable, DurableError

SCRIPT = Path(__file__).with_name("forked_workers.py")
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arms.db"


FORKS = [("python", "parent"), ("python", "child"), ("c", "child")]
SHORT = [(*FORKS[0], "close"), (*FORKS[1], "kill"), (*FORKS[2], "exit")]
LONG = [(*fork, how) for fork in FORKS for how in ("close", "exit", "kill")]
LONG = [pytest.param(*case, marks=pytest.mark.long) for case in LONG if case not in SHORT]


@pytest.mark.parametrize(("fork", "who", "how"), [*SHORT, *LONG])
def test_one_ends_and_the_other_goes_on(path, fork, who, how):
    notes = path.with_name("notes.txt")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(path), str(notes), fork, who, how],
        capture_output=True,  # until both have ended
        text=True,
        env=os.environ | {"UNBOUNDED_JIT": "never"},
    )
    assert done.stderr == ""
    acknowledged = [int(line) for line in notes.read_text().split()]
    assert len(acknowledged) == (105 if fork == "python" else 85)
    with Durable(path) as arms:
        assert arms.verify() == 2 * len(acknowledged)
        log = arms.log()
        assert log["id"].to_list() == sorted(acknowledged)
        assert set(log["status"]) == {"told"}


def in_child(work, fork=os.fork):
    """Whether ``work`` ends well in a child."""
    child = fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def play(arms, rounds=5):
    for _ in range(rounds):
        assert arms.tell(arms.ask().id, loss=1.0)


def test_a_child_writes_although_a_thread_of_the_parent_reads(path):
    """A statement without an end is ended for the fork, and begins again after it."""
    arms = Durable(path, SCB(n_arms=3, seed=0), timeout=60.0)
    play(arms)
    begun, over = threading.Semaphore(0), threading.Event()
    numbers = "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c)"
    other = arms._session.another()

    def work():
        begun.release()
        if not over.is_set():
            other.store.query(f"{numbers} SELECT max(x) FROM c")

    thread = threading.Thread(target=lambda: other.look(work), daemon=True)
    thread.start()
    for _ in range(3):
        begun.acquire()
        assert in_child(lambda: play(arms))
        play(arms)
    over.set()
    begun.acquire()
    assert in_child(lambda: play(arms))
    thread.join()
    other.close(keep=False)
    assert arms.status().rounds == 40
    assert arms.verify() == 80


def test_a_child_writes_although_a_thread_of_the_parent_expires(path):
    arms = Durable(path, SCB(n_arms=3, seed=0), timeout=60.0)
    for _ in range(2500):
        arms.ask()
    ended = []
    thread = threading.Thread(target=lambda: ended.append(arms.expire(timedelta(0), loss=1.0)))
    thread.start()
    while len(arms.outstanding()) == 2500:
        pass
    assert in_child(lambda: play(arms))
    play(arms)
    thread.join()
    assert ended == [2500]
    assert arms.status().rounds == 2510


def test_many_threads_fork_and_play(path):
    arms = Durable(path, SCB(n_arms=3, seed=0), timeout=60.0)
    well = []

    def work():
        for _ in range(3):
            play(arms, 3)
            well.append(in_child(lambda: play(arms, 3)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert well == [True] * 12
    assert arms.status().rounds == 72
    assert arms.verify() == 144


@pytest.mark.parametrize("forks", [30, pytest.param(500, marks=pytest.mark.long)])
def test_no_thread_is_inside_sqlite_when_another_forks(path, forks):
    """A lock that SQLite holds then is held for ever in the child: it could open no database."""
    arms = Durable(path, SCB(n_arms=3, seed=0), timeout=60.0)
    over = threading.Event()

    def work():
        while not over.is_set():
            play(arms, 1)
            Durable(path, timeout=60.0).close()

    def open_another():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(300)
        sqlite3.connect(path.with_name("other.db")).execute("CREATE TABLE IF NOT EXISTS t (x)")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    well = [in_child(open_another) for _ in range(forks)]
    over.set()
    for thread in threads:
        thread.join()
    assert well == [True] * forks
    assert arms.verify() == arms.status().rows


def test_a_fork_in_the_middle_of_a_call(path):
    """The child has an open transaction of the parent's: it neither ends it nor uses the file."""
    arms = Durable(path, SCB(n_arms=3, seed=0))
    children = []

    def work(replica):
        row, ticket = replica.ask(None, 0)
        arms._session.store.append(row)
        children.append(os.fork())
        return ticket

    try:
        choice = arms._session.write(work)
    except DurableError as error:
        assert children == [0]
        status = 1
        try:
            with pytest.raises(DurableError, match="was open when this process was forked"):
                arms.ask()
            status = int("was open when this process was forked" not in str(error))
        finally:
            os._exit(status)
    assert os.waitpid(children[0], 0)[1] == 0
    assert arms.tell(choice.id, loss=1.0)
    assert arms.verify() == 2


def test_a_child_that_python_does_not_know_of_leaves_the_file_alone(path):
    arms = Durable(path, SCB(n_arms=3, seed=0))
    play(arms)

    def work():
        for use in (arms.ask, arms.status, lambda: Durable(path), arms.close, arms.ask):
            try:
                use()
            except DurableError:
                continue
            assert use == arms.close

    assert in_child(work, ctypes.CDLL(None).fork)
    play(arms)
    assert in_child(lambda: play(arms))  # the other fork has not spoilt anything
    assert Durable(path).verify() == 30


def test_a_call_from_within_a_call_says_so_at_once(path):
    arms = Durable(path, SCB(n_arms=3, seed=0))
    with pytest.raises(DurableError, match="in use by this thread"):
        arms._session.read(lambda _: arms.ask())
    play(arms)
