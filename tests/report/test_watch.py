"""The page that is served while an experiment runs."""

from __future__ import annotations

import http.client
import threading
from queue import Queue

import pytest

pytest.importorskip("polars")

import report_helpers as helpers
from unbounded import experiments
from unbounded.report import watch


@pytest.fixture
def watched(tmp_path):
    """What is served of a directory, and the thread that serves it."""
    addresses = Queue()
    given = {"ready": addresses.put, "every": 2.5}
    thread = threading.Thread(target=watch, args=(tmp_path / "out",), kwargs=given, daemon=True)
    thread.start()
    port = int(addresses.get(timeout=30).rstrip("/").rpartition(":")[2])

    def get(path="/", host=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return get, thread


def test_from_before_the_run_to_its_end(watched, tmp_path):
    get, thread = watched
    status, text = get()
    assert (status, 'content="2.5"' in text) == (200, True)
    assert "is not a directory" in text
    whole = {**helpers.TAILS, "replicates": 4}
    experiments.run({**whole, "replicates": 2}, out=tmp_path / "out", engine="serial")
    helpers.keep(whole, tmp_path / "out")
    status, text = get()
    assert "Unfinished: 4 replicates" in text
    assert '<meta http-equiv="refresh" content="2.5">' in text
    assert thread.is_alive()
    experiments.run(whole, out=tmp_path / "out", engine="serial")
    status, text = get()
    assert "has the smallest mean regret" in text
    assert 'http-equiv="refresh"' not in text  # it is the last page
    thread.join(30)
    assert not thread.is_alive()


def test_only_this_machine_and_only_the_page(watched, tmp_path):
    get, _ = watched
    assert get(host="elsewhere.example:80")[0] == 403
    assert get(host="localhost:80")[0] == 200
    assert get("/../../etc/passwd")[0] == 404
    experiments.run({**helpers.TAILS, "replicates": 1}, out=tmp_path / "out", engine="serial")
    get()
