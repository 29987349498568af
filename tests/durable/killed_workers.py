"""Workers that are killed at random moments, and what must be true of the file afterwards.

    python tests/durable/killed_workers.py FILE KILLS SEED [STALENESS RESTARTS]

With the two last, the learner is in a PostgreSQL server of the program's own, which is restarted
now and then, cuts connections in the middle of transactions, and raises errors of its own
(`TRIGGER`). The clocks of the workers' hosts are then years apart.
Each worker asks with keys and tells, and writes what was acknowledged into a file of its own: a
write that has returned survives `kill -9`. Whoever takes the place of a dead worker does first what
that one had begun. Half of the workers open the file themselves, half inherit it by the fork.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from postgres_server import Server, server

from unbounded import CostSCB
from unbounded.durable import Durable, DurableError

WORKERS = 8
ARMS = ["a", "b", "c", "d"]


SERVER: Server | None = None
STALENESS = 0
ERRORS = {
    "53100": "disk is full",
    "40001": "in use by others",  # serialization failure
    "40P01": "in use by others",  # deadlock
    "57P01": "cannot be reached",  # the server is shut down
    "sleep": "in use by others",  # until the statement's time is over
}
"""What the server raises by `TRIGGER`, and what is then said."""
TRIGGER = """
CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE codes text[] := '{{{codes}}}'; code text := codes[1 + floor(random() * {of})::int];
BEGIN
    IF code = 'sleep' THEN PERFORM pg_sleep(60); END IF;
    IF code IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = code; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fail BEFORE INSERT ON {schema}.journal
FOR EACH ROW EXECUTE FUNCTION {schema}.fail();
"""


HURRY = "&options=-c%20statement_timeout%3D500"


def opened(path: Path, options: str = "") -> Durable:
    learner = CostSCB(n_arms=4, seed=0)
    if SERVER is None:
        return Durable(path, learner, arms=ARMS, timeout=60.0)
    while True:
        try:
            url = SERVER.url() + options
            return Durable(
                url, learner, arms=ARMS, timeout=60.0, name="killed", staleness=STALENESS
            )
        except DurableError as error:
            wait_after(error)


def wait_after(error: DurableError) -> str:
    """Wait, if it is an error that passes; what it said."""
    found = next((said for said in ERRORS.values() if said in str(error)), None)
    if SERVER is None or found is None:
        raise error
    time.sleep(0.05)
    return found


def notes(path: Path, worker: int) -> Path:
    return path.with_name(f"worker-{worker}.txt")


def noted(path: Path, worker: int) -> list[list[Any]]:
    """What a worker has written down; a kill may have left half a line."""
    text = notes(path, worker).read_text() if notes(path, worker).exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def work(path: Path, worker: int, inherited: Durable | None) -> NoReturn:
    if SERVER is not None:
        real, wrong = time.time_ns, (worker - 4) * 3 * 365 * 86400 * 10**9
        time.time_ns = lambda: real() + wrong
    arms = inherited or opened(path, HURRY)
    lines = noted(path, worker)
    done = {key for kind, key, *_ in lines if kind == "told"}
    begun = [key for kind, key, *_ in lines if kind == "asks"]
    again = begun[-1] if begun and begun[-1] not in done else None
    number = len(set(begun))
    end = os.open(notes(path, worker), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    size = sum(len(json.dumps(line)) + 1 for line in lines)
    os.ftruncate(end, size)

    def note(*line: Any) -> None:
        os.write(end, (json.dumps(line) + "\n").encode())

    while True:
        key = again or f"{worker}-{number}"
        number += again is None
        repeated: Any = "ignore" if again else "raise"
        note("asks", key)
        again = key
        try:
            choice = arms.ask(key=key, available=available_at(key))
            note("asked", key, choice.id, choice.arm, choice.probability)
            arms.tell(choice.id, loss=loss_of(key), repeated=repeated)
        except DurableError as error:
            note("failed", key, wait_after(error))
            continue
        note("told", key)
        again = None


def loss_of(key: str) -> float:
    return random.Random(key).expovariate(1.0)


def available_at(key: str) -> list[str] | None:
    """Of half of the asks, which arms can be chosen."""
    rng = random.Random(f"available {key}")
    return None if rng.random() < 0.5 else rng.sample(ARMS, rng.randint(1, 4))


def kill(path: Path, kills: int, seed: int, restarts: int = 0) -> None:
    rng = random.Random(seed)
    arms = opened(path, HURRY)
    arms.status()  # so that there is something to inherit
    if SERVER is not None:
        query(TRIGGER.format(schema="unbounded", codes=",".join(ERRORS), of=300))

    def start(worker: int) -> int:
        own = rng.random() < 0.5
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)  # as on a host of its own
            try:
                work(path, worker, None if own else arms)
            except BaseException as error:
                path.with_name(f"failed-{worker}.txt").write_text(repr(error))
            finally:
                os._exit(1)
        return child

    running = {worker: start(worker) for worker in range(WORKERS)}
    moments = {kills * (i + 1) // (restarts + 1): i for i in range(restarts)}
    for turn in range(kills):
        if turn in moments and SERVER is not None:
            SERVER.restart(("fast", "immediate")[moments[turn] % 2])
        enough = written(path) + 1000  # some eight rounds: on a busy machine they take a while
        give_up = time.monotonic() + 60.0
        while written(path) < enough and time.monotonic() < give_up:
            time.sleep(0.002)
        time.sleep(rng.expovariate(1.0 / 0.01))
        if SERVER is not None:
            query(CUT)
        worker = rng.randrange(WORKERS)
        os.kill(running[worker], signal.SIGKILL)
        os.waitpid(running[worker], 0)
        running[worker] = start(worker)
    for child in running.values():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if SERVER is not None:
        query("DROP TRIGGER fail ON unbounded.journal")


CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'unbounded' AND backend_xid IS NOT NULL LIMIT 1
"""


