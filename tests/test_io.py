"""Files are written completely or not at all, and reading one never blocks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from unbounded.io import HAS_LOCKS, read_regular, try_lock, write_atomic


def test_a_file_is_read_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "α file\nof two lines"
    for content in (b"one", b"two"):
        write_atomic(path, content)
        assert read_regular(path) == content
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_regular(link) == b"two"
    assert sorted(tmp_path.iterdir()) == sorted([link, path])


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), Path("/dev/null")):
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path)
        assert len(os.listdir("/proc/self/fd")) == before  # closed again


def test_permissions_are_kept_or_set(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"", mode=0o640)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_atomic(path, b"again")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"old")]


@pytest.mark.skipif(not HAS_LOCKS, reason="needs flock")
def test_a_lock_excludes_other_processes_and_ends_with_its_file(tmp_path: Path) -> None:
    other = "import os, sys; from unbounded.io import try_lock; "
    other += "print(try_lock(os.open(sys.argv[1], os.O_RDWR), shared=True))"
    path = tmp_path / "lock"
    for shared, free in ((False, False), (True, True)):
        with path.open("wb") as file:
            assert try_lock(file.fileno(), shared=shared)
            command = [sys.executable, "-c", other, str(path)]
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ("True" in said.stdout) == free
            assert ("BlockingIOError" in said.stderr) != free
