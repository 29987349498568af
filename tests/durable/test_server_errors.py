"""What goes wrong on a server: nothing acknowledged is lost, and errors are sentences."""

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from killed_workers import ERRORS, TRIGGER
from postgres_server import missing, server

from unbounded import SCB, CostSCB
from unbounded.durable import BusyError, Durable, DurableError
from unbounded.durable.postgres import PostgresStore
from unbounded.durable.replica import Replica, id_of
from unbounded.durable.rows import ASK, TELL, Row, Snapshot
from unbounded.durable.session import Session

pytestmark = pytest.mark.skipif(missing(), reason="there is no PostgreSQL")


def told(arms, rounds=40):
    """Ask and tell until each call is acknowledged; what was told, and what was said meanwhile."""
    found, said = {}, []
    for t in range(rounds):
        for again in range(50):
            try:
                choice = arms.ask(key=str(t))
                arms.tell(choice.id, 1.0 + choice.arm, repeated="ignore" if again else "raise")
            except DurableError as error:
                said.append(str(error))
            else:
                found[str(t)] = choice.probability
                break
    return found, said


def lost(arms, acknowledged):
    """The keys that were acknowledged, and are not told once in the journal."""
    log = {row["key"]: row for row in arms.log().to_dicts()}
    assert arms.verify() == len(log) + sum(row["status"] == "told" for row in log.values())
    return [key for key in acknowledged if key not in log or log[key]["status"] != "told"]


@pytest.mark.parametrize("staleness", [0, 8])
def test_whatever_the_server_raises(database, tmp_path, staleness, monkeypatch):
    schema = f"errors{staleness}"
    url = database.url() + "&options=-c%20statement_timeout%3D100"
    arms = Durable(url, CostSCB(3, seed=0), name="x", schema=schema, staleness=staleness)
    with psycopg.connect(database.url()) as connection:
        connection.execute(TRIGGER.format(schema=schema, codes=",".join(ERRORS), of=15))
        connection.execute("SELECT setseed(0.5)")
    acknowledged, said = told(arms)
    assert len(acknowledged) == 40  # in the end, each
    for reason in ERRORS.values():
        assert any(reason in one for one in said), reason
    assert lost(arms, acknowledged) == []
    if staleness == 0:  # and it was played as if nothing had been
        assert told(Durable(tmp_path / "x.db", CostSCB(3, seed=0))) == (acknowledged, [])
    else:
        assert len(acknowledged) == arms.status().rounds

    real = Durable.tell

    def silent(*args, **options):  # the control: errors are not said
        with suppress(DurableError):
            real(*args, **options)

    monkeypatch.setattr(Durable, "tell", silent)
    arms = Durable(url, CostSCB(3, seed=0), name="silent", schema=schema, staleness=staleness)
    acknowledged, _ = told(arms)
    assert lost(arms, acknowledged) != []