def query(text: str) -> None:
    import psycopg

    assert SERVER is not None
    with psycopg.connect(SERVER.url(), autocommit=True) as connection:
        connection.execute(text)


def written(path: Path) -> int:
    """How many characters the workers have written down."""
    return sum(file.stat().st_size for file in path.parent.glob("worker-*.txt"))


def acknowledged(path: Path) -> Iterator[list[Any]]:
    for worker in range(WORKERS):
        yield from noted(path, worker)


def check(path: Path) -> Counter[str]:
    """Whether everything that was acknowledged is in the file, once."""
    failed = [failure.read_text() for failure in path.parent.glob("failed-*.txt")]
    assert failed == []
    with opened(path) as arms:
        replayed = arms.verify()  # bit for bit, from the beginning
        log = arms.log()
        rows = {key: row for row in log.iter_rows(named=True) for key in [row["key"]]}
        assert len(rows) == log.height  # no key twice
        told = log["told_as"].drop_nulls()
        assert told.n_unique() == len(told)
        if SERVER is not None:  # its clock, and not those of the hosts
            now = datetime.now(UTC)
            assert now - timedelta(hours=1) < log["time"].min() <= log["time"].max() < now
        counts = Counter({"replayed": replayed})
        for kind, key, *rest in acknowledged(path):
            if kind == "asked":
                assert [rows[key]["id"], rows[key]["arm"], rows[key]["probability"]] == rest
            elif kind == "told":
                assert rows[key]["status"] == "told"
            counts[rest[0] if kind == "failed" else kind] += 1
        for key, row in rows.items():
            assert row["loss"] in (None, loss_of(key))
            some = available_at(key) or ARMS
            assert sorted(row["available"] or ARMS) == sorted(some)
            assert row["name"] in some
            assert arms.ask(key=key).id == row["id"]
        assert replayed == log.height + len(told)
        assert len(told) >= counts["told"]
        if STALENESS > 0:
            return counts
        # One learner in one process that is asked and told in the same order has the same bits.
        alone, tickets = CostSCB(n_arms=4, seed=0), {}
        events = [(row["asked_as"], key, None) for key, row in rows.items()]
        events += [(r["told_as"], key, r["loss"]) for key, r in rows.items() if r["told_as"]]
        for _, key, loss in sorted(events):
            if loss is None:
                some = available_at(key)
                tickets[key] = alone.ask(available=some and [ARMS.index(arm) for arm in some])
                assert tickets[key].probability == rows[key]["probability"]
            else:
                alone.tell(tickets[key], loss)
        assert CostSCB.load(alone.save())._buffer.tobytes() == arms.learner()._buffer.tobytes()
        return counts


if __name__ == "__main__":
    file = Path(sys.argv[1])
    kills, seed, *others = map(int, sys.argv[2:])
    with server() if others else nullcontext() as SERVER:
        STALENESS, restarts = others or (0, 0)
        kill(file, kills, seed, restarts)
        print(json.dumps(check(file)))
