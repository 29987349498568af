"""The example service under load, while its workers are restarted: no tell is lost or doubled."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("service_load.py")
NEEDED = ("starlette", "uvicorn_worker", "gunicorn")


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED) or not hasattr(os, "fork"),
    reason="needs pip install 'unbounded[service]', and a system with fork",
)
@pytest.mark.parametrize(
    ("clients", "workers", "seconds"),
    [(10, 2, 4), pytest.param(100, 4, 60, marks=pytest.mark.long)],
)
def test_no_tell_is_lost_or_doubled(tmp_path, clients, workers, seconds):
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    command += [str(clients), str(workers), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    log = tmp_path / "service.log"
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    assert json.loads(done.stdout)["told"] > 10 * seconds


def test_the_example_is_as_short_as_it_says():
    text = (SCRIPT.parents[2] / "examples" / "service.py").read_text(encoding="utf-8")
    assert text.count("\n") <= 60
