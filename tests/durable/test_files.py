"""What people do to the files while they are in use: read, link, remove and replace them."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from unbounded import SCB
from unbounded.durable import Durable, DurableError, database, files, store

STRANGER = """
import sqlite3, sys
from contextlib import closing
from unbounded.durable import Durable
for line in sys.stdin:
    way, path = line.rstrip("\\n").split(" ", 1)
    if way == "raw":
        with closing(sqlite3.connect(path)) as connection:
            answer = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
    elif way == "played":
        with Durable(path) as arms:
            arms.tell(arms.ask(), loss=1.0)
            answer = arms.status().rounds
    else:
        with Durable(path) as arms:
            answer = arms.status().rounds
    print(answer, flush=True)
"""


@pytest.fixture(scope="module")
def stranger():
    """Another process, that opens and closes a file when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", STRANGER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"UNBOUNDED_JIT": "never"},
    ) as process:

        def visit(path, way="opened"):
            process.stdin.write(f"{way} {path}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield visit
        process.stdin.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arms.db"


def made(path, rounds=3):
    arms = Durable(path, SCB(n_arms=3, seed=0))
    play(arms, rounds)
    return arms


def play(arms, rounds):
    for _ in range(rounds):
        assert arms.tell(arms.ask().id, loss=1.0)


@pytest.mark.skipif(not files.OFD, reason="the locks of this system do not outlive it")
@pytest.mark.parametrize("way", ["opened", "raw", "played"])
def test_a_worker_may_read_its_own_file(path, stranger, way):
    """Which takes SQLite's locks away: who then closes the file must not remove its log."""
    arms = made(path)
    for _ in range(3):
        path.read_bytes()
        stranger(path, way)
        play(arms, 20)
    extra = 3 if way == "played" else 0
    assert stranger(path) == arms.status().rounds == 63 + extra
    path.read_bytes()
    assert arms.verify() == 126 + 2 * extra
    arms.close()
    assert stranger(path) == 63 + extra


@pytest.mark.parametrize("way", ["opened", "played"])
def test_without_such_locks_nothing_is_acknowledged_that_gets_lost(
    path, stranger, monkeypatch, way
):
    for module in (files, store):
        monkeypatch.setattr(module, "OFD", False)
    arms = made(path)
    path.read_bytes()
    rounds = stranger(path, way)
    with pytest.raises(DurableError, match="was removed or replaced"):
        arms.ask()
    arms.close()
    assert stranger(path) == rounds


@pytest.mark.parametrize("end", ["-wal", "-shm", ""])
@pytest.mark.parametrize("way", ["removed", "replaced"])
def test_a_file_that_is_taken_away_is_noticed_before_anything_is_acknowledged(path, end, way):
    arms = made(path)
    choice = arms.ask()
    there = path.with_name(path.name + end)
    if way == "replaced":
        shutil.copy(there, path.with_name("copy"))
        os.replace(path.with_name("copy"), there)
    else:
        there.unlink()
    for use in (arms.ask, lambda: arms.tell(choice.id, loss=1.0), arms.ask):
        with pytest.raises(DurableError, match=r"removed or replaced.*open it again"):
            use()
    arms.close()  # which writes nothing into what is there now


def test_a_file_that_is_taken_away_during_a_call_is_noticed(path):
    arms = made(path)

    def work(replica):
        row, ticket = replica.ask(None, 0)
        arms._session.store.append(row)
        path.rename(path.with_name("elsewhere.db"))
        return ticket

    with pytest.raises(DurableError, match="removed or replaced"):
        arms._session.write(work)


def test_an_orphan_does_not_write_over_what_others_have_done(path, stranger):
    """It has a log of its own, and SQLite would copy that into the file when it is closed."""
    arms = made(path)
    arms.backup(path.with_name("copy"))
    path.with_name("arms.db-wal").unlink()
    path.with_name("arms.db-shm").unlink()
    os.replace(path.with_name("copy"), path)
    for _ in range(30):
        rounds = stranger(path, "played")
    with pytest.raises(DurableError, match="removed or replaced"):
        arms.close()
    del arms
    assert stranger(path) == rounds == 33
    assert Durable(path).verify() == 66


def test_a_second_name_is_rejected(path):
    arms = made(path)
    other = path.with_name("other.db")
    os.link(path, other)
    for use in (arms.ask, lambda: Durable(path), lambda: Durable(other)):
        with pytest.raises(DurableError, match="second name"):
            use()
    other.unlink()
    play(arms, 3)
    assert arms.status().rounds == 6
    assert arms.verify() == 12


def test_a_symbolic_link_is_the_file_itself(path, stranger):
    arms = made(path)
    link = path.with_name("link.db")
    link.symlink_to(path.name)
    with Durable(link) as other:
        play(other, 3)
    assert stranger(link) == arms.status().rounds == 6
    assert not link.with_name("link.db-wal").exists()


def test_what_is_only_read_makes_no_files(path, stranger):
    """Else the service's user may find files beside its own that it cannot write."""
    made(path).close()
    before = sorted(path.parent.iterdir())
    with Durable(path, read_only=True) as look:
        assert look.status().rounds == 3
        assert look.verify() == 6
        assert sorted(path.parent.iterdir()) == before
        assert stranger(path, "played") == look.status().rounds == 4  # it follows
        with Durable(path) as arms:
            play(arms, 2)
            assert look.status().rounds == 6
        assert look.status().rounds == 6
    Durable(path).close()
    with Durable(path, read_only=True) as look:
        shutil.copy(path, path.with_name("copy"))
        with Durable(path.with_name("copy")) as arms:
            play(arms, 1)
        os.replace(path.with_name("copy"), path)
        assert look.status().rounds == 7


def test_what_is_only_read_makes_no_files_after_a_crash(path):
    crashed(path)
    before = sorted(path.parent.iterdir())
    for _ in range(2):
        with Durable(path, read_only=True) as look:
            assert look.verify() == 6
    assert sorted(path.parent.iterdir()) == before
    path.with_name("arms.db-shm").unlink()
    with pytest.raises(DurableError, match="open it once without read_only=True"):
        Durable(path, read_only=True)
    assert sorted(path.parent.iterdir()) == [one for one in before if one.name != "arms.db-shm"]
    Durable(path).close()
    with Durable(path, read_only=True) as look:
        assert look.verify() == 6


@pytest.fixture
def disk(tmp_path):
    """A directory, and how to make it read-only."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "tmpfs", str(place)], capture_output=True
    ).returncode:
        pytest.skip("mount is not permitted here")
    yield place, lambda: subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount here")
def test_a_read_only_disk_can_be_looked_at(disk):
    place, freeze = disk
    made(place / "closed.db").close()
    crashed(place / "crashed.db")
    freeze()
    for name in ("closed.db", "crashed.db"):
        with Durable(place / name, read_only=True) as look:
            assert (look.status().rounds, look.verify(), look.log().height) == (3, 6, 3)
        for learner in (None, SCB(n_arms=3)):
            with pytest.raises(DurableError, match=r"or only look, with read_only=True"):
                Durable(place / name, learner)
    with pytest.raises(DurableError, match="make it and its directory readable and writable"):
        Durable(place / "new.db", SCB(n_arms=3))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root becomes another")
def test_a_user_who_may_only_read_can_look_at_a_closed_file(path):
    made(path).close()
    script = f"""
import os, shutil
from unbounded.durable import Durable
shutil.copy({str(path)!r}, {str(path)!r} + ".copy")
with Durable({str(path)!r} + ".copy", read_only=True) as look:
    look.log(), look.verify()  # what is imported later may not be readable
for above in {[str(p) for p in path.parents if "pytest" in str(p)]}:
    os.chmod(above, 0o755)
os.chmod({str(path)!r}, 0o444)
os.setgid(65534); os.setuid(65534)
with Durable({str(path)!r}, read_only=True) as look:
    print(look.status().rounds, look.verify(), look.log().height)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"UNBOUNDED_JIT": "never"},
    )
    assert done.stdout.split() == ["3", "6", "3"], done.stderr


