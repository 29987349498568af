"""Durable learners in PostgreSQL: the plays of a file, many learners, many hosts, errors."""

import json
import os
import random
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from killed_workers import ERRORS
from postgres_server import missing

import unbounded
from interrupt_helpers import CHECKED, PACKAGE, interrupted, no_callbacks
from unbounded import SCB, CostSCB
from unbounded.durable import BusyError, Durable, DurableError
from unbounded.durable.replica import Replica

pytestmark = pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
LOSSES = [3.0, 1.0, 2.0]
_names = iter(range(10**6))


@pytest.fixture
def name():
    return f"learner {next(_names)}"


def played(arms, rounds):
    """Ask and tell, some late; the arms and probabilities."""
    found, late = [], []
    for t in range(rounds):
        choice = arms.ask(key=f"k{t}" if t % 5 == 0 else None)
        found.append((choice.arm, choice.probability))
        late.append(choice)
        if t % 3:
            choice = late.pop(0)
            arms.tell(choice, LOSSES[choice])
    return found


def test_it_plays_as_a_file_does(database, tmp_path, name):
    file = Durable(tmp_path / "x.db", CostSCB(3, seed=0), arms=["a", "b", "c"])
    base = Durable(database.url(), CostSCB(3, seed=0), arms=["a", "b", "c"], name=name)
    for arms in (file, base):
        arms.plays = [played(arms, 60)]
        arms.expire(timedelta(0), loss=9.0)
        arms.retire_arm("b")
        arms.add_arm("d")
        arms.plays.append([arms.ask().probability, arms.verify()])
    assert file.plays == base.plays
    assert file.status() == base.status()
    again = Durable(database.url(), name=name)  # and it is read from there
    assert (
        again.learner().save().split('"outstanding"')[0]
        == (base.learner().save().split('"outstanding"')[0])
    )
    columns = ["key", "epoch", "arm", "name", "probability", "loss", "scale", "status"]
    assert file.log().select(columns).equals(again.log().select(columns))
    again.expire(timedelta(0))
    assert again.prune(timedelta(0)) > 0
    assert again.verify() == 0
    base.ask()
    assert len(base.log()) == 1


