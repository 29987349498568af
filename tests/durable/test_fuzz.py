"""Random calls of several processes, with forks, kills and file tricks: nothing is lost."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fuzz.py")
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") or importlib.util.find_spec("fastapi") is None,
    reason="needs a system with fork, and pip install 'unbounded[service]'",
)


def fuzzed(directory, *arguments):
    command = [sys.executable, str(SCRIPT), str(directory), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("steps", "seed"),
    [(300, 1), *(pytest.param(10_000, 10**6 * i, marks=pytest.mark.long) for i in range(10))],
)
def test_whatever_is_done_the_file_holds_what_was_acknowledged(tmp_path, steps, seed):
    done = fuzzed(tmp_path, steps, seed)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["steps"] == steps
    assert counts["forks"] + counts["kills"] > steps / 100


@pytest.mark.long
@pytest.mark.parametrize("control", ["forks", "checks", "marks"])
def test_without_a_protection_it_finds_the_loss(tmp_path, control):
    done = fuzzed(tmp_path, 10_000, 11, control)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
