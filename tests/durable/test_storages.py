"""Where a durable learner is: both storages keep the guarantees; controls that do not are found."""

import pytest
from postgres_server import missing

from unbounded.durable.store import Store
from unbounded.testing import check_storage, storage_checks

POSTGRES = pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
OPTIONS = {"synchronous": "normal", "timeout": 20.0, "read_only": False}


class Left(Store):
    def create(self, beginning, fill):
        self.prepare(lambda: beginning)
        return self.write(lambda: fill(self))


class Rounding(Store):
    def append(self, row):
        super().append(row if row.loss is None else row._replace(loss=round(row.loss, 1)))


class Unordered(Store):
    def rows(self, first, most=1000):
        return super().rows(first, most)[::-1]


class Milliseconds(Store):
    def now(self):
        return super().now() // 1000


class Own(Store):
    """Has a clock of its own, as another host has."""

    clocks = 0

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        Own.clocks += 1
        self.clock = Own.clocks

    def now(self):
        return super().now() + self.clock * 3600 * 10**6


class Forgetful(Store):
    """Does not undo."""

    def write(self, work, keys=()):
        self._opened()
        return work()


class Lazy(Store):
    """Ends a transaction when the next begins, or when it is closed: by nobody who was killed."""

    def write(self, work, keys=()):
        self.close()
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        return work()

    def read(self, work):
        self.close()
        return super().read(work)

    def close(self):
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("COMMIT")
        super().close()


class Doubling(Store):
    """Gives the same key twice."""

    def _open(self):
        connection = super()._open()
        connection.execute("DROP INDEX IF EXISTS keys")
        return connection


class Hasty(Store):
    """Does not wait for the others."""

    def _until(self, step):
        if not step():
            raise TimeoutError


class Blinking(Store):
    """Reads without a transaction."""

    def read(self, work):
        self._opened()
        return work()


class Stale(Store):
    def keep(self, name, snapshot):
        if name != "latest" or snapshot.n == 0:
            super().keep(name, snapshot)


class Last(Store):
    def remove_before(self, n):
        return super().remove_before(n - 1)


class Hoarding(Store):
    def detach(self, numbers):
        return len(numbers)


class Replacing(Store):
    def create(self, beginning, fill):
        return self.write(lambda: fill(self))


class Closed(Store):
    def close(self):
        super().close()
        self.lost = "closed"


def of_postgres():
    """Names of checks, and storages in PostgreSQL that fail them."""
    from unbounded.durable.postgres import PostgresStore

    class Loose(PostgresStore):
        def create(self, beginning, fill):
            self.prepare(lambda: beginning)
            return self.write(lambda: fill(self))

    class Unlocked(PostgresStore):
        def _sql(self, text):
            return super()._sql(text.replace(" FOR UPDATE", ""))

    class Committed(PostgresStore):
        """A read sees what others commit meanwhile."""

        def read(self, work):
            self._opened().execute("BEGIN")
            result = work()
            self._connection.execute("COMMIT")
            return result

    class Halves(PostgresStore):
        """Commits each statement."""

        def write(self, work, keys=()):
            connection = self._opened()
            try:
                return work()
            finally:
                self._flush(connection)

    class Lost(PostgresStore):
        """Says that it is stored, and commits with the next call."""

        def _flush(self, connection):
            rows, self._pending = self._pending, []
            self.later = rows
            super()._flush(connection)

        def _opened(self):
            connection = super()._opened()
            later, self.later = getattr(self, "later", []), []
            if later:
                self._pending = later
                super()._flush(connection)
            return connection

    class Hosts(PostgresStore):
        clocks = iter(range(1000))

        def now(self):
            return super().now() + next(self.clocks) * 3600 * 10**6

    class Parents(PostgresStore):
        def inherit(self):
            self.close()

    return {
        "beginning": Loose, "isolation": Unlocked, "reads": Committed, "atomicity": Halves,
        "durability": Lost, "clock": Hosts, "ownership": Parents,
    }  # fmt: skip


def opened(kind, tmp_path):
    return lambda: kind(tmp_path / "x.db", **OPTIONS)


def failed(kind):
    """The names of the checks that do not pass; each goes on where the last one ended."""
    names = []
    for check in storage_checks(kind):
        try:
            check()
        except AssertionError:
            names.append(check.name)
    return names


def test_sqlite_keeps_the_guarantees(tmp_path):
    check_storage(opened(Store, tmp_path))


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (Left, "beginning"),
        (Rounding, "values"),
        (Unordered, "values"),
        (Milliseconds, "clock"),
        (Own, "clock"),
        (Forgetful, "atomicity"),
        (Lazy, "durability"),
        (Doubling, "keys"),
        (Hasty, "isolation"),
        (Blinking, "isolation"),
        (Stale, "snapshots"),
        (Last, "snapshots"),
        (Hoarding, "contexts"),
        (Replacing, "creation"),
        (Closed, "closing"),
    ],
)
def test_storages_that_do_not_are_found(tmp_path, kind, check):
    assert check in failed(opened(kind, tmp_path))


def test_the_first_that_fails_is_raised(tmp_path):
    with pytest.raises(AssertionError, match="beginning"):
        check_storage(opened(Left, tmp_path))


@POSTGRES
def test_postgresql_keeps_the_guarantees(database):
    from unbounded.durable.postgres import PostgresStore

    check_storage(lambda: PostgresStore(database.url(), "checked", **OPTIONS))


@POSTGRES
@pytest.mark.parametrize(
    "fault", ["beginning", "isolation", "reads", "atomicity", "durability", "clock", "ownership"]
)
def test_storages_in_postgresql_that_do_not_are_found(database, fault):
    kind = of_postgres()[fault]
    names = failed(lambda: kind(database.url(), f"faulty {fault}", **OPTIONS | {"timeout": 2.0}))
    assert {"reads": "isolation"}.get(fault, fault) in names


def test_checks_have_names(tmp_path):
    names = [check.name for check in storage_checks(opened(Store, tmp_path))]
    right = [
        "beginning",
        "values",
        "clock",
        "atomicity",
        "durability",
        "ownership",
        "keys",
        "isolation",
        "snapshots",
        "contexts",
        "creation",
        "closing",
    ]
    assert names == right