# ---------------------------------------------------------------------- logs that get lost


def crashed(path, rounds=3):
    """The files of a service that was killed."""
    arms = made(path.with_name("running.db"), rounds)
    for end in ("", "-wal", "-shm"):
        shutil.copy(path.with_name(f"running.db{end}"), path.with_name(path.name + end))
    arms.close()


def test_the_control_a_crash_loses_nothing(path):
    crashed(path)
    assert Durable(path, SCB(n_arms=3)).status().rounds == 3


@pytest.mark.skipif(not files.OFD, reason="files are marked where locks outlive readers")
@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("damage", ["lost", "both", "copied", "cut", "header", "checksum", "frame"])
def test_a_log_that_gets_lost_is_noticed(path, damage, checkpoints, monkeypatch):
    if checkpoints:  # the log is written back now and then, and begins again
        monkeypatch.setattr(database, "_PAGES", 20)
    crashed(path, 30)
    log = path.with_name("arms.db-wal")
    content = bytearray(log.read_bytes())
    if damage in ("lost", "both", "copied"):
        log.unlink()
        if damage != "lost":
            path.with_name("arms.db-shm").unlink()
        if damage == "copied":
            path = shutil.copy(path, path.with_name("copy.db"))
    elif damage == "cut":
        log.write_bytes(b"")
    else:
        content[{"header": 0, "checksum": 27, "frame": 100}[damage]] ^= 255
        log.write_bytes(content)
    for options in ({}, {"read_only": True}, {"learner": SCB(n_arms=3)}):
        with pytest.raises(DurableError, match=r"write-ahead log is missing or damaged"):
            Durable(path, **options)
    if damage in ("header", "checksum"):
        assert log.read_bytes() == content  # whoever can may repair it
    with closing(sqlite3.connect(path)) as connection:  # as the sentence says
        connection.execute("PRAGMA user_version = 1")
    with Durable(path) as arms:
        assert (arms.status().rounds > 0) == checkpoints
        play(arms, 3)
        assert arms.verify() == arms.status().rows


