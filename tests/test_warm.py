"""Compiling ahead, for those who come later."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import unbounded
import unbounded.mdps
from unbounded import _warm
from unbounded.jit import files as _jit_files

NOBODY = 65534


@pytest.fixture(scope="module")
def filled():
    """A cache that anybody can read, filled by ``unbounded warm``; and what that said."""
    pytest.importorskip("polars")
    directory = Path(tempfile.mkdtemp())  # pytest's own can be read by its user only
    directory.chmod(0o755)
    command = [sys.executable, "-m", "unbounded.cli.app", "warm", "Uniform"]
    environment = os.environ | {"UNBOUNDED_CACHE_DIR": str(directory), "UNBOUNDED_JIT": "auto"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    yield directory, done.stdout
    shutil.rmtree(directory)


PLAY = """
from unbounded import Uniform
learner = Uniform(3, seed=0)
print(learner._steps.loaded)  # loaded, as nothing is compiled under "auto"
learner.tell(learner.ask(), 1.0)
learner.probabilities()
print(learner.scale, sum(step.stats.cache_misses.total() for step in learner._steps.compiled))
"""


def played(directory, before=""):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", before + PLAY],
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(directory), "UNBOUNDED_JIT": "auto"},
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip


def test_it_says_what_it_did_and_where(filled):
    directory, said = filled
    first, last = said.splitlines()
    assert first.startswith("Uniform: ")
    assert "kept from before" not in first
    files = len(list(directory.glob("*.nbc")))
    assert files > 5
    assert last.startswith(f"{files} files were written in ")
    assert last.endswith(f", to {directory}")


def test_whoever_comes_later_starts_at_once(filled):
    done = played(filled[0])
    assert done.stderr == ""
    assert done.stdout.split() == ["True", "0.0", "0"]


BECOME_NOBODY = f"""
import os
from unbounded import Uniform  # while it can be read: not everybody may read root's Python
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()
os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else"
)
def test_another_user_reads_what_root_compiled(filled):
    """As in an image that is built by root and run by somebody."""
    before = sorted(filled[0].iterdir())
    done = played(filled[0], BECOME_NOBODY)
    assert done.stderr == ""
    assert done.stdout.split() == ["True", "0.0", "0"]
    assert sorted(filled[0].iterdir()) == before


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(file))
    with (
        pytest.warns(unbounded.CacheWarning, match="is not a directory"),
        pytest.raises(
            RuntimeError, match=r"cannot be kept: .* is not a directory\. UNBOUNDED_CACH"
        ),
    ):
        unbounded.warm("Uniform")


def test_the_command_says_so_too(tmp_path, monkeypatch, capsys):
    pytest.importorskip("polars")
    from unbounded.cli import app as cli

    monkeypatch.setattr(_warm, "cache_directory", lambda: None)
    monkeypatch.setattr(_jit_files, "cache_directory", lambda: None)
    assert cli.main(["warm", "Uniform"]) == 2
    assert "cannot be written. UNBOUNDED_CACHE_DIR may name" in capsys.readouterr().err
    assert cli.main(["warm", "Unifrm"]) == 2
    assert "there is no learner 'Unifrm'; there are AHB, " in capsys.readouterr().err


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    """Elsewhere that is only a warning: a play goes on."""
    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_jit_files, "_lost", [])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_jit_files.os, "replace", full)
    with pytest.warns(unbounded.CacheWarning, match="No space left on device"):
        _jit_files.write("kernel", "code.signature.nbc", b"code")
    with pytest.raises(RuntimeError, match=r"cannot be kept: .*No space left"):
        _warm._timed("it", list, tmp_path, None)


def test_every_learner_has_examples():
    for cls in unbounded.mdps.algorithms().values():
        for given in cls.spec.examples:
            assert type(_warm._example(cls, given)) is cls


def test_all_variants_are_compiled(monkeypatch):
    """SCBRL has the default algorithm, the published one, and one with a half-life; CostSCB has
    one with a half-life too, and both take masks."""
    monkeypatch.setattr(unbounded.settings, "jit", "never")
    for cls in unbounded.bandits.algorithms().values():
        assert _warm._codes_of(cls, simulate=True)()
    names = [code.name for code in _warm._codes_of(unbounded.SCBRL, simulate=False)()]
    assert len(names) == 3
    codes = _warm._codes_of(unbounded.CostSCB, simulate=False)()
    for settings in ({}, unbounded.recommend(lower=0.0, changing=True).settings):
        learner = unbounded.CostSCB(3, **settings)
        assert {learner._steps, learner._with_side} <= set(codes)
    for cls in unbounded.mdps.algorithms().values():
        specs = {_warm._example(cls, given).spec for given in cls.spec.examples}
        assert len(_warm._codes_of(cls, simulate=False)()) == len(specs)


def test_what_was_compiled_can_be_deleted(tmp_path, monkeypatch, capsys):
    """Before the package is uninstalled; other files of the directory stay."""
    pytest.importorskip("polars")
    from unbounded.cli import app as cli

    monkeypatch.setenv("UNBOUNDED_CACHE_DIR", str(tmp_path))
    for name in ("kernel.a.b.nbc", "unbounded.SCB.worker.lock", "kernel.12.part", "mine.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert cli.main(["warm", "--clear"]) == 0
    assert capsys.readouterr().out == "1 files of compiled code were deleted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_adversaries_are_those_of_the_learners():
    learners = {**unbounded.bandits.algorithms(), **unbounded.mdps.algorithms()}
    bandits = dict(_warm._adversaries(("SCB",), learners))
    mdps = dict(_warm._adversaries(("SCBRL",), learners))
    assert "Switch" in bandits
    assert "Switch for MDPs" in mdps
    assert not bandits.keys() & mdps.keys()
    assert dict(_warm._adversaries((), learners)).keys() == bandits.keys() | mdps.keys()


@pytest.mark.parametrize("accelerator", ["auto", "off"])
def test_the_status_says_which_path_compiles(accelerator, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "unbounded", "warm", "--status"], capture_output=True, text=True,
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(tmp_path)}
        | {"UNBOUNDED_ACCELERATOR": accelerator}, check=True,
    )  # fmt: skip
    assert f"path: {'accelerated' if accelerator == 'auto' else 'reference'}" in done.stdout
    assert f"cache: {tmp_path}, 0 files" in done.stdout


def test_the_status_says_why(monkeypatch):
    monkeypatch.setattr(unbounded.settings, "_path", "reference")
    monkeypatch.setattr(unbounded.settings, "_reason", "it was not tested with Numba 0.99.0")
    said = _warm.compilation_status()
    assert "path: reference (it was not tested with Numba 0.99.0)" in said
