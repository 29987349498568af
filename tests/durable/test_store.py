"""The file: what the disk is asked to confirm, and that two can make it at once."""

import gc
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading

import pytest

from unbounded import SCB
from unbounded.durable import Durable, DurableError
from unbounded.durable.rows import ASK, Row

SCRIPT = """
import sys
from unbounded import SCB
from unbounded.durable import Durable
arms = Durable(sys.argv[1], SCB(2, seed=0), synchronous=sys.argv[2])
for _ in range(50):
    arms.tell(arms.ask(), loss=1.0)
"""


def synchronous(arms):
    return arms._session.store._connection.execute("PRAGMA synchronous").fetchone()[0]


@pytest.mark.parametrize(("said", "level"), [("normal", 1), ("full", 2)])
def test_the_disk_is_asked_to_confirm_as_was_said(tmp_path, said, level):
    arms = Durable(tmp_path / "arms.db", SCB(2), synchronous=said)
    assert synchronous(arms) == level
    arms._session.before_fork()  # the connection is made again
    arms.ask()
    assert synchronous(arms) == level
    with pytest.raises(ValueError, match="synchronous"):
        Durable(tmp_path / "arms.db", synchronous="off")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
@pytest.mark.parametrize(("said", "least", "most"), [("normal", 0, 20), ("full", 100, 140)])
def test_every_call_waits_for_the_disk_if_that_was_said(tmp_path, said, least, most):
    command = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        [*command, str(tmp_path / "arms.db"), said],
        capture_output=True,
        text=True,
        env=os.environ | {"UNBOUNDED_JIT": "never"},
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip("tracing is not permitted here")
    calls = re.findall(r"(\d+)\s+f(?:data)?sync", done.stderr)
    assert least <= sum(map(int, calls)) <= most, done.stderr


@pytest.mark.parametrize("turn", range(20))
def test_many_may_make_the_file_at_once(tmp_path, turn):
    opened, barrier = [], threading.Barrier(8)

    def make(i):
        barrier.wait()
        opened.append(Durable(tmp_path / "arms.db", SCB(3, seed=i), timeout=60.0))

    threads = [threading.Thread(target=make, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    states = {arms.learner()._bits.state["state"]["state"] for arms in opened}
    assert len(states) == 1  # one of them made it, the others have joined


def test_who_forgets_to_close_it_leaves_nothing_open(tmp_path):
    arms = Durable(tmp_path / "arms.db", SCB(2, seed=0))
    connection = arms._session.store._connection
    arms.ask()
    del arms
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    assert Durable(tmp_path / "arms.db").status().rows == 1


def test_rows_are_linked():
    row = Row(1, ASK, None, 5, "key", 0, 2, "name", 0.5)
    before, other_row = bytes(16), b"x" * 16
    digest = row.digest_after(before)
    assert digest == row.digest_after(before)
    others = [
        row._replace(**{field: value})
        for field, value in [
            ("kind", 1), ("choice", 1), ("at", 6), ("key", "kez"), ("epoch", 1),
            ("arm", 1), ("name", "nam"), ("probability", 0.25), ("loss", 1.0), ("scale", 1.0),
            ("clipped", 1), ("payload", b"x"),
        ]
    ]  # fmt: skip
    assert digest == row._replace(n=2).digest_after(before)  # its place in the chain is its number
    digests = {other.digest_after(before) for other in others}
    assert len(digests | {digest, row.digest_after(other_row)}) == len(others) + 2


def test_a_path_may_have_any_letters(tmp_path):
    path = tmp_path / "a? b#c%20ü.db"
    with Durable(path, SCB(2, seed=0)) as arms:
        arms.ask()
    assert path.exists()
    assert len(list(tmp_path.iterdir())) == 1
    with Durable(path, read_only=True) as arms:
        assert arms.status().rows == 1
    with pytest.raises(DurableError, match="cannot be opened"):
        Durable(tmp_path, SCB(2))