def test_a_password_is_nowhere(database, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'hunter2'")
        connection.execute("GRANT ALL ON DATABASE postgres TO guarded")
        rules = database.data / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        connection.execute("SELECT pg_reload_conf()")
    right, wrong, none = (
        database.url(user=user) for user in ("guarded:hunter2", "guarded:swordfish", "guarded")
    )
    said = []
    for url in (wrong, none):
        with pytest.raises(DurableError, match="password") as caught:
            Durable(url, SCB(2, seed=0), name="x", schema="guarded")
        error = caught.value
        said += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    arms = Durable(right, SCB(2, seed=0), name="x", schema="guarded")
    assert arms.tell(arms.ask(), 1.0)
    with pytest.raises(ValueError, match="has issued no ticket") as refused:
        arms.tell(1 << 40, 1.0)
    said += [repr(arms), repr(arms._session.store), arms.status().__repr__(), str(refused.value)]
    arms._session.store._connection.execute("SET statement_timeout = 1")
    with pytest.raises(BusyError) as slow:
        arms._session.look(lambda: arms._session.store._query("SELECT pg_sleep(60)"))
    said += [str(slow.value), repr(slow.value.__context__), caplog.text, *capfd.readouterr()]
    secrets = "hunter2", "swordfish"
    assert not any(secret in text for text in said for secret in secrets)
    assert any(secret in text for text in [*said, right] for secret in secrets)  # the control


def test_a_journal_that_lost_rows_is_damaged(database):
    url, options = database.url(), {"name": "x", "schema": "cut"}
    for staleness in (0, 8):
        for lose in ("TRUNCATE cut.journal", "DELETE FROM cut.journal WHERE n > 4"):
            arms = Durable(url, SCB(2, seed=0), **options, staleness=staleness)
            choices = [arms.ask() for _ in range(3)]
            behind = Durable(url, **options, staleness=staleness)  # knows the first three rows
            arms.tell(choices[0], 1.0)
            arms.ask()
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(lose)
                for client in (arms, behind):
                    with pytest.raises(DurableError, match="damaged"):
                        client.ask()
                with pytest.raises(DurableError, match="damaged"):
                    Durable(url, **options)
                connection.execute("DROP SCHEMA cut CASCADE")
                for call, *given in ((arms.ask,), (arms.tell, choices[1].id, 1.0), (arms.status,)):
                    with pytest.raises(DurableError, match="restore them from a backup"):
                        call(*given)


def test_a_snapshot_that_is_missing_is_written_again(database, tmp_path):
    """While the journal and who knows it are there."""
    arms = Durable(database.url(), SCB(2, seed=0), name="x", schema="healed")
    file = Durable(tmp_path / "x.db", SCB(2, seed=0))
    remove = "DELETE FROM {}snapshots WHERE name = 'latest'"
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute(remove.format("healed."))
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute(remove.format(""))
    for client in (arms, file):
        with pytest.raises(DurableError, match="no snapshot"):
            client.verify()
        client.tell_many(client.ask(n=600), [1.0] * 600)
        assert client.verify() == 1200


@pytest.mark.parametrize("where", ["file", "database"])
def test_a_copy_that_fails_leaves_nothing(database, tmp_path, where, monkeypatch):
    arms = Durable(tmp_path / "x.db", SCB(2, seed=0))
    for _ in range(10):
        arms.tell(arms.ask(), 1.0)
    path = tmp_path / "copy" / "y.db"
    path.parent.mkdir()
    target = {"path": path} if where == "file" else {"path": database.url(), "name": "copied"}
    real = Session.rows

    def some(*args):
        for k, row in enumerate(real(*args)):
            if k == 7:
                raise MemoryError
            yield row

    with monkeypatch.context() as patched:
        patched.setattr(Session, "rows", some)
        with pytest.raises(MemoryError):
            arms.copy_to(**target)
    assert list(path.parent.iterdir()) == []
    with pytest.raises(DurableError, match="there is no"):
        Durable(**target)
    assert arms.copy_to(**target) == 20
    assert Durable(**target).verify() == 20
    with pytest.raises(DurableError, match="exists" if where == "file" else "already"):
        arms.copy_to(**target)


def test_a_dump_of_version_1(database):
    """Tables and rows as the first version of the schema had them, restored from a dump."""
    dump = Path(__file__).parents[1] / "data" / "durable_version_1.sql"
    with psycopg.connect(database.url()) as connection:
        connection.execute(dump.read_text())
    for name, probability in (("turns", 0.27320430699785864), ("relaxed", 0.5944795269699356)):
        options = {"name": name, "schema": "version1"}
        if name == "turns":
            with pytest.raises(DurableError, match="version 1"):
                Durable(database.url(), **options, read_only=True)
        arms = Durable(database.url(), **options, staleness=4 * (name == "relaxed"))
        assert arms.status().probabilities[0] == probability
        assert arms.verify() == 11
        assert Durable(database.url(), **options, read_only=True).status() == arms.status()
        waiting = arms.ask(key="k4")
        assert [arms.tell(waiting, 0.5), arms.tell(arms.ask(), 1.5)] == [True, True]
        assert arms.log()["loss"].to_list()[4:] == [0.5, arms.log()["loss"][5], 1.5]
        assert arms.expire(timedelta(0)) == 0


def synced(primary, replica):
    """Wait until the replica has everything."""
    with (
        psycopg.connect(primary.url()) as first,
        psycopg.connect(replica.url(), autocommit=True) as second,
    ):
        (end,) = first.execute("SELECT pg_current_wal_lsn()").fetchone()
        until = time.monotonic() + 60.0
        while second.execute("SELECT pg_last_wal_replay_lsn() < %s", (end,)).fetchone()[0]:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_failover_to_a_replica():
    with server() as primary, server(copy_of=primary) as replica:
        hosts = f"{primary.directory},{replica.directory}"
        url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"
        arms = Durable(url, CostSCB(2, seed=0), name="x")
        relaxed = Durable(url, name="x", staleness=4)
        kept = [arms.ask(key=f"kept {k}") for k in range(5)]
        arms.tell(kept[0], 1.0)
        synced(primary, replica)
        looks = Durable(replica.url(), name="x", read_only=True)  # monitoring
        assert looks.status() == arms.status()
        with pytest.raises(DurableError, match="replica"):
            Durable(replica.url(), name="x").ask()
        # What is acknowledged with "full" is on the replica.
        primary.change(synchronous_standby_names="*")
        full = Durable(url, name="x", synchronous="full")
        assert full.tell(kept[1], 1.0)
        assert looks.status() == full.status()
        # The control: by default it is not; the replica receives nothing from here on.
        primary.change(synchronous_standby_names="")
        replica.change(primary_conninfo="")
        with psycopg.connect(primary.url(), autocommit=True) as connection:
            while connection.execute("SELECT 1 FROM pg_stat_replication").fetchone():
                time.sleep(0.01)
        late = [arms.ask(key="late 0"), relaxed.ask(key="late 1")]
        assert arms.tell(late[0], 1.0)
        assert relaxed.tell(kept[2], 1.0)
        assert looks.status().rounds == 2
        primary.stop("immediate")
        with psycopg.connect(replica.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        for client in (arms, relaxed):  # the same objects go on there
            assert client.status().rounds == 2
            assert client.status().outstanding == 3
            with pytest.raises(ValueError, match="was asked after the backup is lost"):
                client.tell(late[0].id, 1.0)
        again = arms.ask(key="late 0")
        assert again.id not in {choice.id for choice in late}
        assert [relaxed.tell(choice.id, 2.0) for choice in (again, kept[2])] == [True, True]
        assert relaxed.status() == arms.status() == Durable(url, name="x").status()
        assert arms.verify() == 6 + 4
        assert looks.status().rounds == 4


@pytest.mark.parametrize("again", ["more", "other"])
def test_arms_that_were_lost_in_a_failover(database, again):
    """A client chooses one before it notices; others may have added another meanwhile."""
    options = {"name": again, "schema": "failover"}
    relaxed = Durable(database.url(), CostSCB(2, seed=0), **options, staleness=4)
    turns = Durable(database.url(), **options)
    turns.tell(turns.ask(), 1.0)
    with psycopg.connect(database.url(), autocommit=True) as connection:
        saved = connection.execute("SELECT id, n, chain FROM failover.learners WHERE name = %s",
                                   (again,)).fetchone()  # fmt: skip
        turns.add_arm("more")
        assert relaxed.status().arms == ("0", "1", "more")
        delete = "DELETE FROM failover.journal WHERE learner = %s AND n > %s"
        connection.execute(delete, saved[:2])
        update = "UPDATE failover.learners SET n = %s, chain = %s WHERE id = %s"
        connection.execute(update, (*saved[1:], saved[0]))
    if again == "other":
        turns.add_arm("other")
    replica = relaxed._session._replica
    draws = (replica.drawn(word, None, 0) for word in range(0, 2**64, 2**58))
    asked = next(row for row in draws if row.name == "more")
    _, (row,), after = relaxed._session.add(lambda _: [asked], 4)
    assert after.ticket(row).arm is None
    learned = turns.learner().rounds
    assert turns.tell(after.ticket(row).id, 1.0)
    assert turns.learner().rounds == learned  # nothing, as there is no such arm
    assert turns.tell(turns.ask(), 1.0)
    assert turns.learner().rounds == learned + 1
    assert relaxed.status() == turns.status() == Durable(database.url(), **options).status()
    assert turns.verify() == turns.status().rows


def _may_mount():
    status = Path("/proc/self/status")
    found = status.read_text().partition("CapEff:")[2].split() if status.exists() else ["0"]
    return int(found[0], 16) >> 21 & 1 == 1


@pytest.mark.long
@pytest.mark.skipif(not _may_mount(), reason="a small disk is mounted")
def test_a_disk_that_is_full(tmp_path):
    """The log of the server is on it too: it stops, and must be started again."""
    disk = Path("/tmp") / f"small{os.getpid()}"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=120m,mode=755", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    try:
        with server(root=str(disk), min_wal_size="2MB", max_wal_size="4MB") as small:
            arms = Durable(small.url(), CostSCB(2, seed=0), arms=["a" * 500, "b"], name="x")
            acknowledged, said = [], []
            for turn in range(2):
                room = os.statvfs(disk)
                filler = disk / "filler"
                filler.write_bytes(b"\0" * (room.f_bavail * room.f_frsize - 1_000_000))
                for k in range(20_000):
                    key = f"{turn} {k}"
                    try:
                        arms.tell(arms.ask(key=key), 1.0)
                    except DurableError as error:
                        said.append(str(error))
                        break
                    acknowledged.append(key)
                filler.unlink()
                small.stop("immediate")
                small.start()
                choice = arms.ask(key=key)
                arms.tell(choice, 1.0, repeated="ignore")
                acknowledged.append(key)
            assert len(said) == 2
            assert all("disk is full" in one or "cannot be reached" in one for one in said), said
            assert lost(arms, acknowledged) == []
            assert arms.status().rounds == len(acknowledged) > 100
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
        disk.rmdir()


NETWORK = """
ip link add {0}a type veth peer name {0}b
ip netns add {0}
ip link set {0}b netns {0}
ip addr add 10.77.77.1/30 dev {0}a
ip link set {0}a up
ip -n {0} addr add 10.77.77.2/30 dev {0}b
ip -n {0} link set {0}b up
"""
CLIENT = """
import sys, time
from unbounded import CostSCB
from unbounded.durable import Durable, DurableError

for staleness in (0, 4):
    options = {"name": str(staleness), "staleness": staleness, "timeout": 2.0}
    arms = Durable(sys.argv[1], CostSCB(2, seed=0), **options)
    choice = arms.ask()
    print("open", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    try:
        arms.tell(choice, 1.0)
    except DurableError as error:
        print(time.monotonic() - began, error, flush=True)
    sys.stdin.readline()
    for again in range(9, -1, -1):  # the network takes a moment
        try:
            arms.tell(choice, 1.0, repeated="ignore")
            break
        except DurableError:
            assert again
    assert arms.verify() == 2
"""


@pytest.mark.long
@pytest.mark.skipif(not _may_mount() or shutil.which("ip") is None, reason="a network is made")
def test_a_network_that_is_cut():
    """No packet comes back, not even that there is nobody: calls end after the timeout."""
    name = f"n{os.getpid()}"
    made = subprocess.run(["sh", "-ec", NETWORK.format(name)], capture_output=True)
    try:
        if made.returncode != 0:
            pytest.skip("no network can be made here")
        with server(listen_addresses="10.77.77.1") as far:
            rules = far.data / "pg_hba.conf"
            rules.write_text("host all all 10.77.77.0/30 trust\n" + rules.read_text())
            far.restart()
            url = "postgresql://postgres@10.77.77.1/postgres"
            command = ["ip", "netns", "exec", name, sys.executable, "-c", CLIENT, url]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            with subprocess.Popen(command, **pipes) as client:
                for _ in range(2):
                    assert client.stdout.readline() == "open\n"
                    subprocess.run(["ip", "link", "set", f"{name}a", "down"], check=True)
                    print(file=client.stdin, flush=True)
                    seconds, _, said = client.stdout.readline().partition(" ")
                    assert 1.0 < float(seconds) < 20.0
                    assert "cannot be reached" in said
                    subprocess.run(["ip", "link", "set", f"{name}a", "up"], check=True)
                    print(file=client.stdin, flush=True)
            assert client.returncode == 0
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], capture_output=True)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def test_the_backup_of_the_page_is_one(monkeypatch):
    page = Path(__file__).parents[2].joinpath("docs/guide/many-hosts.md").read_text()
    recipes = [part.partition("```")[0] for part in page.split("```sh\n")[1:]]
    assert len(recipes) == 2
    with server() as one:
        monkeypatch.setenv("PATH", f"{one.programs}:{os.environ['PATH']}")
        monkeypatch.setenv("DATABASE", one.url())
        monkeypatch.setenv("OTHER_DATABASE", one.url("other"))
        monkeypatch.chdir(one.directory)
        with psycopg.connect(one.url(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE other")
        arms = Durable(one.url(), CostSCB(2, seed=0), name="x")
        relaxed = Durable(one.url(), CostSCB(2, seed=0), name="y", staleness=4)
        for client in (arms, relaxed):
            told(client, 10)
        before = arms.status(), relaxed.status()
        for recipe in recipes:
            late = arms.ask()  # not in the backup that was made before, if it is that of the page
            subprocess.run(["sh", "-ec", recipe], check=True, capture_output=True)
        restored = [Durable(one.url("other"), name=name) for name in "xy"]
        assert [client.verify() for client in restored] == [21, 20]
        assert restored[1].status() == before[1]
        assert restored[0].status().rounds == before[0].rounds
        with pytest.raises(ValueError, match="was asked after the backup is lost"):
            restored[0].tell(late.id, 1.0)
        (first,) = restored[0].outstanding()
        assert restored[0].tell(first, 1.0)
        assert arms.tell(first, 1.0)


def test_an_encoding_that_lacks_letters_is_rejected_at_once(database):
    for encoding in ("LATIN1", "SQL_ASCII"):
        with psycopg.connect(database.url(), autocommit=True) as connection:
            made = f"ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'"
            connection.execute(f"CREATE DATABASE {encoding.lower()} {made}")
        with pytest.raises(DurableError, match=f"has the encoding {encoding}"):
            Durable(database.url(encoding.lower()), SCB(2, seed=0), name="x")
    arms = Durable(database.url(), SCB(2, seed=0), name="☃", arms=["é", "☃"], staleness=4)
    choice = arms.ask(key="☃ é", context={"☃": "é"})  # the control
    assert arms.tell(choice, 1.0)
    assert arms.ask(key="☃ é") == choice
    assert arms.verify() == 2


def test_an_address_that_shows_a_part_of_its_password_is_not_shown():
    parts = ("me:hun@ter2@host/db", "me:hun/ter2@host/db", "me:hun%zzter2@host/db")
    addresses = [f"postgresql://{part}" for part in (*parts, "me:ter2@h/\0", "me:ter2@h/\ud800")]
    others = [f"{kind}://me:hunter2@host/db" for kind in ("POSTGRESQL", "postgresql+psycopg")]
    for address in [*addresses, *others]:
        for options in ({"name": "x"}, {}):
            if options or address in others:
                with pytest.raises((ValueError, TypeError), match=r"address|name=") as caught:
                    Durable(address, SCB(2, seed=0), **options)
                assert "ter2" not in repr([caught.value, caught.value.__context__])


def test_why_a_connection_is_rejected_is_said(database):
    for url, reason in (
        (database.url("nowhere"), 'database "nowhere" does not exist'),
        (database.url(user="nobody here"), 'role "nobody here" does not exist'),
    ):
        with pytest.raises(DurableError, match=f"cannot be reached .{reason}"):
            Durable(url.replace(" ", "%20"), SCB(2, seed=0), name="x")


LOSSES_OF_RIGHTS = {
    "REVOKE INSERT ON rights.journal FROM losing": "grants",
    "REVOKE USAGE ON SCHEMA rights FROM losing": "grants",
    "REVOKE UPDATE ON rights.learners FROM losing": "grants",
    "ALTER ROLE losing NOLOGIN": "not permitted to log in",
}


@pytest.mark.parametrize("staleness", [0, 8])
def test_a_role_that_loses_its_rights(database, staleness):
    owner = Durable(database.url(), SCB(2, seed=0), name=f"x{staleness}", schema="rights")
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS losing")
        connection.execute("CREATE ROLE losing LOGIN")
        give = "GRANT {} ON ALL {} IN SCHEMA rights TO losing"
        for lose, reason in LOSSES_OF_RIGHTS.items():
            connection.execute("ALTER ROLE losing LOGIN")
            connection.execute("GRANT USAGE ON SCHEMA rights TO losing")
            connection.execute(give.format("ALL", "TABLES"))
            connection.execute(give.format("EXECUTE", "FUNCTIONS"))
            options = {"name": f"x{staleness}", "schema": "rights", "staleness": staleness}
            arms = Durable(database.url(user="losing"), **options)
            choice = arms.ask()
            connection.execute(lose)
            if reason != "grants":  # who is connected goes on
                assert arms.tell(choice, 1.0)
                arms._session.store.close()
            else:
                rows = owner.status().rows
                with pytest.raises(DurableError, match=reason):
                    arms.tell(choice, 1.0)
                assert owner.status().rows == rows
                assert owner.tell(choice.id, 1.0)
            with pytest.raises(DurableError, match=reason):
                arms.ask()
        connection.execute("DROP OWNED BY losing")
    assert owner.status().rounds == len(LOSSES_OF_RIGHTS)
    assert owner.verify() == 2 * len(LOSSES_OF_RIGHTS)


@pytest.mark.parametrize("staleness", [0, 8])
def test_numbers_beyond_32_bits(database, tmp_path, staleness):
    """A learner that has had three billion rows, all of which but a few were removed."""
    name, last = f"long {staleness}", 3 * 10**9
    first = Snapshot(last - 2, b"0123456789abcdef", "")
    asked = Row(last - 1, ASK, None, 0, "old", 0, 0, "0", 0.5)
    asked = asked._replace(digest=asked.digest_after(first.chain))
    told = Row(last, TELL, id_of(asked), 0, loss=1.0)
    told = told._replace(digest=told.digest_after(asked.digest))
    before = Replica(CostSCB(2, seed=0), ["0", "1"], last, told.digest).snapshot("")

    def fill(store):
        store.append(asked)
        store.append(told)
        store.keep("base", before)
        store.keep("latest", before)

    options = {"synchronous": "normal", "timeout": 20.0, "read_only": False}
    PostgresStore(database.url(), name, **options).create(first, fill)
    arms = Durable(database.url(), name=name, staleness=staleness)
    choices = arms.ask(["a", "b", "c"], n=3)
    assert choices[0].id >> 20 == last + 1
    assert arms.tell_many(choices, [1.0, 2.0, 3.0]) == [True] * 3
    assert arms.ask(key="b") == choices[1]
    assert arms.verify() == 6
    assert arms.log()["asked_as"].to_list() == [last - 1, last + 1, last + 2, last + 3]
    assert arms.copy_to(tmp_path / "x.db") == 8
    assert Durable(tmp_path / "x.db").status() == arms.status()


@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="there is no PgBouncer")
@pytest.mark.parametrize("drops", [False, True])
def test_a_pooler_that_would_lose_the_settings_is_rejected(database, drops):
    """Without time-outs a client that stops would stop all; "full" would not be full."""
    directory = Path(tempfile.mkdtemp(prefix="bounce", dir="/tmp"))
    directory.chmod(0o777)
    ignored = "ignore_startup_parameters = options" if drops else ""
    (directory / "ini").write_text(
        f"[databases]\n* = host={database.directory} user=postgres\n[pgbouncer]\n"
        f"listen_addr =\nlisten_port = 6543\nunix_socket_dir = {directory}\nauth_type = any\n"
        f"pool_mode = transaction\n{ignored}\n"
    )
    command = ["pgbouncer", str(directory / "ini")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **database.user) as pooler:
        try:
            until = time.monotonic() + 30.0
            while not (directory / ".s.PGSQL.6543").exists():
                assert time.monotonic() < until
                time.sleep(0.01)
            url = f"postgresql://postgres@/postgres?host={directory}&port=6543"
            with pytest.raises(DurableError, match="pooler" if drops else "startup parameter"):
                Durable(url, SCB(2, seed=0), name="pooled")
            if drops:  # the control: it passes calls on
                with psycopg.connect(url) as connection:
                    assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)
        finally:
            pooler.terminate()
    shutil.rmtree(directory)
