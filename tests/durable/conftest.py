"""A PostgreSQL server for the tests of a worker."""

from collections.abc import Iterator

import pytest
from postgres_server import Server, server


@pytest.fixture(scope="session")
def database() -> Iterator[Server]:
    with server() as found:
        yield found
