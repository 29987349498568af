"""Files of compiled code: trusted only if nobody else can have written them, used only if whole."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from unbounded.jit import cache as _jit_cache
from unbounded.jit import files as _jit_files
from unbounded.jit.files import CacheWarning, cache_directory, distrust, read, write
from unbounded.jit.kernel import kernel

SOMEBODY = 12345  # a user who is neither the current one nor root

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
with_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


class AlarmError(Exception):
    """What a program's signal handler may raise, whatever is being done."""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A cache directory of our own."""
    _jit_files.say.cache_clear()
    path = tmp_path / "cache"
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(path))
    yield path
    _jit_files.say.cache_clear()


def keep(data: bytes = b"machine code") -> None:
    write("kernel", "1.nbc", data)


def kept() -> bytes | None:
    return read("kernel.1.nbc")


def test_what_is_written_is_read(root):
    keep()
    assert kept() == b"machine code"
    assert read("kernel.2.nbc") is None


@pytest.mark.parametrize("alarm", [TimeoutError("too late"), AlarmError()])
def test_a_signal_handlers_error_does_not_pass_for_a_missing_file(root, monkeypatch, alarm):
    keep()
    raised = iter([OSError(errno.EIO, "broken disk"), alarm])

    def broken(path):
        raise next(raised)

    monkeypatch.setattr(_jit_files, "_read", broken)
    assert kept() is None
    with pytest.raises(type(alarm)):
        kept()


def test_nor_for_a_file_that_cannot_be_used(root, monkeypatch):
    def plus_one(x):
        return x + 1.0

    assert kernel(plus_one)(1.0) == 2.0  # writes the file
    raised = AttributeError("it is gone")

    def broken(data):
        raise raised

    monkeypatch.setattr(_jit_cache.pickle, "loads", broken)
    assert kernel(plus_one)(1.0) == 2.0  # compiled again
    raised = AlarmError()
    with pytest.raises(AlarmError):
        kernel(plus_one)(1.0)


def test_damage_of_any_kind_is_noticed(root):
    keep()
    path = root / "kernel.1.nbc"
    whole = path.read_bytes()
    damaged = [bytes([*whole[:i], whole[i] ^ 1, *whole[i + 1 :]]) for i in range(len(whole))]
    damaged += [whole[:i] for i in range(len(whole))]
    damaged += [whole + b"\0", b"\0" + whole, whole + whole]
    for data in damaged:
        path.write_bytes(data)
        assert kept() is None
    keep()
    assert kept() == b"machine code"


@with_owners
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_a_directory_that_others_can_write_is_not_used(root, mode):
    keep()
    root.chmod(mode)
    with pytest.warns(
        CacheWarning, match=rf"not cached: {root} can be written by other users.*go-w"
    ):
        assert kept() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it was said
        assert cache_directory() is None
        write("kernel", "2.nbc", b"")
    assert [path.name for path in root.iterdir()] == ["kernel.1.nbc"]
    root.chmod(0o755)
    assert kept() == b"machine code"


@with_owners
def test_nor_is_one_that_others_could_replace(root, tmp_path, monkeypatch):
    keep()
    tmp_path.chmod(0o777)
    assert str(tmp_path) in distrust(root)
    tmp_path.chmod(0o1777)  # as /tmp: nobody can replace what is another's
    assert distrust(root) == ""
    assert kept() == b"machine code"


@as_root
def test_nor_is_one_in_a_directory_of_somebody_else(root, tmp_path):
    keep()
    os.chown(tmp_path, SOMEBODY, -1)
    assert distrust(root) == f"{tmp_path} belongs to another user (uid {SOMEBODY})"
    os.chown(tmp_path, 0, -1)
    os.chown(root, SOMEBODY, -1)
    assert distrust(root) == f"{root} belongs to another user (uid {SOMEBODY})"


@as_root
def test_a_file_of_somebody_else_is_not_read_but_replaced(root):
    keep()
    os.chown(root / "kernel.1.nbc", SOMEBODY, -1)
    with pytest.warns(CacheWarning, match="kernel.1.nbc belongs to another user"):
        assert kept() is None
    keep(b"our own")
    assert kept() == b"our own"