def test_relaxed_clients_agree_on_what_the_journal_says(database, name):
    learner = CostSCB(3, half_life=200, seed=0)
    clients = [Durable(database.url(), learner, name=name, staleness=8) for _ in range(3)]
    drawn, waiting = {}, []
    for t in range(150):
        choice = clients[t % 3].ask(key=str(t))
        drawn[choice.id] = choice.arm, choice.probability
        waiting.append(choice)
        if len(waiting) > 5:
            choice = waiting.pop(0)
            assert clients[(t // 2) % 3].tell(choice.id, LOSSES[choice])
    assert clients[0].ask(key="3").id == next(k for k in drawn if k >> 20 == 4)
    log = clients[1].log()
    assert {row["id"]: (row["arm"], row["probability"]) for row in log.to_dicts()} == drawn
    probabilities = {client.status().probabilities for client in clients}
    assert len(probabilities) == 1  # all have learned the same
    assert clients[2].verify() == len(log) + log["told_as"].drop_nulls().len()
    for repeated in ("raise", "ignore"):
        if repeated == "ignore":
            assert not clients[1].tell(choice.id, 1.0, repeated="ignore")
        else:
            with pytest.raises(ValueError, match=str(choice.id)):
                clients[1].tell(choice.id, 1.0)
    with pytest.raises(ValueError, match="no ticket"):
        clients[1].tell(1 << 20, 1.0)


def test_an_ask_knows_all_but_so_many_tells(database, name):
    from unbounded.durable.postgres import STALE

    first, second = (Durable(database.url(), SCB(3, seed=0), name=name, staleness=2) for _ in "ab")
    first.ask()
    second.status()
    replica, store = second._session._replica, second._session.store
    row, seen = replica.drawn(7, None, store.now()), replica.n
    for _ in range(3):
        number, _ = store.add([row], seen, 2)
        assert number > 0
        first.tell(first.ask(), 1.0)
    number, rows = store.add([row], seen, 2)
    assert number == STALE
    assert [row.kind for row in rows].count(1) == 3  # what it did not know
    assert second.ask().id >> 20 > number  # catches up, draws again


@pytest.mark.parametrize("jit", ["never"])
def test_what_another_host_drew_is_taken_as_it_is(database, name, jit):
    """A client whose bits differ: its probabilities are not ours, and are what counts."""
    ours = Durable(database.url(), SCB(3, seed=0), name=name, staleness=8)
    row = ours._session._replica.drawn(7, None, 0)
    kept = json.loads(row.payload)["record"]
    kept[1] = kept[2] = row.probability * (1 + 2**-40)
    row = row._replace(probability=kept[1], payload=json.dumps({"record": kept}).encode())
    ours._session.add(lambda replica: [row], 10)
    assert ours.status().outstanding == 1
    assert ours.log()["probability"].item() == kept[1]
    forged = row._replace(payload=json.dumps({"record": [row.arm, 0.0, 0.0]}).encode())
    with pytest.raises(ValueError, match="record"):
        ours._session.add(lambda replica: [forged], 10)


def test_learners_and_schemas_are_apart(database, name):
    hostile = f"{name}'; DROP SCHEMA unbounded CASCADE; --"
    schema = 'odd"; DROP SCHEMA unbounded CASCADE; --'
    url = database.url()
    for k, (learner, place) in enumerate(
        [(name, "unbounded"), (hostile, "unbounded"), (name, schema)]
    ):
        arms = Durable(url, SCB(3, seed=0), name=learner, schema=place, arms=["x'", 'y"', "z\\"])
        for _ in range(k + 1):
            arms.tell(arms.ask(key="k'; --" + str(_)), 1.0)
        assert arms.status().rounds == k + 1
    assert Durable(url, name=name).status().rounds == 1


def test_tenants_of_similar_names_are_apart(database):
    """Names that differ in case, in normal form or by a blank; those of schemas too."""
    alike = ["x", "X", "x ", "\u200bx", "\u00e9", "e\u0301", "\u017f", "s", "{s}", '"', "\\", ";"]
    url = database.url()
    for k, one in enumerate(alike):
        for options in ({"name": one}, {"name": "x", "schema": f"alike {one}", "staleness": 2}):
            arms = Durable(url, SCB(2, seed=0), **options)
            for _ in range(k + 1):
                arms.tell(arms.ask(), 1.0)
    for k, one in enumerate(alike):
        for options in ({"name": one}, {"name": "x", "schema": f"alike {one}"}):
            assert Durable(url, **options).status().rounds == k + 1
    for one in ("%", "%%", "%s", "$user"):  # two that are one, a placeholder, each role's own
        with pytest.raises(ValueError, match="schema must be without"):
            Durable(url, SCB(2, seed=0), name="x", schema=one)


def test_errors_are_sentences_without_secrets(database, name, tmp_path):
    learner = SCB(2, seed=0)
    with pytest.raises(TypeError, match="name="):
        Durable(database.url(), learner)
    with pytest.raises(TypeError, match="name="):
        Durable(tmp_path / "x.db", learner, name="x")
    with pytest.raises(TypeError, match="staleness="):
        Durable(tmp_path / "x.db", learner, staleness=3)
    with pytest.raises(DurableError, match="give Durable a learner"):
        Durable(database.url(), name=name)
    other = CostSCB(2, tune="scale", implicit=0.0, delayed="adaptive")
    with pytest.raises(ValueError, match="staleness=0"):
        Durable(database.url(), other, name=name, staleness=3)
    with pytest.raises(ValueError, match="name must be"):
        Durable(database.url(), learner, name="\ud800")
    with pytest.raises(ValueError, match="schema"):  # the server would shorten it
        Durable(database.url(), learner, name=name, schema="x" * 64)
    nowhere = f"postgresql://me:hunter2@/db?host={tmp_path}"
    for url in (nowhere, "postgresql://me:hunter2@[bad/db"):
        with pytest.raises((DurableError, ValueError)) as caught:
            Durable(url, learner, name=name, timeout=1.0)
        assert "hunter2" not in "".join(map(str, [caught.value, caught.value.__cause__]))
    Durable(database.url(), learner, name=name)
    looks = Durable(database.url(), name=name, read_only=True)
    assert looks.status().rounds == 0
    with pytest.raises(DurableError, match="read_only"):
        looks.ask()


def test_a_newer_schema_is_left_alone(database, name):
    arms = Durable(database.url(), SCB(2, seed=0), name=name, schema="newer")
    with psycopg.connect(database.url()) as connection:
        connection.execute("UPDATE newer.version SET version = 99")
    with pytest.raises(DurableError, match="version 99"):
        Durable(database.url(), name=name, schema="newer")
    arms.close()


def test_an_older_schema_is_upgraded_by_who_may_write(database, name, monkeypatch):
    from unbounded.durable import postgres

    with monkeypatch.context() as older:
        older.setattr(postgres, "VERSION", 1)
        older.setattr(postgres, "_MIGRATIONS", postgres._MIGRATIONS[:1])
        old = Durable(database.url(), SCB(2, seed=0), name=name, schema="older")
        old.tell(old.ask(), 1.0)
    for _ in range(2):  # the first has changed nothing
        with pytest.raises(DurableError, match="version 1"):
            Durable(database.url(), name=name, schema="older", read_only=True)
    new = Durable(database.url(), name=name, schema="older", staleness=4)
    assert new.tell(new.ask(), 2.0)
    assert old.tell(old.ask(), 3.0)  # who is open goes on
    assert Durable(database.url(), name=name, schema="older", read_only=True).status().rounds == 3
    with psycopg.connect(database.url()) as connection:
        found = connection.execute("SELECT version FROM older.version").fetchall()
    assert found == [(postgres.VERSION,)]


def test_connections_leave_nothing_behind(database, name):
    import weakref

    arms = Durable(database.url(), SCB(2, seed=0), name=name)
    store, gone, registered = arms._session.store, [], len(weakref.finalize._registry)
    for _ in range(5):
        arms.ask()
        gone.append(weakref.ref(store._connection))
        store.close()
    assert [connection() for connection in gone] == [None] * 5
    assert len(weakref.finalize._registry) == registered


@pytest.mark.parametrize("staleness", [0, 8])
def test_a_learner_that_was_removed_is_not_there_any_more(database, name, staleness):
    arms = Durable(database.url(), SCB(2, seed=0), name=name, schema="gone", staleness=staleness)
    choice = arms.ask()
    with psycopg.connect(database.url()) as connection:
        connection.execute("TRUNCATE gone.learners CASCADE")
    for call in (arms.ask, lambda: arms.tell(choice, 1.0)):
        with pytest.raises(DurableError, match="there is no learner"):
            call()


def test_a_role_needs_the_grants_of_the_page_and_no_more(database, name):
    Durable(database.url(), SCB(2, seed=0), name=name, schema="granted").ask()
    page = Path(__file__).parents[2].joinpath("docs/guide/many-hosts.md").read_text()
    grants = page.partition("```sql")[2].partition("```")[0].replace("unbounded.", "granted.")
    with psycopg.connect(database.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE service LOGIN")
        url = database.url(user="service")
        with pytest.raises(DurableError, match="grants"):
            Durable(url, name=name, schema="granted")
        connection.execute(grants.replace("SCHEMA unbounded", "SCHEMA granted"))
    arms = Durable(url, SCB(2, seed=0), name=name, schema="granted")
    arms.tell(arms.ask(), 1.0)
    arms.expire(timedelta(0))
    Durable(url, SCB(2, seed=0), name=f"{name} more", schema="granted", staleness=3).ask()
    with pytest.raises(DurableError, match="grants"):
        Durable(url, SCB(2, seed=0), name=name, schema="of others")


def test_a_client_that_stops_in_its_turn_does_not_stop_others(database, name):
    stopped = Durable(database.url(), SCB(2, seed=0), name=name)
    stopped.ask()
    store = stopped._session.store
    store._connection.execute("BEGIN")
    store._connection.execute(
        "SELECT * FROM unbounded.learners WHERE name = %s FOR UPDATE", (name,)
    )
    other = Durable(database.url(), name=name, timeout=1.0)
    with pytest.raises(DurableError, match="in use"):
        other.ask()
    store.close()
    Durable(database.url(), name=name, timeout=60.0).ask()  # a busy server takes a while to notice


@pytest.mark.parametrize("staleness", [0, 16])
@pytest.mark.parametrize(
    ("kills", "restarts"), [(10, 1), pytest.param(250, 10, marks=pytest.mark.long)]
)
def test_what_was_acknowledged_survives(tmp_path, kills, restarts, staleness):
    script = Path(__file__).with_name("killed_workers.py")
    command = [sys.executable, str(script), str(tmp_path / "x"), str(kills), "1"]
    command += [str(staleness), str(restarts)]
    environment = os.environ | {"UNBOUNDED_JIT": "never"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["told"] > kills
    assert kills < 100 or set(ERRORS.values()) <= set(counts)


def test_learners_move_between_files_and_databases(database, tmp_path, name):
    file = Durable(tmp_path / "x.db", CostSCB(3, seed=0), arms=["a", "b", "c"])
    played(file, 1200)
    file.expire(timedelta(0), loss=9.0)
    file.prune(timedelta(0))  # what is copied need not begin with the first row
    file.add_arm("d")
    file.tell(file.ask(key="k"), 1.0)
    file.ask()
    rows = file.copy_to(database.url(), name=name)
    assert rows == len(file._session.look(lambda: file._session.store.rows(1)))
    base = Durable(database.url(), name=name)
    base.copy_to(tmp_path / "y.db")
    back = Durable(tmp_path / "y.db")
    for arms in (base, back):
        assert arms.status() == file.status()
        assert arms.log().equals(file.log())
        assert arms.verify() == file.verify()
    assert base.ask().probability == back.ask().probability == file.ask().probability
    relaxed = Durable(database.url(), name=name, staleness=2)
    relaxed.tell(relaxed.ask(), 1.0)
    assert relaxed.verify() == file.verify() + 2
    with pytest.raises(DurableError, match="already"):
        file.copy_to(database.url(), name=name)
    with pytest.raises(DurableError, match="exists"):
        file.copy_to(tmp_path / "y.db")


def test_inspect_shows_a_learner_of_a_database(database, tmp_path, name, capsys):
    from unbounded.cli.inspect import inspect

    arms = Durable(database.url(), SCB(2, seed=0), name=name, arms=["eu", "us"])
    for loss in (1.0, 2.0):
        arms.tell(arms.ask(), loss)
    address = database.url().replace("postgres@", "postgres:hunter2@")
    assert inspect(address, name=name, html=tmp_path / "page.html") == 0
    said = capsys.readouterr().out
    page = (tmp_path / "page.html").read_text()
    assert "eu" in said
    assert "2 rounds" in said
    assert name in page
    assert "hunter2" not in page + said


@pytest.mark.parametrize("staleness", [0, 8])
def test_connections_that_are_cut_in_a_call_lose_nothing(database, name, staleness, monkeypatch):
    from unbounded.durable.postgres import PostgresStore

    arms = Durable(database.url(), SCB(3, seed=0), name=name, staleness=staleness)
    killer = psycopg.connect(database.url(), autocommit=True)
    rng, cuts = random.Random(staleness), []

    def cutting(function):
        def wrapped(*args, **kwargs):
            if rng.random() < 0.2:
                pid = arms._session.store._connection.info.backend_pid
                killer.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))
                cuts.append(pid)
            return function(*args, **kwargs)

        return wrapped

    for step in ("ask", "settle"):
        monkeypatch.setattr(Replica, step, cutting(getattr(Replica, step)))
    if staleness > 0:  # behind the statement that adds a row, which the server may have carried out
        monkeypatch.setattr(PostgresStore, "_select", cutting(PostgresStore._select))
    failures, told = 0, {}
    for t in range(40):
        for again in range(100):
            try:
                choice = arms.ask(key=str(t))
                arms.tell(choice.id, LOSSES[choice], repeated="ignore" if again else "raise")
                break
            except DurableError as error:
                failures += "cannot be reached" in str(error)
        told[str(t)] = choice.id
    monkeypatch.undo()
    assert failures == len(cuts) > 0
    log = {row["key"]: row for row in arms.log().to_dicts()}
    assert {key: row["id"] for key, row in log.items()} == told
    assert {row["status"] for row in log.values()} == {"told"}
    assert arms.verify() == 2 * len(told)
    killer.close()


@pytest.mark.parametrize("staleness", [0, 8])
def test_a_batch_whose_connection_is_cut_is_stored_whole_or_not_at_all(
    database, name, staleness, monkeypatch
):
    arms = Durable(database.url(), SCB(3, seed=0), name=name, staleness=staleness)
    known = arms.ask(key="known")
    killer = psycopg.connect(database.url(), autocommit=True)
    calls, real = [], Durable._now

    def cutting(self):
        calls.append(real(self))
        if len(calls) == 2:  # of the keys "a" and "b"; that of "known" is then read again
            pid = arms._session.store._connection.info.backend_pid
            killer.execute("SELECT pg_terminate_backend(%s, 60000)", (pid,))
        return calls[-1]

    with monkeypatch.context() as patched:
        patched.setattr(Durable, "_now", cutting)
        with suppress(DurableError):
            arms.ask(["a", "b", "c", "known", "d"], n=5)
    killer.close()
    assert len(calls) >= 2
    stored = set(arms.log()["key"])
    assert stored in ({"known"}, {"known", "a", "b", "c", "d"})
    assert arms.ask(["a", "b", "c", "known", "d"], n=5)[3] == known
    assert arms.verify() == 5


def test_the_clock_is_the_servers(database, name, monkeypatch):
    late = Durable(database.url(), SCB(3, seed=0), name=name)
    real, ahead = time.time_ns, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real() + ahead[0])
    wrong = Durable(database.url(), name=name)
    ahead[0] = 3600 * 10**9  # the clock of its host is an hour ahead, all of a sudden
    wrong.ask()
    assert time.time_ns() - real() > 3599 * 10**9  # the control
    monkeypatch.undo()
    assert late.expire(timedelta(minutes=30)) == 0
    assert abs(late.log()["time"].item().timestamp() - real() / 1e9) < 60.0


def test_a_replica_can_be_looked_at_and_not_written(database, name):
    Durable(database.url(), SCB(3, seed=0), name=name).ask()
    replica = database.url() + "&options=-c%20default_transaction_read_only%3Don"
    assert Durable(replica, name=name, read_only=True).status().outstanding == 1
    assert Durable(replica, name=name).verify() == 1
    with pytest.raises(DurableError, match="read-only"):
        Durable(replica, name=name).ask()


def test_a_slow_server_is_a_busy_one(database, name):
    store = Durable(database.url(), SCB(3, seed=0), name=name)._session.store
    store._opened().execute("SET statement_timeout = 50")
    with pytest.raises(BusyError), store.errors():
        store.read(lambda: store._query("SELECT pg_sleep(60)"))
    assert store.read(lambda: store.last) == 0


def test_an_interrupt_while_it_learns_leaves_nothing_half_learned(database, name, monkeypatch):
    one, two = (Durable(database.url(), SCB(2, seed=0), name=name, staleness=8) for _ in "ab")
    choices = [one.ask() for _ in range(3)]
    two.status()

    def interrupted(*_):  # the learner was told, and where it is in the journal not yet noted
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Replica, "_advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            two.tell(choices[0].id, 1.0)  # it is in the journal
    assert two.tell(choices[1].id, 2.0)
    assert one.tell(choices[2].id, 3.0)
    assert one.status() == two.status()
    assert one.status().rounds == 3
    assert two.verify() == 6


class Interrupt(BaseException):
    """What a handler raises, as gunicorn's raises SystemExit."""


@pytest.mark.filterwarnings(  # in psycopg an interrupt can lose a connection, which is closed later
    "ignore:.* was deleted while still open:ResourceWarning",
    "ignore:Exception ignored in. <function BaseConnection:pytest.PytestUnraisableExceptionWarning",
)
@pytest.mark.parametrize("staleness", [0, 8])
@pytest.mark.parametrize("every", [31, pytest.param(5, marks=pytest.mark.long)])
def test_wherever_an_interrupt_comes_nothing_stays_behind(
    database, name, staleness, every, monkeypatch
):
    """In our code and in psycopg's, which has words of its own for an interrupt in a pipeline."""
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    options = {"name": name, "staleness": staleness, "timeout": 60.0}
    arms = Durable(database.url(), CostSCB(2, seed=0), **options)
    other = Durable(database.url(), name=name, timeout=10.0)
    told, interrupts = [], 0

    def play(key):
        choice = arms.ask(key=key)
        arms.tell(choice.id, 1.0, repeated="ignore")
        told.append(choice.id)

    where = (os.path.join(PACKAGE, "durable"), os.path.dirname(psycopg.__file__))
    with no_callbacks():
        for point in range(0, 1000, every):
            key = str(point)
            if point % 2:
                arms._session.before_fork()  # it connects again
            interrupts += interrupted(lambda: play(key), point, Interrupt, where, CHECKED)  # noqa: B023  # called at once
            assert not arms._session.lock.locked()
            other.forget(other.ask())  # nothing is locked
            play(key)
    assert interrupts > 500 // every
    log = {row["key"]: row for row in arms.log().to_dicts() if row["key"] is not None}
    assert {row["id"] for row in log.values()} >= set(told)
    assert {row["status"] for row in log.values()} == {"told"}
    assert arms.status().rounds == len(log)
    assert arms.verify() == arms.status().rows


def test_a_snapshot_that_cannot_be_written_does_not_fail_the_call(database, name, monkeypatch):
    arms = Durable(database.url(), SCB(2, seed=0), name=name, staleness=8)

    def busy(_):
        raise BusyError("others are at it")

    monkeypatch.setattr("unbounded.durable.session._EVERY", 2)
    monkeypatch.setattr(arms._session, "write", busy)
    assert arms.tell(arms.ask(), 1.0)
    assert arms.status().rounds == 1
    with pytest.raises(BusyError):  # the control: what does need a turn
        arms.expire(timedelta(0))


def test_the_isolation_that_a_database_prefers_does_not_matter(database, name):
    url = database.url()
    with psycopg.connect(url, autocommit=True) as connection:
        change = "ALTER DATABASE postgres {} default_transaction_isolation"
        connection.execute(change.format("SET") + "='serializable'")
        try:
            arms = Durable(url, SCB(2, seed=0), name=name)

            def play(client):
                return [client.tell(client.ask(), 1.0) for _ in range(15)]

            with ThreadPoolExecutor(4) as pool:
                plays = pool.map(play, [arms, *(Durable(url, name=name) for _ in range(3))])
            assert all(map(all, plays))
        finally:
            connection.execute(change.format("RESET"))


def test_a_process_with_many_open_files_can_use_it(database, name):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("so many files cannot be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1050)]  # select() ends at 1,024
    try:
        arms = Durable(database.url(), SCB(2, seed=0), name=name)
        assert arms.tell(arms.ask(), 1.0)
        arms.close()
    finally:
        for file in held:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
