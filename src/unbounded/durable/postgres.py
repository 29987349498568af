"""Durable learners in PostgreSQL: many learners in one database, shared by many hosts.

A transaction locks the row of its learner, so that calls take turns; what waits for no lock on the
client's side is `PostgresStore.add`, one statement that the server carries out alone. Tables and
function are made on first use, in a schema of their own; docs/guide/many-hosts.md says which grants
a role needs that may not make them.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from unbounded.durable import forks
from unbounded.durable.errors import BusyError, DurableError, damaged
from unbounded.durable.rows import ASK, MOST, Context, Row, Snapshot
from unbounded.learners.available import UNFIT
from unbounded.validation import ArgumentValueError, shown

try:
    import psycopg
    from psycopg import conninfo, errors, sql
except ImportError as error:
    raise DurableError(f"{error.name} is missing: pip install 'unbounded[postgres]'") from error

R = TypeVar("R")

VERSION = 3
"""Of the tables: how many of `_MIGRATIONS` they have seen."""
_LONGEST, _LONGEST_SCHEMA = 200, 63  # bytes; PostgreSQL would shorten longer names of schemas
STALE, TOLD, _GONE = -1, -2, -3  # answers of the function `append`, instead of a row's number
_IDLE = 10.0  # timeouts after which the server ends the transaction of a client that has stopped
_MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE {s}.learners (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
        n bigint NOT NULL, chain bytea NOT NULL
    );
    CREATE TABLE {s}.journal (
        learner bigint NOT NULL REFERENCES {s}.learners,
        n bigint NOT NULL, kind smallint NOT NULL, choice bigint, at bigint NOT NULL, key text,
        epoch bigint, arm bigint, name text, probability float8, loss float8, scale float8,
        clipped bigint, payload bytea, digest bytea NOT NULL, PRIMARY KEY (learner, n)
    );
    CREATE UNIQUE INDEX keys ON {s}.journal (learner, key) WHERE key IS NOT NULL;
    CREATE UNIQUE INDEX settled ON {s}.journal (learner, choice) WHERE choice IS NOT NULL;
    CREATE INDEX times ON {s}.journal (learner, at);
    CREATE TABLE {s}.snapshots (
        learner bigint NOT NULL REFERENCES {s}.learners, name text NOT NULL,
        n bigint NOT NULL, chain bytea NOT NULL, text text NOT NULL, digest bytea NOT NULL,
        PRIMARY KEY (learner, name)
    );
    CREATE FUNCTION {s}.add(
        me bigint, seen bigint, staleness bigint, kind smallint, choice bigint, at bigint, key text,
        epoch bigint, arm bigint, name text, probability float8, loss float8, payload bytea,
        content bytea
    ) RETURNS bigint LANGUAGE plpgsql SET search_path = {s}, pg_temp AS $$
    #variable_conflict use_column
    DECLARE
        last bigint; before bytea; row_digest bytea; missed bigint;
    BEGIN
        SELECT l.n, l.chain INTO last, before FROM learners l WHERE l.id = add.me FOR UPDATE;
        IF add.kind = 0 THEN
            SELECT count(*) INTO missed FROM (
                SELECT 1 FROM journal j WHERE j.learner = add.me AND j.n > add.seen AND j.kind <> 0
                LIMIT add.staleness + 1
            ) m;
            IF missed > add.staleness THEN RETURN -1; END IF;
        END IF;
        row_digest := substring(sha256(before || add.content) FOR 16);
        UPDATE learners l SET n = last + 1, chain = row_digest WHERE l.id = add.me;
        INSERT INTO journal VALUES (
            add.me, last + 1, add.kind, add.choice, add.at, add.key, add.epoch, add.arm, add.name,
            add.probability, add.loss, NULL, NULL, add.payload, row_digest
        );
        RETURN last + 1;
    EXCEPTION WHEN unique_violation THEN
        RETURN -2;  -- which undoes the UPDATE too
    END $$;
    """,
    # `append` adds many rows, whatever columns they have; clients of version 1 go on with `add`.
    """
    CREATE FUNCTION {s}.append(
        me bigint, seen bigint, staleness bigint, added json, contents bytea[]
    ) RETURNS bigint LANGUAGE plpgsql SET search_path = {s}, pg_temp AS $$
    #variable_conflict use_column
    DECLARE
        last bigint; before bytea; missed bigint; row journal%ROWTYPE; k int := 0;
    BEGIN
        SELECT l.n, l.chain INTO last, before FROM learners l WHERE l.id = append.me FOR UPDATE;
        IF NOT FOUND THEN RETURN -3; END IF;
        IF append.staleness >= 0 THEN
            SELECT count(*) INTO missed FROM (
                SELECT 1 FROM journal j
                WHERE j.learner = append.me AND j.n > append.seen AND j.kind <> 0
                LIMIT append.staleness + 1
            ) m;
            IF missed > append.staleness THEN RETURN -1; END IF;
        END IF;
        FOR row IN SELECT * FROM json_populate_recordset(NULL::journal, append.added) LOOP
            k := k + 1;
            before := substring(sha256(before || append.contents[k]) FOR 16);
            row.learner := append.me;
            row.n := last + k;
            row.digest := before;
            INSERT INTO journal SELECT row.*;
        END LOOP;
        UPDATE learners l SET n = last + k, chain = before WHERE l.id = append.me;
        RETURN last + 1;
    EXCEPTION WHEN unique_violation THEN
        RETURN -2;  -- which undoes all of it
    END $$;
    """,
    """
    CREATE TABLE {s}.contexts (
        learner bigint NOT NULL REFERENCES {s}.learners, n bigint NOT NULL, text text NOT NULL,
        digest bytea NOT NULL, PRIMARY KEY (learner, n)
    );
    """,
)
_COLUMNS = ", ".join(Row._fields)
_ADD_CONTEXTS = """
WITH added AS MATERIALIZED (SELECT {s}.append(%b, %b, %b, %s::json, %b) AS n), stored AS (
    INSERT INTO {s}.contexts
    SELECT %s, o.n, o.text, substring(sha256(convert_to(o.n || '|' || o.text, 'UTF8')) FOR 16)
    FROM (
        SELECT added.n + c.k - 1 AS n, c.text
        FROM added, unnest(%s::text[]) WITH ORDINALITY AS c (text, k)
        WHERE added.n > 0 AND c.text IS NOT NULL
    ) AS o
)
SELECT n FROM added
"""
_FIND = "SELECT key, n FROM {s}.journal WHERE learner = %s AND key = ANY(%s)"