@pytest.mark.skipif(not files.OFD, reason="files are marked where locks outlive readers")
@pytest.mark.parametrize("way", ["killed", "raw", "raw backup", "backup", "closed"])
def test_who_has_lost_nothing_is_not_told_so(path, way, monkeypatch):
    monkeypatch.setattr(database, "_PAGES", 20)
    crashed(path, 30)
    if way == "raw":  # somebody looks with another program, which writes the log back
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT count(*) FROM journal").fetchone()
    elif way == "raw backup":
        with (
            closing(sqlite3.connect(path)) as connection,
            closing(sqlite3.connect(path.with_name("copy.db"))) as target,
        ):
            connection.backup(target)
        path = path.with_name("copy.db")
    elif way != "killed":
        with Durable(path) as arms:
            play(arms, 1)
            if way == "backup":
                arms.backup(path.with_name("copy.db"))
        path = path.with_name("copy.db") if way == "backup" else path
    for options in ({"read_only": True}, {}):
        with Durable(path, **options) as arms:
            assert arms.status().rounds == (31 if way in ("backup", "closed") else 30)


@pytest.mark.skipif(not files.OFD, reason="files are marked where locks outlive readers")
def test_a_log_that_others_read_is_protected_although_it_is_written_back(path, monkeypatch):
    """A reader keeps the last rows from being written back; the mark is."""
    monkeypatch.setattr(database, "_PAGES", 20)
    arms = made(path, 30)
    with closing(sqlite3.connect(path)) as reader, reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM journal").fetchone()
        for _ in range(30):
            play(arms, 1)
            alone = shutil.copy(path, path.with_name("alone.db"))
            with pytest.raises(DurableError, match="write-ahead log is missing"):
                Durable(alone)
    arms.close()
    with Durable(path) as arms:
        assert arms.status().rounds == 60


@pytest.mark.skipif(not files.OFD, reason="files are marked where locks outlive readers")
def test_a_mark_that_another_process_is_just_setting_is_no_loss(path, monkeypatch):
    arms, whole, looks = made(path), database.Database._patiently, []

    def patiently(self, connection, statement):
        rows = whole(self, connection, statement)
        if statement == "PRAGMA user_version" and not looks:
            looks.append(rows)  # as one sees it who began before the page was in the log
            return [(1 | files.MARK,)]
        return rows

    monkeypatch.setattr(database.Database, "_patiently", patiently)
    assert Durable(path).status().rounds == 3
    assert looks == [[(1,)]]
    sizes = iter([-1])  # the log was begun just after somebody looked
    monkeypatch.setattr(database, "log_size", lambda path: next(sizes, 1))
    assert Durable(path, read_only=True).status().rounds == 3
    arms.close()


@pytest.mark.skipif(not files.OFD, reason="files are marked where locks outlive readers")
def test_what_could_not_be_marked_is_marked_by_the_next_call(path, monkeypatch):
    def fails(_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(files.Files, "mark", fails)
    arms = made(path)  # what is acknowledged is in the log all the same
    monkeypatch.undo()
    assert arms._session.store._files.marked is False
    play(arms, 1)
    assert arms._session.store._files.marked is True
    arms.close()
    assert Durable(path).status().rounds == 4


def test_an_empty_file_beside_a_log_is_not_made_anew(path):
    crashed(path)
    path.write_bytes(b"")
    with pytest.raises(DurableError, match="is empty, and its write-ahead log is not"):
        Durable(path, SCB(n_arms=3))
    assert path.with_name("arms.db-wal").stat().st_size > 0


def test_the_tables_are_in_the_file_before_there_is_a_log(path, monkeypatch):
    """Should whoever makes the file be killed, and its log get lost."""
    whole, copy = store.Store._make, path.with_name("copy.db")

    def made_and_killed(self, connection, beginning):
        whole(self, connection, beginning)
        shutil.copy(path, copy)

    monkeypatch.setattr(store.Store, "_make", made_and_killed)
    Durable(path, SCB(n_arms=3)).close()
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (3,)
