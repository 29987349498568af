"""Locks: of processes that start together, one compiles."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from unbounded import CacheWarning, io
from unbounded.jit import files
from unbounded.jit.files import give_back, take

pytestmark = pytest.mark.skipif(not io.HAS_LOCKS, reason="no flock")

# Every process compiles the same learner, and says which kernels it compiled.
COMPILE = """
    import sys, time
    from unbounded import Uniform
    from unbounded.jit import cache
    if sys.argv[2] == "unlocked":
        cache.take = lambda path: False
    compiled, save = [], cache.Cached.save_overload
    def counted(kept, signature, result):
        compiled.append(kept._name)
        save(kept, signature, result)
    cache.Cached.save_overload = counted
    time.sleep(max(0.0, float(sys.argv[1]) - time.time()))
    learner = Uniform(3, seed=0)
    learner.tell(learner.ask(), 1.0)
    print(*compiled, sep="\\n")
"""


def compiled_by_two(cache, how):
    start = time.time() + 6.0  # all of them have imported the package by then
    command = [sys.executable, "-c", textwrap.dedent(COMPILE), str(start), how]
    environment = os.environ | {"UNBOUNDED_CACHE_DIR": str(cache), "UNBOUNDED_JIT": "always"}
    processes = [
        subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    lines = []
    for process in processes:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        lines += out.splitlines()
    return [line for line in lines if line]


def test_two_processes_compile_each_kernel_once(tmp_path):
    compiled = compiled_by_two(tmp_path, "locked")
    assert len(compiled) == len(set(compiled)) == len(list(tmp_path.glob("*.nbc")))
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.long
def test_without_locks_they_race(tmp_path):
    """The control."""
    compiled = compiled_by_two(tmp_path, "unlocked")
    assert len(compiled) > len(set(compiled))


def hold(path):
    """A process that holds a lock until it is told to end."""
    script = f"""
        import pathlib, sys
        from unbounded.jit.files import take
        print(take(pathlib.Path({str(path)!r})), flush=True)
        sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "True\n"
    return process


def end(process, how):
    process.send_signal(how)
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_killed_process_frees_its_lock(tmp_path, monkeypatch):
    path = tmp_path / "kernel.lock"
    process = hold(path)
    monkeypatch.setattr(files, "_PATIENCE", 0.2)
    with pytest.warns(CacheWarning, match="end that process if it hangs"):
        assert not take(path)  # the control: it is held
    end(process, signal.SIGKILL)
    assert path.exists()
    assert take(path)
    give_back(path)
    assert not path.exists()


def test_a_lock_is_waited_for(tmp_path):
    path = tmp_path / "kernel.lock"
    process = hold(path)
    timer = threading.Timer(0.5, process.kill)
    timer.start()
    began = time.monotonic()
    assert take(path)
    assert time.monotonic() - began > 0.3
    give_back(path)
    end(process, signal.SIGKILL)


def test_a_lock_that_is_deleted_is_not_taken_for_another(tmp_path, monkeypatch):
    """Two that waited for one file must not both have it when a third has made it anew."""
    path = tmp_path / "kernel.lock"
    opened, real = [], os.open

    def open_and_lose(name, *arguments):
        descriptor = real(name, *arguments)
        if not opened:
            path.unlink()
        opened.append(name)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    assert take(path)
    assert len(opened) == 2
    assert path.exists()
    give_back(path)


def test_it_is_taken_once(tmp_path):
    path = tmp_path / "kernel.lock"
    assert take(path)
    assert not take(path)  # by a kernel that calls itself: it does not wait for itself
    give_back(path)


def test_a_forked_child_does_not_keep_it(tmp_path, monkeypatch):
    """The parent ends; its child lives on, and holds nothing."""
    path, said = tmp_path / "kernel.lock", tmp_path / "child"
    script = f"""
        import os, pathlib, time
        from unbounded.jit.files import take
        assert take(pathlib.Path({str(path)!r}))
        if os.fork() == 0:
            pathlib.Path({str(said)!r}).write_text(str(os.getpid()))
            time.sleep(60)
        while not pathlib.Path({str(said)!r}).exists():
            time.sleep(0.01)
        os._exit(0)
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    monkeypatch.setattr(files, "_PATIENCE", 0.5)
    try:
        assert take(path)
        give_back(path)
    finally:
        os.kill(int(said.read_text()), signal.SIGKILL)


def test_a_directory_that_cannot_be_written_is_not_locked(tmp_path):
    assert not take(tmp_path / "nowhere" / "kernel.lock")


def test_a_compilation_that_fails_frees_its_lock(tmp_path):
    script = """
        import pathlib, sys
        import numba
        from unbounded.jit import files
        from unbounded.jit.kernel import counting_kernel as kernel
        @kernel
        def wrong(x):
            return x + "a word"
        try:
            wrong(1.0)
        except numba.TypingError:
            print(files._held, *pathlib.Path(sys.argv[1]).glob("*.lock"))
    """
    module = tmp_path / "wrong_kernel.py"
    module.write_text(textwrap.dedent(script))
    cache = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, module, cache], text=True, capture_output=True, check=True,
        env=os.environ | {"UNBOUNDED_CACHE_DIR": str(cache)},
    )  # fmt: skip
    assert done.stdout.strip() == "{}"
