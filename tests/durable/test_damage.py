"""Full disks, files that cannot be written, and files that are not what was written."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from datetime import timedelta

import polars as pl
import pytest

from unbounded import SCB
from unbounded.durable import Durable, DurableError

ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arms.db"


def made(path, rounds=30):
    arms = Durable(path, SCB(n_arms=3, seed=0), arms=["a", "b", "c"])
    for t in range(rounds):
        arms.tell(arms.ask(key=f"key {t}").id, loss=float(t % 5))
    return arms


def ask_on(arms):
    for _ in range(20000):
        arms.ask()


def test_a_full_disk_loses_nothing_and_keeps_nothing_half(path):
    arms = made(path)
    connection = arms._session.store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DurableError, match="as the disk is full: free some space and call again"):
        ask_on(arms)
    rows = arms.status().rows
    assert rows == 60 + len(arms.outstanding()) > 60
    with pytest.raises(DurableError, match="the disk is full"):
        arms.tell(arms.outstanding()[0], loss=1.0)
    assert arms.status().rows == rows
    waiting = arms.outstanding()
    connection.execute("PRAGMA max_page_count = 1000000")
    for ticket in waiting:
        assert arms.tell(ticket, loss=1.0)
    assert arms.ask().id >> 20 == arms.status().rows
    assert arms.verify() == arms.status().rows


@pytest.mark.skipif(not (ROOT and shutil.which("mount")), reason="needs a file system of its own")
def test_a_file_system_without_room_loses_nothing(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mount is not permitted here")
    try:
        arms = made(small / "arms.db", rounds=5)
        with pytest.raises(DurableError, match=r"disk is full|see what is wrong with the disk"):
            ask_on(arms)
        rows = arms.status().rows
        arms._session.store.close()
        shutil.copytree(small, tmp_path / "large")
        with Durable(tmp_path / "large" / "arms.db") as copy:
            assert copy.status().rows == rows
            assert copy.verify() == rows
            assert copy.expire(timedelta(0), loss=1.0) == rows - 10
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.skipif(not ROOT, reason="root changes into somebody who may not write")
def test_a_file_that_cannot_be_written_is_rejected_with_a_message(path, tmp_path):
    made(path).close()
    script = """
        import os, sys, urllib.parse  # what is imported later may not be readable
        from unbounded import SCB
        from unbounded.durable import Durable, DurableError
        from unbounded import bandits
        for above in {above}:
            os.chmod(above, 0o755)
        os.chmod({path!r}, 0o644)
        os.setgid(65534); os.setuid(65534)
        for open in (lambda: Durable({path!r}), lambda: Durable({other!r}, SCB(n_arms=2))):
            try:
                open()
            except DurableError as error:
                print(error)
    """
    above = [str(tmp_path), *(str(p) for p in tmp_path.parents if "pytest" in str(p))]
    other = str(tmp_path / "new.db")
    text = textwrap.dedent(script).format(path=str(path), other=other, above=above)
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env=os.environ | {"UNBOUNDED_JIT": "never"},
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert "make it and its directory" in lines[0]
    assert "make it and its directory" in lines[1]
    assert not os.path.exists(other)
    assert Durable(path).verify() == 60


def test_a_file_of_a_newer_version(path):
    made(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(DurableError, match=r"has format 2, .* knows 1: update unbounded"):
        Durable(path)


def test_a_file_of_another_program_is_left_as_it_is(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE journal (n)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DurableError, match="is another program's: give another file"):
        Durable(path, SCB(n_arms=2))
    assert path.read_bytes() == before
    path.write_bytes(b"not a database, but a text that is long enough to look like one" * 50)
    with pytest.raises(DurableError, match="is not the file of a durable learner"):
        Durable(path, SCB(n_arms=2))


def test_what_is_not_there(path, tmp_path):
    with pytest.raises(DurableError, match=r"there is no .*: give Durable a learner"):
        Durable(path)
    with pytest.raises(DurableError, match="there is no directory"):
        Durable(tmp_path / "nowhere" / "arms.db", SCB(n_arms=2))
    path.touch()
    with pytest.raises(DurableError, match="is empty: give Durable a learner"):
        Durable(path)
    with Durable(path, SCB(n_arms=2)) as arms:  # an empty file is as good as none
        arms.ask()


def used(path):
    """Open a file, and use all of it."""
    with Durable(path) as arms:
        arms.verify()
        for t in range(30):
            arms.ask(key=f"key {t}")
        arms.log()
        arms.tell(arms.ask().id, loss=1.0)
        return arms.status()


def keyed(path):
    with Durable(path) as arms:
        return arms.log().filter(pl.col("key").is_not_null())


def test_a_truncated_file_is_rejected_and_a_backup_recovers(path, tmp_path):
    arms = made(path, rounds=300)
    arms.backup(tmp_path / "backup.db")
    with pytest.raises(DurableError, match="exists: give a new file"):
        arms.backup(tmp_path / "backup.db")
    arms.close()
    whole = path.read_bytes()
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.95):  # the last page is not full
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(DurableError, match=r"damaged|not the file|empty"):
            used(path)
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    # The recipe of docs/guide/production.md: the three files away, the backup in their place.
    shutil.copy(tmp_path / "backup.db", path)
    assert used(path).rows == 602


@pytest.mark.parametrize("dose", [60, pytest.param(2000, marks=pytest.mark.long)])
def test_a_flipped_bit_is_rejected_or_changes_nothing(path, tmp_path, dose):
    """Wherever it is: an error, or all that was written is there."""
    made(path, rounds=60).close()
    shutil.copy(path, tmp_path / "right.db")
    expected = used(tmp_path / "right.db")
    log = keyed(tmp_path / "right.db")
    whole, rng = path.read_bytes(), random.Random(3)
    refused = 0
    for _ in range(dose):
        at, bit = rng.randrange(len(whole)), rng.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            assert used(path) == expected
            assert keyed(path).equals(log)
        except DurableError:
            refused += 1
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    assert refused > dose / 4


def test_a_row_that_was_changed_by_hand_is_found_by_all_readers(path):
    made(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET loss = 0.25 WHERE n = 4")
        connection.execute("UPDATE journal SET arm = 1 - arm WHERE n = 7")
    connection.close()
    with Durable(path) as arms:  # a snapshot was kept, so these rows need not be replayed
        for reader in (arms.verify, arms.log, lambda: arms.ask(key="key 3")):
            with pytest.raises(
                DurableError, match=r"row [47] of its journal is not what was written"
            ):
                reader()


def test_a_snapshot_that_does_not_follow_from_the_journal_is_found(path):
    """Right digests, wrong content: only a replay sees it."""
    arms = made(path)
    other = made(path.with_name("other.db"), rounds=29)
    other.tell(other.ask().id, loss=4.25)
    replica = other._session._replica
    replica.n, replica.chain = arms._session._replica.n, arms._session._replica.chain
    arms._session.write(lambda _: arms._session.store.keep("latest", replica.snapshot("these")))
    with pytest.raises(DurableError, match="does not lead to its snapshot"):
        arms.verify()


def test_a_journal_that_comes_out_differently_here_is_rejected(path):
    arms = made(path)
    other = Durable(path.with_name("other.db"), SCB(n_arms=3, seed=1), arms=["a", "b", "c"])
    base = other._session.store.snapshot("base")  # a play of another seed, as by another version
    arms._session.write(lambda _: arms._session.store.keep("latest", base))
    arms._session.store.close()
    with pytest.raises(DurableError, match="comes out differently here; open it there once"):
        Durable(path)
