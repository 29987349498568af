"""A journal of ten million rows beside one of ten thousand: time and memory to open, and archiving.

    python tests/durable/growth.py [ROWS] [--file]

In PostgreSQL, or in a file. All rows but the last thousand are written at once: asks and tells with
valid digests, as they would be after many months, behind which the learner has its snapshot.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from postgres_server import server

from unbounded import CostSCB
from unbounded.durable import Durable
from unbounded.durable.replica import Replica, id_of
from unbounded.durable.rows import ASK, TELL, Row
from unbounded.durable.session import versions

SMALL, LARGE, LAST = 10_000, 10_000_000, 1000
ARMS = ["a", "b"]


def old_rows(number: int) -> Iterator[Row]:
    """Asks and tells of two months, in turn."""
    chain, ask = b"", Row(0, ASK, None, 0)
    end = time.time_ns() // 1000
    step = 60 * 24 * 3600 * 10**6 // number
    for n in range(1, number + 1):
        at = end - (number + 1 - n) * step
        if n % 2:
            row = ask = Row(n, ASK, None, at, f"key {n}", 0, n // 2 % 2, ARMS[n // 2 % 2], 0.5)
        else:
            row = Row(n, TELL, id_of(ask), at, loss=float(n % 7), scale=6.0, clipped=0)
        row = row._replace(digest=row.digest_after(chain))
        chain = row.digest
        if n % 2:
            ask = row
        yield row


def grown(place: dict[str, Any], rows: int) -> None:
    """Make a learner with so many rows."""
    learner = CostSCB(2, seed=0)
    with Durable(**place, learner=learner, arms=ARMS) as arms:
        store = arms._session.store
        last = Row(0, ASK, None, 0)
        connection: Any
        if "name" in place:
            with closing(store.another()) as other:
                connection = other._opened()
                query = "COPY unbounded.journal FROM STDIN"
                with connection.cursor().copy(query) as copy:
                    for last in old_rows(rows - LAST):
                        copy.write_row((store._id, *last))
                update = "UPDATE unbounded.learners SET n = %s, chain = %s WHERE id = %s"
                connection.execute(update, (last.n, last.digest, store._id))
                connection.execute("ANALYZE unbounded.journal")
        else:
            import sqlite3

            arms._session.store.close()
            with closing(sqlite3.connect(place["path"])) as connection, connection:
                insert = f"INSERT INTO journal VALUES ({', '.join('?' * len(Row._fields))})"
                for last in old_rows(rows - LAST):
                    connection.execute(insert, last)
        snapshot = Replica(learner, ARMS, last.n, last.digest).snapshot(versions())
        arms._session.store.write(
            lambda: [store.keep(name, snapshot) for name in ("base", "latest")]
        )
        arms._session._replica = None  # it knows nothing of these rows
    with Durable(**place) as arms:
        for _ in range(LAST // 2):
            arms.tell(arms.ask(), 1.0)


def looked(place: dict[str, Any]) -> None:
    """Open, ask and tell in this process, which is new; print seconds and megabytes."""
    began = time.perf_counter()
    arms = Durable(**place)
    opened = time.perf_counter() - began
    for _ in range(20):
        arms.tell(arms.ask(), 1.0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([opened, memory]))


def main() -> None:
    large = next((int(given) for given in sys.argv[1:] if given.isdigit()), LARGE)
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = None if "--file" in sys.argv else stack.enter_context(server()).url()
        places = [
            {"path": str(root / f"{rows}.db")} if url is None else {"path": url, "name": str(rows)}
            for rows in (SMALL, large)
        ]
        for place, rows in zip(places, (SMALL, large), strict=True):
            began = time.perf_counter()
            grown(place, rows)
            print(f"{rows} rows: written in {time.perf_counter() - began:.0f} s", flush=True)
        found: list[list[list[float]]] = [[], []]
        for _ in range(7):  # in turn, so that neither has the quiet half
            for k, place in enumerate(places):
                command = [sys.executable, __file__, "--look", json.dumps(place)]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
                found[k].append(json.loads(done.stdout))
        for rows, each in zip((SMALL, large), found, strict=True):
            seconds, memory = (sorted(one)[3] for one in zip(*each, strict=True))
            print(f"{rows} rows: opened in {1e3 * seconds:.1f} ms, {memory:.0f} MB at most")
        with Durable(**places[1]) as arms:
            began = time.perf_counter()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            removed = arms.archive(root / "archive", timedelta(days=1))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
            seconds = time.perf_counter() - began
            parts = list((root / "archive").iterdir())
            size = sum(part.stat().st_size for part in parts) / 1e6
            print(
                f"archived {removed} rows in {seconds:.0f} s, {size:.0f} MB, {memory:.0f} MB more"
            )
            print(f"verified {arms.verify()} rows; {arms.status().rows} have been")


if __name__ == "__main__":
    if "--look" in sys.argv:
        looked(json.loads(sys.argv[2]))
    else:
        main()
