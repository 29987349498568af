"""Errors of the file system are sentences that name a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiment_helpers import ENVIRONMENT
from unbounded.experiments.store import StoreError, writing


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (28, "No space left on device; free some space and run it again"),
        (27, "File too large; free some space"),
        (13, "Permission denied; make the directory writable, or give another one"),
        (30, "Read-only file system; make the directory writable"),
        (20, "Not a directory; something else has this name: move it away"),
        (36, "File name too long; give a shorter name"),
        (5, "Input/output error; give another directory"),
    ],
)
def test_every_error_of_the_disk_has_a_remedy(number: int, words: str) -> None:
    said = f"^here cannot be written: {words}"
    with pytest.raises(StoreError, match=said), writing(Path("here")):
        raise OSError(number, os.strerror(number))


def test_nothing_is_left_of_what_could_not_be_written(tmp_path: Path) -> None:
    """With a real limit on the size of files, in a process of its own."""
    script = """
import resource, sys
from pathlib import Path
from unbounded.experiments.store import StoreError, write_whole
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
path = Path(sys.argv[1])
write_whole(path, b"short")
try:
    write_whole(path, bytes(2000))
except StoreError as error:
    print(error)
"""
    path = tmp_path / "file"
    command = [sys.executable, "-c", script, str(path)]
    said = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert "cannot be written: File too large; free some space" in said.stdout
    assert path.read_bytes() == b"short"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_a_directory_that_is_closed(tmp_path: Path) -> None:
    """As a user to whom its permissions apply."""
    script = """
import os, sys
from pathlib import Path
from unbounded.experiments.store import Store
from unbounded.experiments.store import StoreError
if os.getuid() == 0:
    os.setuid(65534)
try:
    Store(sys.argv[1]).keep_experiment("arms = 3", b"{}")
except StoreError as error:
    print(error)
"""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    for path in (tmp_path, *tmp_path.parents[:-2]):
        if path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode | 0o055)
    command = [sys.executable, "-c", script, str(closed / "out")]
    said = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert said.stdout == (
        f"{closed / 'out'} cannot be written: Permission denied; make the directory writable, or "
        "give another one\n"
    )
