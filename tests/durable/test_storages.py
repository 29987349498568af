"""Where a durable learner is: both storages keep the guarantees; controls that do not are found."""

import pytest
from postgres_server import missing

from unbounded.durable.store import Store
from unbounded.testing import check_storage, storage_checks


class Forgetful(Store):
    """Does not undo."""

    def write(self, work):
        self._opened()
        return work()


class Rounding(Store):
    def append(self, row):
        super().append(row if row.loss is None else row._replace(loss=round(row.loss, 1)))


class Replacing(Store):
    def create(self, beginning, fill):
        return self.write(lambda: fill(self))


class Last(Store):
    def remove_before(self, n):
        return super().remove_before(n - 1)


def opened(kind, tmp_path):
    return lambda: kind(tmp_path / "x.db", synchronous="normal", timeout=20.0, read_only=False)


def test_sqlite_keeps_the_guarantees(tmp_path):
    check_storage(opened(Store, tmp_path))


@pytest.mark.parametrize("kind", [Forgetful, Rounding, Replacing, Last])
def test_storages_that_do_not_are_found(tmp_path, kind):
    with pytest.raises(AssertionError):
        check_storage(opened(kind, tmp_path))


@pytest.mark.skipif(missing(), reason="there is no PostgreSQL")
def test_postgresql_keeps_the_guarantees(database):
    from unbounded.durable.postgres import PostgresStore

    options = {"synchronous": "normal", "timeout": 20.0, "read_only": False}
    check_storage(lambda: PostgresStore(database.url(), "checked", **options))


def test_checks_have_names(tmp_path):
    names = [check.name for check in storage_checks(opened(Store, tmp_path))]
    right = [
        "values",
        "atomicity",
        "keys",
        "isolation",
        "snapshots",
        "contexts",
        "creation",
        "closing",
    ]
    assert names == right