@with_owners
@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_nor_is_a_file_that_others_can_write(root, mode):
    keep()
    (root / "kernel.1.nbc").chmod(mode)
    with pytest.warns(CacheWarning, match="can be written by other users"):
        assert kept() is None


def test_a_link_in_place_of_a_file_is_not_followed(root, tmp_path):
    keep()
    elsewhere = tmp_path / "elsewhere"
    (root / "kernel.1.nbc").rename(elsewhere)
    (root / "kernel.1.nbc").symlink_to(elsewhere)
    assert kept() is None
    keep(b"new")
    assert kept() == b"new"
    assert elsewhere.read_bytes().endswith(b"machine code")


@with_owners
def test_of_a_link_to_a_directory_the_end_is_examined(root, tmp_path, monkeypatch):
    keep()
    link = tmp_path / "link"
    link.symlink_to(root)
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(link))
    assert kept() == b"machine code"
    root.chmod(0o777)
    with pytest.warns(CacheWarning, match="can be written"):
        assert kept() is None


def test_a_pipe_in_place_of_a_file_does_not_hang(root):
    keep()
    (root / "kernel.1.nbc").unlink()
    os.mkfifo(root / "kernel.1.nbc", 0o644)
    assert kept() is None


@with_owners
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_what_is_written_is_ours_alone_whatever_the_umask(root, umask, tmp_path, monkeypatch):
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(root / "a" / "b"))
    before = os.umask(umask)
    try:
        keep()
    finally:
        os.umask(before)
    assert kept() == b"machine code"
    for path in (root, *root.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), path


def test_few_versions_of_a_kernel_are_kept(root):
    write("kernel_2", "1.a.nbc", b"")
    for version in range(10):
        for signature in "ab":
            write("kernel", f"{version}.{signature}.nbc", b"%d" % version)
            path = root / f"kernel.{version}.{signature}.nbc"
            os.utime(path, (version, version))
    found = {path.name.split(".")[1] for path in root.glob("kernel.*")}
    assert found == {"6", "7", "8", "9"}
    assert len(list(root.glob("kernel.*"))) == 8
    assert read("kernel_2.1.a.nbc") == b""


READER = """
import os, warnings
warnings.simplefilter("error")
from unbounded.jit import files
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
print(files.read("kernel.1.nbc"), files.cache_directory(), flush=True)
warnings.simplefilter("always")
files.write("kernel", "2.nbc", b"")  # something was compiled that was not kept
"""


@as_root
def test_a_cache_that_root_filled_is_read_by_others(monkeypatch):
    """As in an image: root owns it, nobody else can write it."""
    home = Path(tempfile.mkdtemp())
    try:
        home.chmod(0o755)  # pytest's own directories are closed to others
        monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(home / "cache"))
        keep()
        program = READER.format(uid=SOMEBODY)
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        assert result.stdout.split("\n")[0] == "b'machine code' None"
        assert result.stderr.count("Warning: ") == 1
        assert f"compiled code is not cached: {home / 'cache'} cannot be written. " in result.stderr
        assert [path.name for path in (home / "cache").iterdir()] == ["kernel.1.nbc"]
    finally:
        shutil.rmtree(home)


def test_without_owners_there_is_nothing_to_examine(root, monkeypatch):
    """On Windows."""
    keep()
    root.chmod(0o777)
    monkeypatch.delattr(os, "geteuid")
    assert kept() == b"machine code"


def test_processes_that_delete_one_another_s_files(tmp_path, monkeypatch):
    """What another process has deleted since the directory was read is no failure of the disk."""
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_jit_files, "_lost", [])
    listed = Path.glob

    def others_delete(self, pattern):
        found = list(listed(self, pattern))
        for path in found[:-1]:
            path.unlink()
        return found

    for number in range(_jit_files._VARIANTS):
        write("kernel", f"{number}.x.nbc", b"code")
    monkeypatch.setattr(Path, "glob", others_delete)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write("kernel", "last.x.nbc", b"code")
    assert _jit_files.lost() == ""