class PostgresStore:
    """One connection to one learner in a database, opened when it is used.

    Parameters
    ----------
    url : str
        ``postgresql://...``, as libpq takes it: passwords and certificates may be in its
        environment variables and files.
    name : str
        Of the learner.
    schema : str
        Where the tables are.
    synchronous : {"normal", "full"}
        What a commit waits for: the server's disk; "full" also for synchronous replicas to apply.
    timeout : float
        How many seconds to wait for other processes, and for the server.
    read_only : bool
        Whether to look and never write: a replica of the server will do.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        schema: str = "unbounded",
        synchronous: str,
        timeout: float,
        read_only: bool,
    ) -> None:
        for what, text, most in (("name", name, _LONGEST), ("schema", schema, _LONGEST_SCHEMA)):
            fits = isinstance(text, str) and not UNFIT.search(text)
            if not fits or not 0 < len(text.encode()) <= most:
                raise ArgumentValueError(
                    what, f"must be a text of 1 to {most} bytes, got {shown(text)}"
                )
        if set(schema) & set("%$"):  # "$user" is another schema for each role, "%%" is "%"
            raise ArgumentValueError("schema", f"must be without % and $, got {shown(schema)}")
        self._url, self.name, self._schema = url, name, schema
        self._synchronous, self._timeout = synchronous, timeout
        self.read_only, self.lost = read_only, ""
        given = None
        with suppress(psycopg.Error):
            given = None if UNFIT.search(url) else conninfo.conninfo_to_dict(url)
        if given is None:  # the error of libpq would show the password
            raise ValueError("the address must be postgresql://user@host:port/database")
        self._options = given.get("options") or ""
        host, database = given.get("host") or "localhost", given.get("dbname") or ""
        if "@" in f"{host}{database}":  # a part of a password, which must not be shown
            raise ValueError("in the address, write %40 for an @, %2F for a / of the password")
        self.place = f"learner {name!r} in postgresql://{host}/{database}"
        self._connection: psycopg.Connection[Any] | None = None
        self._id: int | None = None
        self._ahead: tuple[int, list[Row]] | None = (
            None  # rows that were read before they are asked for
        )
        self._pending: list[Row] = []  # appended in this transaction
        self._attached: list[Context] = []
        self._known: dict[str, int | None] = {}  # numbers by keys, in this transaction
        self._next = 0  # where the next call of `rows` will probably begin
        self._skew: int | None = None  # of the server's clock against our monotonic one, in us

    # ------------------------------------------------------------------ transactions

    def write(self, work: Callable[[], R], keys: Collection[str] = ()) -> R:
        """Let ``work`` change something, while nobody else does: all of it, or nothing."""
        if self.read_only:
            raise DurableError(f"{self.place} was opened with read_only=True")
        connection, first = self._opened(), self._next
        self._pending, self._attached = [], []
        find = self._sql(_FIND)
        lock = self._sql("SELECT n FROM {s}.learners WHERE id = %s FOR UPDATE")
        try:
            with connection.pipeline():  # one way to the server and back
                connection.execute("BEGIN")
                locked = connection.execute(lock, (self._id,))
                ahead = connection.execute(*self._select(first, MOST))
                found = connection.execute(find, (self._id, list(keys))) if keys else None
            last = locked.fetchone()
            if last is None:
                raise self._gone()
            rows = list(map(Row._make, ahead.fetchall()))
            if 0 < len(rows) < MOST and rows[-1].n != last[0]:
                raise self.damaged(f"row {last[0]} of its journal is missing")
            self._ahead = first, rows
            self._known = dict.fromkeys(keys)
            if found is not None:
                self._known.update(found.fetchall())
            result = work()
            self._check_process(connection)
            with connection.pipeline():
                self._flush(connection)
                connection.execute("COMMIT")
        except BaseException as error:
            self._end(connection, error)
            raise
        finally:
            self._ahead, self._known = None, {}
            self._pending, self._attached = [], []
        return result

    def read(self, work: Callable[[], R]) -> R:
        """Let ``work`` read a snapshot; that blocks nobody."""
        connection = self._opened()
        try:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            result = work()
            self._check_process(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            self._end(connection, error)
            raise
        return result

    def _flush(self, connection: psycopg.Connection[Any]) -> None:
        """Write the rows that were appended."""
        rows, self._pending = self._pending, []
        if rows:
            insert = self._sql(f"INSERT INTO {{s}}.journal VALUES (%s{', %s' * 14})")
            connection.cursor().executemany(insert, [(self._id, *row) for row in rows])
            update = self._sql("UPDATE {s}.learners SET n = %s, chain = %s WHERE id = %s")
            connection.execute(update, (rows[-1].n, rows[-1].digest, self._id))
            self._next = rows[-1].n
        contexts, self._attached = self._attached, []
        if contexts:
            insert = self._sql("INSERT INTO {s}.contexts VALUES (%s, %s, %s, %s)")
            connection.cursor().executemany(insert, [(self._id, *one) for one in contexts])

    def _end(self, connection: psycopg.Connection[Any], error: BaseException) -> None:
        """Give up a transaction, or the connection if it is not known where that stands.

        That is so after an error of the server too: psycopg takes what it wanted to prepare behind
        the error, in the same pipeline, for prepared.
        """
        known = isinstance(error, Exception) and not isinstance(error, psycopg.Error)
        with suppress(psycopg.Error):
            if known and connection is self._connection:
                connection.execute("ROLLBACK")
                return
        self.close()

    def _check_process(self, connection: psycopg.Connection[Any]) -> None:
        """Reject a transaction in the middle of which this process was forked."""
        forks.look()
        if connection is not self._connection:
            raise DurableError(f"{self.place} was in use when this process was forked: call again")

    def _query(self, text: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Carry out a statement in the transaction that has begun."""
        assert self._connection is not None
        self._flush(self._connection)
        found = self._connection.execute(self._sql(text), values)
        return found.fetchall() if found.description else [(found.rowcount,)]

    def _sql(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(s=sql.Identifier(self._schema))

    # ------------------------------------------------------------------ opening and closing

    def _opened(self) -> psycopg.Connection[Any]:
        """Return the connection of this process."""
        forks.look()
        if self._connection is not None:
            if _answers(self._connection):
                return self._connection
            self.close()
        seconds = max(1, round(self._timeout))
        level = "remote_apply" if self._synchronous == "full" else "on"
        settings = {
            "lock_timeout": f"{seconds}s",
            "idle_in_transaction_session_timeout": f"{_IDLE * seconds:.0f}s",
            "synchronous_commit": level,
            "client_encoding": "utf8",
            "default_transaction_isolation": r"read\ committed",
            "unbounded.client": "yes",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=seconds,
            tcp_user_timeout=1000 * seconds,  # or a network that is cut is noticed in 15 minutes
            keepalives_idle=seconds,
            keepalives_interval=seconds,
            options=f"{self._options} {options}",
            application_name="unbounded",
        )
        before = time.monotonic_ns() // 1000
        clock = (
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, "
            "current_setting('unbounded.client', true)"
        )
        server = connection.execute(clock).fetchone()
        assert server is not None
        self._skew = int(server[0]) - (before + time.monotonic_ns() // 1000) // 2
        encoding = connection.info.parameter_status("server_encoding")
        wrong = ""
        if server[1] != "yes":
            wrong = "is behind a pooler that drops settings: give the address of the server itself"
        elif encoding != "UTF8":
            wrong = f"has the encoding {encoding}: make a database with ENCODING 'UTF8'"
        if wrong:
            connection.close()
            raise DurableError(f"{self.place} {wrong}")
        self._connection = connection
        return connection

    def close(self) -> None:
        """Give the connection up until it is used again."""
        forks.look()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def __del__(self) -> None:  # who forgets to close it should not be warned by Python instead
        with suppress(Exception):
            self.close()

    def inherit(self) -> None:
        """In a child of a fork: never touch the parent's connection, not even to close it."""
        if self._connection is not None:  # closed here, it would say goodbye for the parent
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._connection = None

    def hurry(self) -> None:
        """End a long look of another thread, for a fork; it then begins again."""
        # A turn ends within the timeout, as the server ends what takes longer.

    def another(self) -> Self:
        """Return a connection of its own, for a long look."""
        other = type(self)(
            self._url,
            self.name,
            schema=self._schema,
            synchronous=self._synchronous,
            timeout=self._timeout,
            read_only=self.read_only,
        )
        other._id = self._id
        return other

    def now(self) -> int:
        """Return microseconds since 1970, by the server's clock as of when it was connected."""
        if self._skew is None:  # never in a transaction, which another connection would not have
            self._opened()
        return time.monotonic_ns() // 1000 + (self._skew or 0)

    # ------------------------------------------------------------------ making

    def prepare(self, beginning: Callable[[], Snapshot] | None) -> None:
        """Make the tables and the learner if they are missing."""
        connection = self._opened()
        makes = beginning is not None and not self.read_only
        self._upgrade(connection, makes=makes)
        if self._found(connection) is None:
            if not makes or beginning is None:
                raise DurableError(f"there is no {self.place}: give Durable a learner to make it")
            with connection.transaction():
                self._make(connection, beginning())  # unless another process has made it
            self._found(connection)

    def create(self, beginning: Snapshot, fill: Callable[[Self], R]) -> R:
        """Make the learner and let ``fill`` write to it, in one transaction."""
        connection = self._opened()
        self._upgrade(connection, makes=True)
        self._pending, self._attached = [], []
        with connection.transaction():
            if not self._make(connection, beginning):
                raise DurableError(f"there is a {self.place} already: give another name")
            result = fill(self)
            self._flush(connection)
        return result

    def _upgrade(self, connection: psycopg.Connection[Any], *, makes: bool) -> None:
        """Bring the tables to `VERSION`, or raise."""
        version = self._version(connection)
        if version > VERSION:
            raise DurableError(
                f"{self.place}: schema {self._schema!r} has version {version}, and this version of "
                f"unbounded knows {VERSION}: update unbounded"
            )
        if version < VERSION:
            if version == 0 and not makes:
                raise DurableError(f"there is no {self.place}: give Durable a learner to make it")
            if self.read_only:
                raise DurableError(
                    f"{self.place}: schema {self._schema!r} has version {version}, and this "
                    f"version of unbounded needs {VERSION}: open it once without read_only=True"
                )
            self._migrate(connection)

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        """Return how many migrations the tables have seen; 0 if there are none."""
        query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'version'"
        if connection.execute(query, (self._schema,)).fetchone() is None:
            return 0
        row = connection.execute(self._sql("SELECT version FROM {s}.version")).fetchone()
        return 0 if row is None else int(row[0])

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Bring the tables to `VERSION`, one process at a time."""
        with connection.transaction():
            lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
            connection.execute(lock, (f"unbounded {self._schema}",))
            version = self._version(connection)
            if version == 0:
                connection.execute(self._sql("CREATE SCHEMA IF NOT EXISTS {s}"))
                connection.execute(self._sql("CREATE TABLE {s}.version (version int NOT NULL)"))
                connection.execute(self._sql("INSERT INTO {s}.version VALUES (0)"))
            for migration in _MIGRATIONS[version:]:
                connection.execute(self._sql(migration))
            update = self._sql("UPDATE {s}.version SET version = %s")
            connection.execute(update, (VERSION,))

    def _found(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return the number of the learner, if there is one of this name."""
        query = self._sql("SELECT id FROM {s}.learners WHERE name = %s")
        row = connection.execute(query, (self.name,)).fetchone()
        self._id = None if row is None else int(row[0])
        return self._id

    def _make(self, connection: psycopg.Connection[Any], snapshot: Snapshot) -> bool:
        """Make the learner, in a transaction; whether there was none."""
        insert = (
            "INSERT INTO {s}.learners (name, n, chain) VALUES (%s, %s, %s) "
            "ON CONFLICT (name) DO NOTHING RETURNING id"
        )
        values = self.name, snapshot.n, snapshot.chain
        row = connection.execute(self._sql(insert), values).fetchone()
        if row is None:
            return False
        self._id = int(row[0])
        for name in ("first", "base", "latest"):
            self.keep(name, snapshot)
        return True

    # ------------------------------------------------------------------ rows

    def append(self, row: Row) -> None:
        """Add a row, in a `write`: it is sent when something else is asked for, or at the end."""
        self._pending.append(row)
        if row.key in self._known:
            self._known[row.key] = row.n
        if len(self._pending) >= MOST and self._connection is not None:
            self._flush(self._connection)

    def add(
        self,
        rows: Sequence[Row],
        seen: int,
        staleness: int,
        contexts: Sequence[str | None] = (),
    ) -> tuple[int, list[Row]]:
        """Add rows in a transaction of its own that no client waits in: all of them, or none.

        They have no numbers and no digests yet. Returns the first number, and the rows from
        ``seen`` on. Instead of a number, `STALE` if there is an ask and more than ``staleness``
        rows after ``seen`` are not asks, and `TOLD` for what was told before, or for the key of
        another ask. ``contexts`` are those of the rows.
        """
        if self.read_only:
            raise DurableError(f"{self.place} was opened with read_only=True")
        connection = self._opened()
        staleness = staleness if any(row.kind == ASK for row in rows) else -1
        added = json.dumps(list(map(_plain, rows)))
        given: tuple[Any, ...] = self._id, seen, staleness, added, [row.content for row in rows]
        call = "SELECT {s}.append(%b, %b, %b, %s::json, %b)"
        if any(text is not None for text in contexts):
            call, given = _ADD_CONTEXTS, (*given, self._id, list(contexts))
        try:
            with connection.pipeline():
                answer = connection.execute(self._sql(call), given)
                select, values = self._select(seen, MOST)
                read = connection.execute(select, values)
            number = int(answer.fetchall()[0][0])
            found = list(map(Row._make, read.fetchall()))
        except BaseException as error:
            self._end(connection, error)
            raise
        if number == _GONE:
            raise self._gone()
        return number, found

    def rows(self, first: int, most: int = MOST) -> list[Row]:
        """Return the rows from number ``first`` on, as they are, and at most so many."""
        if self._ahead is not None and self._ahead[0] == first and most == MOST:
            found, self._ahead = self._ahead[1], None
        else:
            assert self._connection is not None
            self._flush(self._connection)
            read = self._connection.execute(*self._select(first, most)).fetchall()
            found = list(map(Row._make, read))
        if found and most == MOST:
            self._next = found[-1].n
        return found

    def _select(self, first: int, most: int) -> tuple[sql.Composed, tuple[object, ...]]:
        query = f"SELECT {_COLUMNS} FROM {{s}}.journal WHERE learner = %s AND n >= %s"
        return self._sql(f"{query} ORDER BY n LIMIT %s"), (self._id, first, most)

    @property
    def last(self) -> int:
        """The number of the last row, or of the last one that was removed."""
        return int(self._query("SELECT n FROM {s}.learners WHERE id = %s", (self._id,))[0][0])

    def number_of(self, key: str) -> int | None:
        """Return the number of the ask with this key."""
        if key in self._known:
            return self._known[key]
        found = self._query(_FIND, (self._id, [key]))
        return int(found[0][1]) if found else None

    def first_since(self, at: int) -> int | None:
        """Return the number of the first row that is not older than ``at``."""
        query = "SELECT n FROM {s}.journal WHERE learner = %s AND at >= %s ORDER BY n LIMIT 1"
        found = self._query(query, (self._id, at))
        return int(found[0][0]) if found else None

    def remove_before(self, n: int) -> int:
        """Remove the rows before number ``n``; how many there were."""
        last = self.rows(n - 1, 1)
        if not last or last[0].n != n - 1:
            return 0
        self.keep("first", Snapshot(n - 1, last[0].digest, ""))
        self._query("DELETE FROM {s}.contexts WHERE learner = %s AND n < %s", (self._id, n))
        delete = "DELETE FROM {s}.journal WHERE learner = %s AND n < %s"
        return int(self._query(delete, (self._id, n))[0][0])

    # ------------------------------------------------------------------ contexts

    def attach(self, context: Context) -> None:
        """Store the context of an ask, with its row."""
        self._attached.append(context)

    def contexts(self, first: int, last: int) -> list[Context]:
        """Return the contexts of the rows from ``first`` to ``last``, as they are."""
        query = (
            "SELECT n, text, digest FROM {s}.contexts WHERE learner = %s AND n BETWEEN %s AND %s"
        )
        return list(map(Context._make, self._query(f"{query} ORDER BY n", (self._id, first, last))))

    def detach(self, numbers: Collection[int]) -> int:
        """Delete the contexts of these rows; how many there were."""
        delete = "DELETE FROM {s}.contexts WHERE learner = %s AND n = ANY(%s)"
        return int(self._query(delete, (self._id, list(numbers)))[0][0])

    # ------------------------------------------------------------------ snapshots

    def keep(self, name: str, snapshot: Snapshot) -> None:
        """Store a snapshot in place of the one of that name."""
        self._query(
            "INSERT INTO {s}.snapshots VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (learner, name) "
            "DO UPDATE SET (n, chain, text, digest) "
            "= (excluded.n, excluded.chain, excluded.text, excluded.digest)",
            (self._id, name, *snapshot, snapshot.digest),
        )

    def snapshot(self, name: str) -> Snapshot:
        """Return the snapshot of that name."""
        query = "SELECT n, chain, text, digest FROM {s}.snapshots WHERE learner = %s AND name = %s"
        found = self._query(query, (self._id, name))
        if not found:
            there = self._query("SELECT 1 FROM {s}.learners WHERE id = %s", (self._id,))
            raise self.damaged("it has no snapshot") if there else self._gone()
        snapshot = Snapshot(*found[0][:3])
        if found[0][3] != snapshot.digest:
            raise self.damaged("its snapshot is not what was written")
        return snapshot

    def age_of(self, name: str) -> int:
        """Return how many rows were added after a snapshot; all of them if it is missing."""
        query = (
            "SELECT l.n - coalesce(s.n, 0) FROM {s}.learners l LEFT JOIN {s}.snapshots s "
            "ON s.learner = l.id AND s.name = %s WHERE l.id = %s"
        )
        return int(self._query(query, (name, self._id))[0][0])

    def check_pages(self) -> None:
        """Check nothing: the pages are the server's."""

    def copy_to(self, path: str | os.PathLike[str]) -> None:
        """Raise: backups are made on the server."""
        raise DurableError(f"{self.place} is backed up by pg_dump, or by the server's own backups")

    # ------------------------------------------------------------------ errors

    def damaged(self, what: str) -> DurableError:
        """Return the error for something that is not as it was written."""
        return damaged(self.place, what)

    def _gone(self) -> DurableError:
        return DurableError(f"there is no {self.place} any more")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Describe errors of PostgreSQL in sentences."""
        handled = sys.exception()
        try:
            yield
        except psycopg.Error as error:
            interrupt = error.__context__  # which psycopg replaces where it leaves a pipeline
            if interrupt is not handled and not isinstance(interrupt, Exception | None):
                raise interrupt from None
            kind, reason = _described(error)
            raise kind(f"{self.place} {reason}") from None  # libpq's own may show the address


def _plain(row: Row) -> dict[str, object]:
    """Return a row without number and digest, as JSON has it."""
    found: dict[str, object] = dict(zip(Row._fields[1:-1], row[1:-1], strict=True))
    if row.payload is not None:
        found["payload"] = "\\x" + row.payload.hex()
    return found


def _answers(connection: psycopg.Connection[Any]) -> bool:
    """Return whether a connection is open, as far as is known here without asking the server."""
    with suppress(psycopg.OperationalError):
        for _ in range(3):  # a last word, then the end of the stream; it does not wait
            connection.pgconn.consume_input()
        return not connection.closed
    return False


def _described(error: psycopg.Error) -> tuple[type[DurableError], str]:
    for kinds, reason in _REASONS:
        if isinstance(error, kinds):
            busy = kinds is _BUSY
            return (BusyError if busy else DurableError), reason
    said = error.diag.message_primary
    if said is None and isinstance(error, psycopg.OperationalError):
        text = str(error)
        if "password authentication" in text or "no password supplied" in text:
            return DurableError, _PASSWORD
        reason = next(iter(text.partition("FATAL:")[2].strip().splitlines()), "")
        return DurableError, _UNREACHABLE.replace(":", f" ({reason}):" if reason else ":", 1)
    if isinstance(error, _BROKEN):
        return DurableError, f"has tables that are damaged: restore them from a backup ({said})"
    return DurableError, f"cannot be used: {said or type(error).__name__}"


_BUSY = (errors.LockNotAvailable, errors.QueryCanceled, errors.SerializationFailure,
         errors.DeadlockDetected)  # fmt: skip
_BROKEN = errors.InternalError_, errors.DataCorrupted, errors.IndexCorrupted
_PASSWORD = (
    "cannot be opened: the server rejects the password (libpq reads PGPASSWORD and ~/.pgpass)"
)
_UNREACHABLE = (
    "cannot be reached: see that the server runs and call again; of this call everything was "
    "stored or nothing (ask with a key, and tell with repeated='ignore', may be called twice)"
)
_REASONS: tuple[tuple[Any, str], ...] = (
    (_BUSY, "is in use by others: call again, or give Durable a longer timeout"),
    (errors.InvalidPassword, _PASSWORD),
    (errors.InsufficientPrivilege, "may not be used by this role: docs/guide/many-hosts.md has the "
     "grants that it needs"),
    (errors.ReadOnlySqlTransaction, "cannot be written: the server is a replica or is read-only"),
    (errors.DiskFull, "cannot grow, as the server's disk is full; nothing of this call was stored"),
    ((errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedFunction),
     "has lost its tables: restore them from a backup"),
    ((errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow,
      errors.IdleInTransactionSessionTimeout, errors.ConnectionException), _UNREACHABLE),
)  # fmt: skip
